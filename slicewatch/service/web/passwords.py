"""Passwords of HTTP basic authentication, kept as bcrypt hashes.

A hash takes its time by design, so it is computed on a thread, one at a time, and what was right
once is remembered. No password is kept, only a keyed digest of it.
"""

import asyncio
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping

# ``$2y$10$`` and 22 characters of salt and 31 of hash.
HASH = re.compile(r"\$2[abxy]?\$(?P<cost>\d\d)\$[./A-Za-z0-9]{53}")
COSTS = range(4, 19)
# bcrypt never looked at more.
MOST_PASSWORD_BYTES = 72


def fault_of(password_hash: str) -> str | None:
    """Return what is wrong with a hash, and what to do; None if it can be used."""
    found = HASH.fullmatch(password_hash)
    if found is None:
        return "is not a bcrypt hash; make one with: htpasswd -nBC 10 ''"
    if int(found["cost"]) not in COSTS:
        return f"costs {found['cost']}, not {COSTS[0]} to {COSTS[-1]}; make one of cost 10"
    return None


class Passwords:
    """Who may come in by a password.

    Args:
        hashes: of each user; all of them without fault.
    """

    def __init__(self, hashes: Mapping[str, str]) -> None:
        self._hashes = {user: hashed.encode() for user, hashed in hashes.items()}
        # Checked for who is unknown, so that the time taken does not tell who is known.
        cost = max((hashed.split("$")[2] for hashed in hashes.values()), default="10")
        self._nobody = f"$2b${cost}$".encode() + b"." * 53
        self._key = secrets.token_bytes(32)
        self._right: dict[str, bytes] = {}
        self._one_at_a_time = asyncio.Lock()

    async def accepts(self, user: str, password: bytes) -> bool:
        """Tell whether this is the user's password."""
        digest = hmac.digest(self._key, password, hashlib.sha256)
        if hmac.compare_digest(self._right.get(user, b""), digest):
            return True
        hashed = self._hashes.get(user)
        async with self._one_at_a_time:
            right = await asyncio.to_thread(_matches, password, hashed or self._nobody)
        if right and hashed is not None:
            self._right[user] = digest
            return True
        return False


def _matches(password: bytes, hashed: bytes) -> bool:
    # Loaded here, since most exporters have no users.
    import bcrypt

    return bcrypt.checkpw(password[:MOST_PASSWORD_BYTES], hashed)
