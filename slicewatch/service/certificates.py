"""Signs certificates: of servers, of clients, and of authorities that sign others.

Keys are P-256, which are made in no time. Imports cryptography, several megabytes: import this
module only where a certificate is made.
"""

import datetime
import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# Clocks of two machines differ.
LEEWAY: Final = datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> bytes:
        """The certificate as PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The private key as PEM, not encrypted, in the form that every TLS library reads."""
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )


def issue(
    common_name: str,
    *,
    lifetime: datetime.timedelta,
    issuer: Issued | None = None,
    authority: bool = False,
    server_names: Sequence[str] = (),
    client: bool = False,
    organizations: Sequence[str] = (),
    at: datetime.datetime | None = None,
) -> Issued:
    """Sign a certificate for a new key.

    Args:
        common_name: who it is for; Kubernetes' user name of a client.
        lifetime: how long it is valid.
        issuer: the authority that signs; None makes it self-signed.
        authority: it may sign others.
        server_names: DNS names and addresses of a server; without any it is not for servers.
        client: it may be used by a client.
        organizations: Kubernetes' groups of a client.
        at: the moment from which the lifetime counts; by default now.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(common_name, organizations)
    now = at or datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - LEEWAY)
        .not_valid_after(now + lifetime)
    )
    for extension in _extensions(authority, server_names, client):
        critical = isinstance(extension, x509.BasicConstraints)
        builder = builder.add_extension(extension, critical=critical)
    return Issued(builder.sign(issuer.key if issuer else key, hashes.SHA256()), key)


def _subject(common_name: str, organizations: Sequence[str]) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _extensions(
    authority: bool, server_names: Sequence[str], client: bool
) -> Iterator[x509.ExtensionType]:
    if authority:
        yield x509.BasicConstraints(ca=True, path_length=None)
    usages = [ExtendedKeyUsageOID.SERVER_AUTH] if server_names else []
    usages += [ExtendedKeyUsageOID.CLIENT_AUTH] if client else []
    if usages:
        yield x509.ExtendedKeyUsage(usages)
    if server_names:
        yield x509.SubjectAlternativeName([_general_name(name) for name in server_names])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
