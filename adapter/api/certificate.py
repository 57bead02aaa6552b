"""The certificate that the API port serves: given as files, or self-signed at startup.

kube-apiserver verifies it against the APIService's ``caBundle``, or not at all if that says
``insecureSkipTLSVerify``; a self-signed one is for the latter.
"""

import datetime
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

LIFETIME: Final = datetime.timedelta(days=365)


class CertificateError(ValueError):
    """The serving certificate cannot be used; says which file and why."""


class ServingCertificate:
    """A certificate and its key, as files that may be replaced while we run."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self.certificate = certificate
        self.key = key

    def load_into(self, context: ssl.SSLContext) -> None:
        """Make a context serve the certificate as it is on disk now.

        Raises:
            CertificateError: a file is missing or not PEM, or key and certificate do not match.
        """
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise CertificateError(
                f"serving certificate {self.certificate} with key {self.key}: {error}"
            ) from error

    def stamp(self) -> tuple[tuple[int, int], ...]:
        """Return a value that changes when the files are replaced."""
        # Mounted Secrets are replaced by renaming a link, which may leave the times unchanged.
        try:
            states = [path.stat() for path in (self.certificate, self.key)]
        except OSError:
            return ()
        return tuple((state.st_mtime_ns, state.st_ino) for state in states)


def self_signed(names: Sequence[str], folder: str) -> ServingCertificate:
    """Return a new self-signed certificate for these names.

    Args:
        names: DNS names and addresses; the first becomes the common name.
        folder: where to write ``tls.crt`` and ``tls.key``; empty for a temporary one, since the
            TLS library takes keys from files only.

    Raises:
        CertificateError: the folder cannot be written.
    """
    # Loaded here, since a certificate from files needs no cryptography library.
    from slicewatch.service import certificates

    made = certificates.issue(names[0], server_names=names, lifetime=LIFETIME)
    try:
        place = Path(folder or tempfile.mkdtemp(prefix="slicewatch-adapter-"))
        place.mkdir(parents=True, exist_ok=True)
        for path, content in (
            (place / "tls.crt", made.certificate_pem),
            (place / "tls.key", made.key_pem),
        ):
            path.touch(mode=0o600)
            path.write_bytes(content)
    except OSError as error:
        raise CertificateError(f"cannot write a certificate to {folder}: {error}") from error
    return ServingCertificate(place / "tls.crt", place / "tls.key")
