"""How busy the engines of a board were in the driver's last sampling period."""

from collections.abc import Callable
from typing import Final

from exporter.nvml.protocol import Unsupported
from exporter.nvml.simulated.readings.read import BoardReads
from simulator.gpm import GpmQuantity
from simulator.gpu import SimulatedGpu
from slicewatch.catalog.readings.utilization import EngineRate


def _rate(part: GpmQuantity) -> Callable[[SimulatedGpu], EngineRate | Unsupported]:
    def read(gpu: SimulatedGpu) -> EngineRate | Unsupported:
        if gpu.mig_enabled:
            return Unsupported("mig_enabled")
        return EngineRate(gpu.current_activity(part))

    return read


BOARD: Final[BoardReads] = {
    "memory_interface": _rate(GpmQuantity.DRAM),
    "encoder": _rate(GpmQuantity.ENCODER),
    "decoder": _rate(GpmQuantity.DECODER),
    "jpeg": _rate(GpmQuantity.JPEG),
    "ofa": _rate(GpmQuantity.OFA),
}
