"""Who may read ``/snapshot``: those who know a token, or whose client certificate has a name.

Snapshots name every tenant of the node. The adapter is meant to read them, and shows one of the
two. Nothing else of the exporter is decided here.
"""

import hashlib
import hmac
from pathlib import Path

from aiohttp import web

from slicewatch.service.tls import client_names
from slicewatch.service.web.gate import peer_certificate

SNAPSHOT_PATH = "/snapshot"
MOST_BYTES = 65_536


class AccessError(ValueError):
    """Nobody could read snapshots this way; says why and what to do."""


def read_tokens(path: Path) -> frozenset[bytes]:
    """Return the digests of the tokens of a file, one token per line.

    Raises:
        OSError: the file cannot be read.
        AccessError: it has no token, or a line that cannot be one.
    """
    with path.open("rb") as file:
        lines = [line.strip() for line in file.read(MOST_BYTES).splitlines()]
    for number, line in enumerate(lines, start=1):
        if not all(0x20 < byte < 0x7F for byte in line):
            raise AccessError(
                f"snapshot_token_file {path}: line {number} is no token; a token is printable"
                " ASCII without spaces, one on each line"
            )
    if not any(lines):
        raise AccessError(f"snapshot_token_file {path}: has no token; write one on a line")
    return frozenset(_digest(line) for line in lines if line)


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


class SnapshotAccess:
    """Decides on requests for ``/snapshot``.

    Attributes:
        tokens: digests of the valid ones; None where tokens are not used.
        names: common or alternative names of clients that may read; empty where certificates are
            not used. With neither everybody may.
    """

    def __init__(
        self, *, tokens: frozenset[bytes] | None = None, names: frozenset[str] = frozenset()
    ) -> None:
        self.tokens = tokens
        self.names = names

    @property
    def restricted(self) -> bool:
        """Tell whether there is anybody who may not read."""
        return self.tokens is not None or bool(self.names)

    def refusal(self, request: web.Request) -> web.Response | None:
        """Return the answer for one who may not read, or None for one who may."""
        if not self.restricted:
            return None
        common, alternative = client_names(peer_certificate(request))
        if common in self.names or not self.names.isdisjoint(alternative):
            return None
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        shown = scheme.lower() == "bearer"
        if shown and self._is_valid(token.strip()):
            return None
        if self.names and not shown and common is not None:
            text = f"the client certificate of {common} has no name of snapshot_client_names\n"
            return web.Response(status=403, text=text)
        return self._unknown("the bearer token is not valid; " if shown else "")

    def _is_valid(self, token: str) -> bool:
        shown = _digest(token.encode(errors="surrogateescape"))
        # All are compared, so that the time taken does not tell which one was nearly right.
        return sum(hmac.compare_digest(shown, valid) for valid in self.tokens or ()) > 0

    def _unknown(self, fault: str) -> web.Response:
        ways = []
        if self.tokens is not None:
            ways.append("send a token of snapshot_token_file as Authorization: Bearer")
        if self.names:
            ways.append("show a client certificate with a name of snapshot_client_names")
        text = f"{fault}{', or '.join(ways)}\n"
        if self.tokens is None:
            return web.Response(status=403, text=text)
        return web.Response(
            status=401, text=text, headers={"WWW-Authenticate": 'Bearer realm="slicewatch"'}
        )
