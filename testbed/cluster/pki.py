"""Certificates of a test cluster: two authorities and whatever is signed by them.

Keys are P-256, because they are made in no time; lifetimes are days, because nothing lives on.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLUSTER_AUTHORITY: Final = "ca"
FRONT_PROXY_AUTHORITY: Final = "front-proxy-ca"
_LIFETIME: Final = datetime.timedelta(days=2)
_LEEWAY: Final = datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The files of a certificate, its key and the authority that signed it, all PEM."""

    certificate: Path
    key: Path
    authority: Path


@dataclass(frozen=True, slots=True)
class _Authority:
    name: x509.Name
    key: ec.EllipticCurvePrivateKey
    path: Path


class Pki:
    """The certificates of one cluster, as files in one folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._authorities = {
            name: self._make_authority(name) for name in (CLUSTER_AUTHORITY, FRONT_PROXY_AUTHORITY)
        }
        self.service_account_key = folder / "service-accounts.key"
        self.service_account_public_key = folder / "service-accounts.pub"
        self._make_service_account_keys()

    @property
    def ca(self) -> Path:
        """The authority that signs the API server, kubelets and users."""
        return self._authorities[CLUSTER_AUTHORITY].path

    @property
    def front_proxy_ca(self) -> Path:
        """The authority that signs the API server as client of aggregated APIs."""
        return self._authorities[FRONT_PROXY_AUTHORITY].path

    def issue(
        self,
        name: str,
        *,
        ca: str = CLUSTER_AUTHORITY,
        common_name: str | None = None,
        organizations: Sequence[str] = (),
        sans: Sequence[str] = (),
        client: bool = True,
    ) -> Certificate:
        """Sign a certificate for ``name``.

        Args:
            name: Names the files, and the subject if ``common_name`` does not.
            ca: ``ca`` or ``front-proxy-ca``.
            common_name: Kubernetes' user name of a client.
            organizations: Kubernetes' groups of a client.
            sans: DNS names and addresses of a server; without any it is no server's certificate.
            client: Whether it may be used by a client.
        """
        authority = self._authorities[ca]
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(common_name or name, organizations)
        builder = _builder(subject, key, authority.name)
        usages = [ExtendedKeyUsageOID.SERVER_AUTH] if sans else []
        usages += [ExtendedKeyUsageOID.CLIENT_AUTH] if client else []
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if sans:
            names = x509.SubjectAlternativeName([_general_name(san) for san in sans])
            builder = builder.add_extension(names, critical=False)
        signed = builder.sign(authority.key, hashes.SHA256())
        return Certificate(
            certificate=self._write(f"{name}.crt", _pem(signed)),
            key=self._write(f"{name}.key", _key_pem(key)),
            authority=authority.path,
        )

    def _make_authority(self, name: str) -> _Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name, ())
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        builder = _builder(subject, key, subject).add_extension(constraints, critical=True)
        path = self._write(f"{name}.crt", _pem(builder.sign(key, hashes.SHA256())))
        return _Authority(subject, key, path)

    def _make_service_account_keys(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self._write(self.service_account_key.name, _key_pem(key))
        self._write(self.service_account_public_key.name, public)

    def _write(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        return path


def _name(common_name: str, organizations: Sequence[str]) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, issuer: x509.Name
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _LEEWAY)
        .not_valid_after(now + _LIFETIME)
    )


def _general_name(san: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(san))
    except ValueError:
        return x509.DNSName(san)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    # The traditional form: every TLS library that a workload may use reads it.
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
