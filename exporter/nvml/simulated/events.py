"""What happens on simulated GPUs, for one thread that listens."""

import time

from exporter.nvml.protocol import Event, EventKind, Outcome, Value
from exporter.nvml.simulated.refusals import Life, failure_of, refuse_on_event_loop
from simulator.node import GpuEvent, SimulatedNode


class SimulatedEvents:
    """Events of some GPUs; see ``protocol.EventSource``. Silent after the first failure."""

    def __init__(self, node: SimulatedNode, gpus: frozenset[str], life: Life | None) -> None:
        self._node = node
        self._gpus = gpus
        self._life = life
        self._closed = False
        self._cursor = node.listen()

    @property
    def kinds(self) -> dict[str, frozenset[EventKind]]:
        """Return what is listened to, by uuid of the GPU."""
        return dict.fromkeys(self._gpus, frozenset(EventKind))

    def wait(self, timeout_seconds: float) -> Outcome[tuple[Event, ...]]:
        """Return what happened since the last call; the timeout is of real time."""
        refuse_on_event_loop()
        deadline = time.monotonic() + timeout_seconds
        node = self._node
        with node.changed:
            while True:
                failure = failure_of(node, self._life, closed=self._closed)
                now = node.clock.now()
                happened = tuple(
                    _event(event) for event in self._cursor.take() if event.gpu in self._gpus
                )
                if happened:
                    return Value(happened)
                if failure is not None:
                    return failure
                left = deadline - time.monotonic()
                if left <= 0:
                    return Value(())
                node.clock.wait(node.changed, until=node.next_change(now), timeout_seconds=left)

    def close(self) -> None:
        """Stop listening; a wait returns."""
        with self._node.changed:
            self._closed = True
            self._node.changed.notify_all()


def _event(event: GpuEvent) -> Event:
    return Event(
        kind=EventKind(event.kind.value),
        gpu=event.gpu,
        data=event.data,
        gpu_instance=event.gpu_instance_id,
        compute_instance=event.compute_instance_id,
    )
