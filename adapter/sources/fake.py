"""A source that is told what it has received: for tests, demonstrations and benchmarks."""

import time

from adapter.sources.assembly import Assembly, UnknownLayoutError
from adapter.sources.source import SnapshotSource, Target, WrongNodeError
from slicewatch.wire.snapshot import WireError


class FakeSource(SnapshotSource):
    """``SnapshotSource`` without a network; lines are decoded as if they had arrived over one."""

    def __init__(self) -> None:
        super().__init__()
        self._assemblies: dict[Target, Assembly] = {}

    def remove(self, target: Target) -> None:
        """Stop wanting an exporter."""
        self._assemblies.pop(target, None)
        self.forget(target)

    def receive(self, target: Target, line: bytes, at: float | None = None) -> None:
        """Take in one line, received at ``at`` on the monotonic clock; by default now."""
        state = self.want(target)
        received_at = time.monotonic() if at is None else at
        assembly = self._assemblies.setdefault(target, Assembly())
        try:
            self.publish(target, assembly.take(line, received_at))
        except WireError:
            state.rejected += 1
        except UnknownLayoutError as error:
            self.disconnect(target, str(error))
        except WrongNodeError as error:
            state.tried, state.fault = True, str(error)
        else:
            state.connected, state.tried, state.fault = True, True, ""

    def disconnect(self, target: Target, fault: str) -> None:
        """Break an exporter's stream; its next line starts another."""
        self._assemblies.pop(target, None)
        state = self.want(target)
        state.connected, state.tried, state.fault = False, True, fault
