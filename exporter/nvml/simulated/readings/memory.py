"""Device memory."""

from typing import Final

from exporter.nvml.simulated.readings.read import BoardReads, InstanceReads
from simulator.gpu import MemoryState
from slicewatch.catalog.readings.memory import Memory


def _memory(state: MemoryState) -> Memory:
    return Memory(
        total_bytes=state.total_bytes,
        free_bytes=state.free_bytes,
        used_bytes=state.used_bytes,
        reserved_bytes=state.reserved_bytes,
    )


BOARD: Final[BoardReads] = {
    "memory": lambda gpu: _memory(gpu.memory),
    "bar1_memory": lambda gpu: gpu.bar1(),
}
INSTANCE: Final[InstanceReads] = {
    "memory": lambda gpu, device: _memory(gpu.mig_memory(device)),
    "bar1_memory": lambda gpu, device: gpu.bar1(device),
}
