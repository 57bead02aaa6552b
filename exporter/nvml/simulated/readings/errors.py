"""Memory errors of a board, what was done about them, and what should be."""

from typing import Final, TypeVar

from exporter.nvml.protocol import Unsupported
from exporter.nvml.simulated.readings.read import BoardReads, InstanceReads
from simulator.gpu import SimulatedGpu

R = TypeVar("R")

_DEVICE: Final = Unsupported("device")


def _counted(gpu: SimulatedGpu, reading: R | None) -> R | Unsupported:
    if reading is not None:
        return reading
    return _DEVICE if gpu.errors.ecc_enabled else Unsupported("ecc_off")


def _remapped(gpu: SimulatedGpu, reading: R | None) -> R | Unsupported:
    if reading is not None:
        return reading
    return Unsupported("mig_enabled") if gpu.mig_enabled else _DEVICE


BOARD: Final[BoardReads] = {
    "ecc": lambda gpu: _counted(gpu, gpu.errors.ecc()),
    "ecc_locations": lambda gpu: _counted(gpu, gpu.errors.by_location()),
    "sram_ecc": lambda gpu: _counted(gpu, gpu.errors.sram()),
    "remapped_rows": lambda gpu: _remapped(gpu, gpu.errors.remapped_rows()),
    "row_remap_banks": lambda gpu: _remapped(gpu, gpu.errors.remap_banks()),
    "retired_pages": lambda gpu: gpu.errors.retired_pages() or _DEVICE,
    "recovery_action": lambda gpu: gpu.errors.recovery(),
}
INSTANCE: Final[InstanceReads] = {
    "ecc_locations": lambda gpu, device: _counted(gpu, gpu.errors.by_location(device)),
}
