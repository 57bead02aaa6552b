"""How a board is set up: modes, generation, contents of its InfoROM, membership in a fabric."""

from typing import Final

from exporter.nvml.protocol import Unsupported
from exporter.nvml.simulated.readings.read import BoardReads, InstanceReads
from simulator.gpu import SimulatedGpu
from slicewatch.catalog.readings.state import ComputeMode


def _compute_mode(gpu: SimulatedGpu) -> ComputeMode | Unsupported:
    return Unsupported("mig_enabled") if gpu.mig_enabled else gpu.setup.compute_mode()


BOARD: Final[BoardReads] = {
    "modes": lambda gpu: gpu.setup.modes(),
    "compute_mode": _compute_mode,
    "generation": lambda gpu: gpu.setup.generation(),
    "inforom": lambda gpu: gpu.setup.inforom(),
    "inforom_check": lambda gpu: gpu.setup.inforom_check() or Unsupported("device"),
    "fabric": lambda gpu: gpu.setup.fabric() or Unsupported("device"),
}
INSTANCE: Final[InstanceReads] = {
    "compute_mode": lambda gpu, _: gpu.setup.compute_mode(),
}
