"""The certificate that the API port shows: given as files, or made by ourselves at the start.

kube-apiserver verifies it by the APIService's ``caBundle``, or not at all where that says
``insecureSkipTLSVerify``; a self-made one is for the latter.
"""

import datetime
import ipaddress
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography import x509

LIFETIME: Final = datetime.timedelta(days=365)
LEEWAY: Final = datetime.timedelta(hours=1)


class CertificateError(ValueError):
    """The serving certificate cannot be used; says which file and why."""


class ServingCertificate:
    """A certificate and its key, as files that may be replaced while we run."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self.certificate = certificate
        self.key = key
        self._seen = self._stamp()

    def load_into(self, context: ssl.SSLContext) -> None:
        """Make a context show the certificate as it is on disk now.

        Raises:
            CertificateError: a file is missing, is no PEM, or they do not belong together.
        """
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise CertificateError(
                f"serving certificate {self.certificate} with key {self.key}: {error}"
            ) from error

    def changed(self) -> bool:
        """Tell whether the files were replaced since the last time this was asked."""
        before, self._seen = self._seen, self._stamp()
        return before != self._seen

    def _stamp(self) -> tuple[tuple[int, int], ...]:
        # Secrets are replaced by a rename of links: the inode tells, where times may not.
        try:
            states = [path.stat() for path in (self.certificate, self.key)]
        except OSError:
            return ()
        return tuple((state.st_mtime_ns, state.st_ino) for state in states)


def self_made(names: Sequence[str], folder: str) -> ServingCertificate:
    """Return a new self-signed certificate for some names.

    Args:
        names: DNS names and addresses; the first becomes the common name.
        folder: where to write ``tls.crt`` and ``tls.key``; empty for a new temporary one, since
            the TLS library takes keys from files only.

    Raises:
        CertificateError: the folder cannot be written.
    """
    certificate, key = _signed(names)
    try:
        place = Path(folder or tempfile.mkdtemp(prefix="slicewatch-adapter-"))
        place.mkdir(parents=True, exist_ok=True)
        for path, content in ((place / "tls.crt", certificate), (place / "tls.key", key)):
            path.touch(mode=0o600)
            path.write_bytes(content)
    except OSError as error:
        raise CertificateError(f"cannot write a certificate to {folder}: {error}") from error
    return ServingCertificate(place / "tls.crt", place / "tls.key")


def _signed(names: Sequence[str]) -> tuple[bytes, bytes]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = datetime.datetime.now(datetime.UTC)
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    signed = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - LEEWAY)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectAlternativeName(_alternatives(names)), critical=False)
        .add_extension(usage, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return signed.public_bytes(pem), private


def _alternatives(names: Sequence[str]) -> "list[x509.GeneralName]":
    from cryptography import x509

    alternatives: list[x509.GeneralName] = []
    for name in names:
        try:
            alternatives.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            alternatives.append(x509.DNSName(name))
    return alternatives
