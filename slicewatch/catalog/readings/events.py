"""What happened on a device, counted: Xids by number, and events of memory errors."""

from collections.abc import Mapping
from typing import Final

import msgspec

# The highest number that NVML calls an Xid; from here on it says that it does not know it.
UNKNOWN_XID: Final = 999
UNKNOWN: Final = "unknown"
# More different numbers than any device has in a life; what comes then is counted together.
MOST_NUMBERS: Final = 64
OTHERS: Final = "other"


class Xid(msgspec.Struct, frozen=True, gc=False):
    """How often an Xid was reported, and when last, in seconds since 1970."""

    count: int
    last_seen_seconds: float


class DeviceEvents(msgspec.Struct, frozen=True, kw_only=True):
    """What was reported of a device since it has been listened to; None for what it never reports.

    Attributes:
        xids: by number, or by ``unknown``, or by ``other`` for what came after the first 64.
        ecc: number of events by kind.
    """

    xids: Mapping[str, Xid] | None = None
    ecc: Mapping[str, int] | None = None

    def all_xids(self) -> int | None:
        """Return how many Xids there were, of all numbers."""
        return None if self.xids is None else sum(xid.count for xid in self.xids.values())

    def by_number(self) -> dict[str, float]:
        """Return how often each Xid was reported."""
        return {number: xid.count for number, xid in (self.xids or {}).items()}

    def last_seen(self) -> dict[str, float]:
        """Return when each Xid was last reported."""
        return {number: xid.last_seen_seconds for number, xid in (self.xids or {}).items()}

    def with_xid(self, number: int, at_seconds: float) -> "DeviceEvents":
        """Return what was reported, with one more Xid."""
        xids = dict(self.xids or {})
        name = str(number) if 0 < number < UNKNOWN_XID else UNKNOWN
        if name not in xids and len(xids) >= MOST_NUMBERS:
            name = OTHERS
        before = xids[name].count if name in xids else 0
        xids[name] = Xid(before + 1, at_seconds)
        return msgspec.structs.replace(self, xids=xids)

    def with_ecc(self, kind: str) -> "DeviceEvents":
        """Return what was reported, with one more event of memory errors."""
        ecc = dict(self.ecc or {})
        ecc[kind] = ecc.get(kind, 0) + 1
        return msgspec.structs.replace(self, ecc=ecc)
