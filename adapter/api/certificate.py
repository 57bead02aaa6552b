"""The certificate that the API port serves: files, given or our own, that may be replaced.

kube-apiserver verifies it against the APIService's ``caBundle``, or not at all if that says
``insecureSkipTLSVerify``; a self-signed one is for the latter, and for the moment before
``adapter.issuance`` has signed one.
"""

import datetime
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from slicewatch.service.stamp import Stamp, stamp
from slicewatch.service.tls import load_chain

LIFETIME: Final = datetime.timedelta(days=365)
_END: Final = "-----END CERTIFICATE-----"
_UTC_TIME: Final = 0x17
_VERSION: Final = 0xA0


class CertificateError(ValueError):
    """The serving certificate cannot be used; says which file and why."""


class ServingCertificate:
    """A certificate and its key, as files that may be replaced while we run.

    What was read stays in use until somebody asks for what the files say since.

    Args:
        certificate, key: paths of PEM files.
        authorities: path of those who signed it, which are replaced together with it; None where
            they are no file.
    """

    def __init__(self, certificate: Path, key: Path, authorities: Path | None = None) -> None:
        self.certificate = certificate
        self.key = key
        self._paths = tuple(filter(None, (certificate, key, authorities)))
        self._read: tuple[bytes, bytes] | None = None
        self._stamp: Stamp = ()

    @property
    def replaced(self) -> bool:
        """Tell whether files have changed since they were read."""
        return self._stamp != self.stamp()

    def renew(self) -> None:
        """Read the files.

        Raises:
            CertificateError: a file is missing or not PEM, key and certificate do not match, or
                the key is encrypted; what was read before stays.
        """
        # Taken before the files are read: a change in between is seen by the next look.
        now = self.stamp()
        self._read = self._files()
        self._stamp = now

    def load_into(self, context: ssl.SSLContext) -> None:
        """Make a context serve what was read; the files are read if that was never done.

        Raises:
            CertificateError: as of ``renew``.
        """
        load_chain(context, *self._known())

    def write(self, certificate_pem: bytes, key_pem: bytes) -> None:
        """Replace both files; only we may read the key.

        Raises:
            CertificateError: they cannot be written.
        """
        try:
            for path, content in ((self.key, key_pem), (self.certificate, certificate_pem)):
                new = path.with_name(f".{path.name}.new")
                new.touch(mode=0o600)
                new.write_bytes(content)
                new.replace(path)
        except OSError as error:
            raise CertificateError(
                f"cannot write a certificate to {self.certificate.parent}: {error}"
            ) from error

    def stamp(self) -> Stamp:
        """Return a value that changes when the files are replaced."""
        return stamp(self._paths)

    def ends_at(self) -> float | None:
        """Return until when what was read is valid, in seconds since the epoch.

        Returns:
            None if that is not found.
        """
        try:
            first, _, _ = self._known()[0].decode("ascii").partition(_END)
            return _not_after(ssl.PEM_cert_to_DER_cert(first[first.index("-----") :] + _END))
        except (ValueError, IndexError):
            return None

    def _known(self) -> tuple[bytes, bytes]:
        if self._read is None:
            self.renew()
        return self._read or self._files()

    def _files(self) -> tuple[bytes, bytes]:
        try:
            read = self.certificate.read_bytes(), self.key.read_bytes()
            load_chain(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), *read)
        except (OSError, ValueError) as error:
            raise CertificateError(
                f"serving certificate {self.certificate} with key {self.key}: {error}"
            ) from error
        return read


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
    except OSError as error:
        raise CertificateError(f"cannot write a certificate to {folder}: {error}") from error
    written = ServingCertificate(place / "tls.crt", place / "tls.key")
    written.write(made.certificate_pem, made.key_pem)
    return written


def _not_after(der: bytes) -> float:
    """Return the end of a certificate's validity (RFC 5280, 4.1).

    Python's ssl module decodes only certificates of peers, and cryptography, which decodes all,
    takes 12 MB: too much for one date.
    """
    _, start, _ = _element(der, 0)  # the certificate
    _, at, _ = _element(der, start)  # what is signed of it
    tag, _, end = _element(der, at)
    if tag == _VERSION:
        at = end
    for _ in range(3):  # serial number, signature algorithm, issuer
        _, _, at = _element(der, at)
    _, at, _ = _element(der, at)
    _, _, at = _element(der, at)  # not before
    tag, start, end = _element(der, at)
    text = der[start:end].decode("ascii")
    if tag == _UTC_TIME:  # two digits of the year, which are of 1950 to 2049
        text = ("19" if text >= "50" else "20") + text
    moment = datetime.datetime.strptime(text.replace("Z", "+0000"), "%Y%m%d%H%M%S%z")
    return moment.timestamp()


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    """Return the tag of a DER element, where its content starts and where it ends."""
    length, start = der[at + 1], at + 2
    if length & 0x80:
        after = start + (length & 0x7F)
        length, start = int.from_bytes(der[start:after], "big"), after
    return der[at], start, start + length
