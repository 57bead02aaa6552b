"""The thread of one GPU.

It waits for a turn, makes one pass, hands it over and waits again. A call that hangs costs this
GPU alone; nothing can be done for it but to wait, and to tell from its stamp which call it is.
"""

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from exporter.measure.plan import Plan
from exporter.nvml.protocol import Nvml
from exporter.nvml.reader import Cycle, Reader, Stamp
from slicewatch.wire.layout import Device


class Worker:
    """A daemon thread that alone may use the session of its GPU.

    Args:
        finished: called on the thread after each turn, with the pass, or with the exception that
            a fault in our own code raised.
    """

    def __init__(
        self,
        gpu: Device,
        nvml: Nvml,
        plan: Plan,
        finished: Callable[["Worker", Cycle | Exception], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.gpu = gpu
        self._nvml = nvml
        self._plan = plan
        self._finished = finished
        self._clock = clock
        self._reader: Reader | None = None
        self._turns: SimpleQueue[bool] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"gpu-{gpu.gpu}", daemon=True)
        self._thread.start()

    @property
    def stamp(self) -> Stamp | None:
        """Return the call that the thread is in, or None where it is in none."""
        return None if self._reader is None else self._reader.stamp

    def give_turn(self) -> None:
        """Let the thread make one pass. One turn at a time."""
        self._turns.put(True)

    def close(self) -> None:
        """End the thread and its session: at once, or when the pass that it is in is over."""
        self._turns.put(False)

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._thread.join()

    def _run(self) -> None:
        while self._turns.get():
            self._finished(self, self._pass())
        if self._reader is not None:
            self._reader.close()

    def _pass(self) -> Cycle | Exception:
        try:
            # Opened within a turn: whoever starts NVML anew waits for turns, not for threads.
            if self._reader is None:
                session = self._nvml.open(self.gpu)
                self._reader = Reader(self.gpu, session, self._plan, self._clock)
            return self._reader.cycle()
        except Exception as error:  # noqa: BLE001 - raised again where the passes are taken
            return error
