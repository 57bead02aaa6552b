"""Keeps the shared file of the driver in step with a simulated node.

The file shows the node as of the last refresh. A test that moves a manual clock refreshes by
hand; a demonstration runs the thread.
"""

import math
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from simulator.gpu import SimulatedGpu
from simulator.node import GpuEvent, SimulatedNode
from simulator.timeline import MigDevice
from testbed.driver import presentation
from testbed.driver.answers import Answers
from testbed.driver.state import GPUS, GpuState, StateFile

REFRESHES_PER_SECOND: Final = 10.0


class DriverFeed:
    """A node in the form that the driver's library reads. As a context manager it runs by itself.

    Attributes:
        file: the shared file, for faults that only a driver has.

    Raises:
        Unavailable: the driver's libraries cannot be built here.
        ValueError: the node has more GPUs than the file has room for.
    """

    def __init__(
        self,
        node: SimulatedNode,
        path: Path,
        *,
        refreshes_per_second: float = REFRESHES_PER_SECOND,
    ) -> None:
        if len(node.gpus) > GPUS:
            raise ValueError(f"{node.name} has {len(node.gpus)} GPUs; the driver shows {GPUS}")
        self.file = StateFile(path)
        self._node = node
        self._pause_seconds = 1 / refreshes_per_second
        self._lock = threading.Lock()
        self._slots = [_Slots() for _ in node.gpus]
        self._alterations: dict[int, Callable[[GpuState], None]] = {}
        self._other_answers: dict[int, Callable[[Answers], None]] = {}
        self._delivered_until = node.clock.now()
        self._delivered_then = len(self._events(self._delivered_until))
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="driver-feed", daemon=True)
        self.refresh()

    def alter(self, gpu: int, change: Callable[[GpuState], None] | None) -> None:
        """Change what a GPU is after the node is shown, from the next refresh on.

        For what only drivers do: calls that fail one by one, odd texts.
        """
        self._alterations[gpu] = change or _leave

    def answer(self, gpu: int, change: Callable[[Answers], None] | None) -> None:
        """Change what a GPU answers in place of what the node says, from the next refresh on."""
        self._other_answers[gpu] = change or _leave

    def refresh(self) -> None:
        """Show the node as it is now, and deliver the events since the last time."""
        with self._lock:
            for gpu, slots in zip(self._node.gpus, self._slots, strict=True):
                self._show(gpu, slots)
            driver = self._node.driver
            self.file.put_system(presentation.system_state(driver, len(self._node.gpus)))
            self._deliver()

    def run(self) -> None:
        """Refresh in a thread of its own until ``stop``."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; the file keeps what it showed last."""
        self._stopping.set()
        self._thread.join()

    def __enter__(self) -> Self:
        self.run()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _run(self) -> None:
        while not self._stopping.wait(self._pause_seconds):
            self.refresh()

    def _show(self, gpu: SimulatedGpu, slots: "_Slots") -> None:
        shown = presentation.gpu_state(gpu, slots.numbers(gpu.mig_devices))
        self._alterations.get(gpu.index, _leave)(shown)
        answers = presentation.answers(gpu)
        self._other_answers.get(gpu.index, _leave)(answers)
        answers.write(shown)
        self.file.put_gpu(gpu.index, shown)
        self.file.hang(gpu.index, hanging=presentation.is_hanging(gpu))

    def _deliver(self) -> None:
        now = self._node.clock.now()
        events = self._events(now)
        for event in events[self._delivered_then :]:
            gpu = self._node.gpu(event.gpu)
            if gpu is not None:
                self.file.put_event(presentation.event_state(event, gpu.index))
        self._delivered_until = now
        self._delivered_then = sum(event.at == now for event in events)

    def _events(self, until: float) -> tuple[GpuEvent, ...]:
        """Return the events from the last delivery on, with those of that very moment.

        While a manual clock stands still, more can happen at a moment that was delivered already.
        """
        return self._node.events(math.nextafter(self._delivered_until, -math.inf), until)


def _leave(_: object) -> None:
    pass


class _Slots:
    """Counts, for each MIG index of a GPU, how often another instance came to lie there."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._lying: dict[int, MigDevice] = {}

    def numbers(self, devices: tuple[MigDevice, ...]) -> dict[int, int]:
        lying = {device.index: device for device in devices}
        for index, device in lying.items():
            if self._lying.get(index) != device:
                self._numbers[index] = self._numbers.get(index, 0) + 1
        self._lying = lying
        return self._numbers
