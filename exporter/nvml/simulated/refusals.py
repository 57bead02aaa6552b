"""Why the driver does not answer, and the waiting for one that hangs."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from exporter.nvml.protocol import Failed, Lost
from simulator.gpu import SimulatedGpu
from simulator.node import SimulatedNode
from simulator.timeline import GpuState

UNINITIALIZED: Final = Failed("UNINITIALIZED", reinitialise=True)
NOT_LOADED: Final = Failed("DRIVER_NOT_LOADED", reinitialise=True)
MISMATCH: Final = Failed("LIB_RM_VERSION_MISMATCH", reinitialise=True)
_LOST: Final = {
    GpuState.LOST: Lost("gpu_is_lost"),
    GpuState.RESET_REQUIRED: Lost("reset_required"),
}


@dataclass(slots=True)
class Life:
    """From one start of NVML to its stop; guarded by the node's ``changed``."""

    generation: int
    ended: bool = False


def refuse_on_event_loop() -> None:
    """Keep calls that block off the thread that must not.

    Raises:
        RuntimeError: the calling thread runs an event loop.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("NVML blocks: call it on a worker thread, not on the event loop's thread")


def refusal_of(
    node: SimulatedNode,
    gpu: SimulatedGpu | None,
    life: Life | None,
    closed: Callable[[], bool] = lambda: False,
) -> Failed | Lost | None:
    """Wait while the GPU hangs; return why nothing can be read, or None if it can."""
    with node.changed:
        while True:
            failure = failure_of(node, life, closed=closed())
            if failure is not None:
                return failure
            now = node.clock.now()
            if gpu is None:
                return Lost("gpu_not_found")
            stage = gpu.timeline.stage(now)
            if stage.state is not GpuState.HUNG:
                failing = Failed(stage.error) if stage.error else None
                return _LOST.get(stage.state, failing)
            node.clock.wait(node.changed, until=node.next_change(now), timeout_seconds=None)


def failure_of(node: SimulatedNode, life: Life | None, *, closed: bool) -> Failed | None:
    """Return why the driver answers nothing to this process, or None if it does."""
    if life is None or life.ended or closed:
        return UNINITIALIZED
    driver = node.driver
    if not driver.loaded:
        return NOT_LOADED
    if driver.generation != life.generation:
        return MISMATCH if driver.replaced else NOT_LOADED
    return None
