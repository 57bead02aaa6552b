"""The authorities that sign our serving certificates: who signs now, who is trusted, what is next.

All replicas share them through a Secret, and each signs its own certificate. Everything follows
from the certificates themselves and the time, so that replicas agree without talking: a new
authority is made long before the last one ends, is trusted at once, and signs only after it has
been trusted everywhere for a while. Pure: neither reads nor writes anything. Imports cryptography,
12 MB: import this module only where a certificate is made.
"""

import datetime
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from slicewatch.service import certificates
from slicewatch.service.certificates import LEEWAY, Issued

LIFETIME: Final = datetime.timedelta(days=3 * 365)
NEXT_BEFORE_END: Final = datetime.timedelta(days=180)
# A replica that cannot reach Kubernetes for so long has no values to serve either.
SETTLING: Final = datetime.timedelta(days=1)

CERTIFICATES_KEY: Final = "ca.crt"
KEYS_KEY: Final = "ca.key"
_PEM: Final = re.compile(rb"-----BEGIN [A-Z ]+-----.+?-----END [A-Z ]+-----", re.DOTALL)


class AuthorityError(ValueError):
    """What a Secret holds are no authorities; says what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorities:
    """Authorities with their keys, oldest first. None at all is the state of a new Secret."""

    known: tuple[Issued, ...] = ()

    @classmethod
    def read(cls, data: Mapping[str, bytes]) -> "Authorities":
        """Return the authorities of a Secret.

        Raises:
            AuthorityError: certificates and keys do not fit, or are none.
        """
        blocks = _PEM.findall(data.get(CERTIFICATES_KEY, b""))
        try:
            found = [x509.load_pem_x509_certificate(block) for block in blocks]
            keys = [_key(block) for block in _PEM.findall(data.get(KEYS_KEY, b""))]
        except (ValueError, TypeError) as error:
            raise AuthorityError(
                f"{CERTIFICATES_KEY} or {KEYS_KEY} cannot be read: {error}"
            ) from error
        made = [Issued(one, _of(keys, one)) for one in found]
        return cls(known=tuple(sorted(made, key=lambda one: one.certificate.not_valid_before_utc)))

    def data(self) -> dict[str, bytes]:
        """Return what a Secret has to hold."""
        return {
            CERTIFICATES_KEY: b"".join(one.certificate_pem for one in self.known),
            KEYS_KEY: b"".join(one.key_pem for one in self.known),
        }

    def due(self, now: datetime.datetime) -> bool:
        """Tell whether the next authority has to be made."""
        return not any(
            now + NEXT_BEFORE_END < one.certificate.not_valid_after_utc for one in self.known
        )

    def renewed(self, now: datetime.datetime) -> "Authorities":
        """Return the authorities with a new one and without those that have ended."""
        # Names differ, so that a verifier that goes by the name finds the right one of two.
        made = certificates.issue(
            f"slicewatch-adapter-{secrets.token_hex(4)}", authority=True, lifetime=LIFETIME, at=now
        )
        return Authorities(known=(*self._valid(now), made))

    def signer(self, now: datetime.datetime) -> Issued:
        """Return the authority that signs now: the newest that everybody has come to trust.

        Raises:
            AuthorityError: all have ended.
        """
        valid = self._valid(now)
        if not valid:
            raise AuthorityError("every authority has ended")
        settled = [
            one for one in valid if one.certificate.not_valid_before_utc + LEEWAY + SETTLING <= now
        ]
        return settled[-1] if settled else valid[0]

    def bundle(self, now: datetime.datetime) -> bytes:
        """Return the certificates that clients have to trust, as PEM."""
        return b"".join(one.certificate_pem for one in self._valid(now))

    def _valid(self, now: datetime.datetime) -> list[Issued]:
        return [one for one in self.known if now < one.certificate.not_valid_after_utc]


def _key(block: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(block, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise AuthorityError(f"{KEYS_KEY} has a key that is not of an elliptic curve")
    return key


def _of(
    keys: Iterable[ec.EllipticCurvePrivateKey], one: x509.Certificate
) -> ec.EllipticCurvePrivateKey:
    public = one.public_key()
    for key in keys:
        if key.public_key() == public:
            return key
    name = one.subject.rfc4514_string()
    raise AuthorityError(f"{KEYS_KEY} has no key for {name} of {CERTIFICATES_KEY}")
