"""The NVLinks of a board: which are up, what goes over them, what goes wrong on them.

Boards and drivers count different things. Up to NVLink 4, traffic is counted for the board as a
whole in KiB; since NVLink 5, for each link in bytes. Errors have other kinds on either side of it.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

KIBIBYTE: Final = 1024
# NVML's words for "not available", which would pass for counters.
NOT_AVAILABLE: Final = frozenset({2**32 - 1, 2**64 - 1})

Counts = tuple[int | None, ...]


class Nvlinks(msgspec.Struct, frozen=True, gc=False):
    """The state of each link, by its number: 1 up, 0 down, None where it is not told."""

    states: Counts

    def by_link(self) -> dict[str, float | None]:
        """Return the state of each link, by its number."""
        return {str(link): state for link, state in enumerate(self.states)}

    def active(self) -> int | None:
        """Return how many links are up; unknown while one of them does not tell."""
        return None if None in self.states else sum(state == 1 for state in self.states)

    def consistent(self) -> bool:
        """Tell whether each link is up or down."""
        return {0, 1, None}.issuperset(self.states)


class NvlinkTraffic(msgspec.Struct, frozen=True, gc=False):
    """What the links carried since the driver was loaded; None for a counter that is not there.

    Attributes:
        data_transmitted_kibibytes, data_received_kibibytes: payload, over all links.
        link_transmitted_bytes, link_received_bytes: of each link, since NVLink 5.
    """

    data_transmitted_kibibytes: int | None
    data_received_kibibytes: int | None
    link_transmitted_bytes: Counts
    link_received_bytes: Counts

    def transmitted_bytes(self) -> int | None:
        """Return what the GPU sent."""
        return self._bytes(self.data_transmitted_kibibytes, self.link_transmitted_bytes)

    def received_bytes(self) -> int | None:
        """Return what the GPU received."""
        return self._bytes(self.data_received_kibibytes, self.link_received_bytes)

    def consistent(self) -> bool:
        """Tell whether none of the counters is a word for "not available"."""
        data = (self.data_transmitted_kibibytes, self.data_received_kibibytes)
        links = (*self.link_transmitted_bytes, *self.link_received_bytes)
        return NOT_AVAILABLE.isdisjoint((*data, *links))

    def _bytes(self, kibibytes: int | None, links: Sequence[int | None]) -> int | None:
        # A board that counts payload is never shown by its links: the two differ, and a counter
        # that jumps between them would be a reset that did not happen.
        counts_data = {self.data_transmitted_kibibytes, self.data_received_kibibytes} != {None}
        if counts_data:
            return None if kibibytes is None else KIBIBYTE * kibibytes
        # A sum without one of the links would fall.
        known = [count for count in links if count is not None]
        return sum(known) if known and len(known) == len(links) else None


class NvlinkError(StrEnum):
    """Kinds of errors of a link; the value is a label. The second part is since NVLink 5."""

    REPLAY = "replay"
    CRC = "crc"
    CRC_FLIT = "crc_flit"
    CRC_DATA = "crc_data"
    RECOVERY = "recovery"

    RECOVERY_FAILED = "recovery_failed"
    MALFORMED_PACKET = "malformed_packet"
    BUFFER_OVERRUN = "buffer_overrun"
    RECEIVE = "receive"
    TRANSMIT_DISCARD = "transmit_discard"
    INTEGRITY = "integrity"
    EFFECTIVE = "effective"


class NvlinkErrors(msgspec.Struct, frozen=True, gc=False):
    """Errors of each link, by its number, in the order of ``NvlinkError``."""

    links: tuple[Counts, ...]

    def by_link_and_kind(self) -> dict[tuple[str, ...], float | None]:
        """Return the number of errors by link and kind."""
        return {
            (str(link), kind): count
            for link, counts in enumerate(self.links)
            for kind, count in zip(NvlinkError, counts, strict=True)
        }
