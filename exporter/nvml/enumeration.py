"""Identifies the GPU at every index of NVML's enumeration, each on its own thread.

A GPU may hang before it has told its name, and a node with such a GPU is where the others matter
most. Each thread is used once; one that never returns is left behind.
"""

import threading
import time

from exporter.nvml.protocol import Failed, Nvml, Outcome, Slot
from slicewatch.wire.layout import Device

PATIENCE_SECONDS = 2.0

HANGS = Failed("HANG")


class Enumeration:
    """One identification of all GPUs."""

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self._found: dict[int, Outcome[Device]] = {}
        self._threads: list[threading.Thread] = []

    def slots(self, patience_seconds: float = PATIENCE_SECONDS) -> tuple[Slot, ...]:
        """Return one slot per index within the patience; one that has not answered is ``HANGS``.

        Raises:
            DriverUnavailableError: the driver is gone.
        """
        count = self._nvml.count()
        self._threads = [self._ask(index) for index in range(count)]
        deadline = time.monotonic() + patience_seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return tuple(Slot(index=i, gpu=self._found.get(i, HANGS)) for i in range(count))

    @property
    def hangs(self) -> bool:
        """Tell whether a thread is still inside the driver."""
        return any(thread.is_alive() for thread in self._threads)

    def _ask(self, index: int) -> threading.Thread:
        def ask() -> None:
            self._found[index] = self._nvml.identify(index)

        thread = threading.Thread(target=ask, name="gpu-identity", daemon=True)
        thread.start()
        return thread
