"""A source that is told what to have received: for tests, demonstrations and benchmarks."""

import time
from collections.abc import Mapping

from adapter.sources.assembly import Assembly, UnknownLayoutError
from adapter.sources.board import Board
from adapter.sources.protocol import Listener, Reading, Stream, Target
from slicewatch.wire.snapshot import WireError, decode


class FakeSource:
    """``SnapshotSource`` without a network; lines are decoded as if they had arrived."""

    def __init__(self) -> None:
        self._board = Board()
        self._assemblies: dict[Target, Assembly] = {}

    @property
    def readings(self) -> Mapping[Target, Reading]:
        """The latest reading of each exporter."""
        return self._board.readings

    @property
    def streams(self) -> Mapping[Target, Stream]:
        """State of every exporter."""
        return self._board.streams

    def listen(self, listener: Listener) -> None:
        """Call ``listener`` after each change of a reading."""
        self._board.listen(listener)

    def add(self, target: Target) -> None:
        """Want an exporter; it is connected by its first line."""
        self._board.want(target)

    def remove(self, target: Target) -> None:
        """Want an exporter no longer."""
        self._assemblies.pop(target, None)
        self._board.forget(target)

    def receive(self, target: Target, line: bytes, at: float | None = None) -> None:
        """Take in one line, at a moment of the monotonic clock, by default now."""
        state = self._board.want(target)
        received_at = time.monotonic() if at is None else at
        assembly = self._assemblies.setdefault(target, Assembly())
        try:
            reading = assembly.take(decode(line), received_at)
        except WireError:
            state.rejected += 1
        except UnknownLayoutError as error:
            self.disconnect(target, str(error))
        else:
            state.connected, state.tried, state.fault = True, True, ""
            self._board.publish(target, reading)

    def disconnect(self, target: Target, fault: str) -> None:
        """Break the stream of an exporter; the next line begins another."""
        self._assemblies.pop(target, None)
        state = self._board.want(target)
        state.connected, state.tried, state.fault = False, True, fault
        state.changed_at = time.monotonic()
