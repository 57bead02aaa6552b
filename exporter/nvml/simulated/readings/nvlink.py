"""The NVLinks of a board, which has none in MIG mode."""

from collections.abc import Callable
from typing import Final

import msgspec

from exporter.nvml.protocol import Unsupported
from exporter.nvml.simulated.readings.read import BoardReads
from simulator.gpu import SimulatedGpu
from simulator.links import Links


def _read(
    read: Callable[[Links], msgspec.Struct | None],
) -> Callable[[SimulatedGpu], msgspec.Struct | Unsupported]:
    def answer(gpu: SimulatedGpu) -> msgspec.Struct | Unsupported:
        if gpu.mig_enabled:
            return Unsupported("mig_enabled")
        reading = read(gpu.links)
        return Unsupported("device") if reading is None else reading

    return answer


BOARD: Final[BoardReads] = {
    "nvlink": _read(Links.nvlinks),
    "nvlink_traffic": _read(Links.nvlink_traffic),
    "nvlink_errors": _read(Links.nvlink_errors),
}
