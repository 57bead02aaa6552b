"""The seam to the exporters: their latest readings, each with the moment it arrived here."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

from slicewatch.wire.layout import Layout
from slicewatch.wire.snapshot import Snapshot, decode

Target = NewType("Target", str)
"""Base URL of an exporter, such as ``http://10.0.0.7:9400``."""

Listener = Callable[[Target], None]


class StreamFault(StrEnum):
    """Why a stream could not be opened, or ended."""

    CONNECT = "connect"
    TLS = "tls"
    UNAUTHORIZED = "unauthorized"
    REFUSED = "refused"
    SILENT = "silent"
    ENDED = "ended"
    GARBAGE = "garbage"
    LAYOUT = "layout"


class WrongNodeError(Exception):
    """An exporter reports for a node that is not its own; says whose it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A snapshot that fits its layout, kept as the line that it came in.

    Most are replaced unread. A hundred columns of each node, all new every second, would be most
    of the objects of this process, which the garbage collector walks over while everybody waits.

    Attributes:
        received_at: on the receiver's monotonic clock.
        oldest_seconds: the greatest of its ages; None if no device has been read.
    """

    layout: Layout
    line: bytes
    received_at: float
    oldest_seconds: float | None = None

    @property
    def snapshot(self) -> Snapshot:
        """Decode the snapshot, anew each time."""
        return decode(self.line).snapshot


@dataclass(slots=True, kw_only=True)
class Stream:
    """The state of one exporter's stream.

    Attributes:
        fault: why it is not open; empty while it is.
        tried: it has been open at least once, or could not be opened.
        rejected: number of lines that were not valid frames.
        node: where the exporter runs; empty if that is unknown, as for a list given by hand.
        refused: the node that it reports for although it may not; empty while there is none.
    """

    connected: bool = False
    tried: bool = False
    fault: str = "not connected yet"
    rejected: int = 0
    node: str = ""
    refused: str = ""


class SnapshotSource:
    """Keeps the latest reading of every wanted exporter; subclasses feed it.

    A reading outlives its stream: it is for the reader to decide how old is too old.

    An exporter speaks for one node, and no other does while its stream is open: whoever could
    report for any node would decide how every workload of the cluster is scaled.

    Attributes:
        readings: the latest reading of each wanted exporter that has sent one.
        streams: the state of every wanted exporter.
        speakers: by node, the exporter that speaks for it.
        faults: streams that could not be opened, or ended, by reason.
    """

    def __init__(self) -> None:
        self.readings: dict[Target, Reading] = {}
        self.streams: dict[Target, Stream] = {}
        self.speakers: dict[str, Target] = {}
        self.faults: Counter[StreamFault] = Counter()
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Call ``listener`` after each change of a reading, including its removal."""
        self._listeners.append(listener)

    def want(self, target: Target, node: str = "") -> Stream:
        """Return the state of an exporter's stream, a new one if it was not wanted before."""
        return self.streams.setdefault(target, Stream(node=node))

    def publish(self, target: Target, reading: Reading) -> None:
        """Replace the reading of an exporter, unless it is no longer wanted.

        Raises:
            WrongNodeError: it may not speak for the node; its former reading is kept.
        """
        if target in self.streams:
            self._claim(target, reading.layout.node)
            self.readings[target] = reading
            self._notify(target)

    def forget(self, target: Target) -> None:
        """Drop an exporter and its reading."""
        self.streams.pop(target, None)
        self._release(target)
        if self.readings.pop(target, None) is not None:
            self._notify(target)

    def _claim(self, target: Target, node: str) -> None:
        """Let an exporter speak for a node, and for no other."""
        stream = self.streams[target]
        if fault := self._objection(target, node):
            stream.refused = node
            raise WrongNodeError(f"{target} reports for node {node}, {fault}")
        stream.refused = ""
        if self.speakers.get(node) != target:
            self._release(target)
            self.speakers[node] = target

    def _objection(self, target: Target, node: str) -> str:
        place, speaker = self.streams[target].node, self.speakers.get(node)
        if place not in {"", node}:
            return f"but runs on node {place}"
        if speaker is not None and speaker != target and self.streams[speaker].connected:
            return f"for which {speaker} speaks already"
        return ""

    def _release(self, target: Target) -> None:
        reading = self.readings.get(target)
        if reading is not None and self.speakers.get(reading.layout.node) == target:
            del self.speakers[reading.layout.node]

    def _notify(self, target: Target) -> None:
        for listener in self._listeners:
            listener(target)
