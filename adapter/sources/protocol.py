"""The seam to the exporters: their latest readings, each with the moment it arrived here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NewType, Protocol

from slicewatch.wire.layout import Layout
from slicewatch.wire.snapshot import Snapshot

Target = NewType("Target", str)
"""Base URL of an exporter, such as ``http://10.0.0.7:9400``."""

Listener = Callable[[Target], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A snapshot that fits its layout. ``received_at`` is on the receiver's monotonic clock."""

    layout: Layout
    snapshot: Snapshot
    received_at: float


@dataclass(slots=True, kw_only=True)
class Stream:
    """How it stands with the stream of one exporter.

    Attributes:
        changed_at: when it was last opened or lost, on the receiver's monotonic clock.
        fault: why it is not open; empty while it is.
        tried: it has been open, or could not be opened.
        rejected: lines that were no valid frames.
    """

    connected: bool = False
    tried: bool = False
    changed_at: float = 0.0
    fault: str = "not connected yet"
    rejected: int = 0


class SnapshotSource(Protocol):
    """Keeps the latest reading of every exporter.

    A reading stays when its stream breaks: how old is too old is for those to say who serve it.
    """

    @property
    def readings(self) -> Mapping[Target, Reading]:
        """The latest reading of each exporter that ever sent one and is still wanted."""
        ...

    @property
    def streams(self) -> Mapping[Target, Stream]:
        """State of every exporter that is wanted."""
        ...

    def listen(self, listener: Listener) -> None:
        """Call ``listener`` after a reading has arrived, or has gone with its exporter."""
        ...
