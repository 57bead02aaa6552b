"""A demand for GPU time, fixed from outside, that the running pods of a Deployment share evenly.

That is what makes the loop of an autoscaler close: more replicas take load from one another, and
one that is not running yet takes none.
"""

import threading
from collections.abc import Callable, Mapping

from simulator.node import SimulatedNode

SPREAD_SECONDS = 0.5


class SharedDemand:
    """Sets the loads of the GPUs that pods hold, again and again, until it is closed.

    Args:
        node: whose GPUs are loaded.
        held: returns the uuid of the GPU that each *running* pod holds.
    """

    def __init__(self, node: SimulatedNode, held: Callable[[], Mapping[str, str]]) -> None:
        self._node = node
        self._held = held
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demand", daemon=True)
        self.gpus = 0.0
        self.error: BaseException | None = None

    def start(self) -> None:
        """Begin to spread the demand."""
        self._thread.start()

    def close(self) -> None:
        """Stop; the last loads stay. Raises what the spreading failed with, if it did."""
        self._stop.set()
        self._thread.join(timeout=30)
        if self.error is not None:
            raise self.error

    def spread(self) -> None:
        """Give each GPU its load of this moment."""
        held = set(self._held().values())
        share = min(1.0, self.gpus / len(held)) if held else 0.0
        for gpu in self._node.gpus:
            self._node.set_load(gpu.uuid, share if gpu.uuid in held else 0.0)

    def _run(self) -> None:
        try:
            while not self._stop.wait(SPREAD_SECONDS):
                self.spread()
        except BaseException as error:  # noqa: BLE001 - shown to the test by close()
            self.error = error
