"""What belongs into the caBundle of an APIService: our authorities, and for a while those of others.

Replicas learn of a new authority at different moments, and whoever learns of it last must not take
it away from the others. So an authority that is not ours stays until it has been there for longer
than replicas differ. Pure: takes ``now``, reads and writes nothing.
"""

import base64
import binascii
import re
import ssl
from typing import Final

# The kubelet replaces mounted files within two minutes or so; an old replica ends much sooner.
OVERLAP_SECONDS: Final = 900.0

_PEM: Final = re.compile(
    rb"-----BEGIN CERTIFICATE-----\s([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----"
)


def certificates(pem: bytes) -> tuple[bytes, ...]:
    """Return each certificate of a text once, in its order and in one form, as PEM."""
    return tuple(dict.fromkeys(filter(None, map(_normal, _PEM.findall(pem)))))


class CaBundle:
    """The authorities of one APIService over time."""

    def __init__(self) -> None:
        self._others: dict[bytes, float] = {}

    def due(self, present: bytes, ours: bytes, now: float) -> bytes:
        """Return what has to be in the caBundle now.

        Those that stay keep their place, so that replicas agree on the order as well.

        Args:
            present: what is in it.
            ours: the authorities of this replica's certificate.
            now: the time on the monotonic clock, in seconds.
        """
        own, there = certificates(ours), certificates(present)
        self._others = {one: self._others.get(one, now) for one in there if one not in own}
        ended = {one for one, since in self._others.items() if now - since >= OVERLAP_SECONDS}
        return b"".join(dict.fromkeys((*(one for one in there if one not in ended), *own)))


def _normal(body: bytes) -> bytes:
    """Return a certificate in the usual form; nothing for what is not encoded as one."""
    try:
        der = base64.b64decode(b"".join(body.split()), validate=True)
    except binascii.Error:
        return b""
    return ssl.DER_cert_to_PEM_cert(der).encode("ascii")
