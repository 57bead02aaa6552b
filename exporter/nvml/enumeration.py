"""Identifies the GPU at every index of NVML's enumeration, each on its own thread.

A GPU may hang before it has told its name, and a node with such a GPU is where the others matter
most. Each thread is used once; one that never returns is left behind.

A GPU that is plugged in later is seen because NVML's count is compared with that of its start.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from functools import partial

from exporter.nvml.protocol import DriverUnavailableError, Failed, Nvml, Outcome, Slot
from slicewatch.wire.layout import Device

PATIENCE_SECONDS = 2.0
# More than a node has; a driver in trouble may claim billions, and each gets a thread.
MOST_GPUS = 64

HANGS = Failed("HANG")


class Enumeration:
    """One identification of all GPUs.

    Attributes:
        outdated: NVML counts another number of GPUs by now.
    """

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self._count = 0
        self.outdated = False
        self._found: dict[int, Outcome[Device]] = {}
        self._threads: list[threading.Thread] = []

    def slots(self, patience_seconds: float = PATIENCE_SECONDS) -> tuple[Slot, ...]:
        """Return one slot per index within the patience; one that has not answered is ``HANGS``.

        Raises:
            DriverUnavailableError: the driver is gone.
        """
        self._count = self._nvml.count()
        count = min(self._count, MOST_GPUS)
        self._threads = [_thread(partial(self._ask, index)) for index in range(count)]
        deadline = time.monotonic() + patience_seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return tuple(Slot(index=i, gpu=self._found.get(i, HANGS)) for i in range(count))

    @property
    def hangs(self) -> bool:
        """Tell whether a thread is still inside the driver."""
        return any(thread.is_alive() for thread in self._threads)

    def count_again(self) -> None:
        """See whether the number of GPUs is still the same; waits for nobody."""
        if not self.hangs:
            self._threads = [_thread(self._compare)]

    def join(self) -> None:
        """Wait until no thread is inside the driver, however long it takes."""
        for thread in self._threads:
            thread.join()

    def _ask(self, index: int) -> None:
        self._found[index] = self._nvml.identify(index)

    def _compare(self) -> None:
        # A driver that is gone says so in every pass as well.
        with contextlib.suppress(DriverUnavailableError):
            self.outdated = self._nvml.count() != self._count


def _thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, name="gpu-identity", daemon=True)
    thread.start()
    return thread
