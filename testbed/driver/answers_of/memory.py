"""The BAR1 window; device memory itself is part of what a GPU is, in ``presentation``."""

from ctypes import Structure

from simulator.gpu import SimulatedGpu
from slicewatch.catalog.readings.memory import Bar1Memory
from testbed.driver.answers import Answers, nvml

CALL = "nvmlDeviceGetBAR1MemoryInfo"


def answers(gpu: SimulatedGpu, into: Answers) -> None:
    """Put the window of a GPU and of each of its MIG devices."""
    into.put(CALL, _window(gpu.bar1()))
    for device in gpu.mig_devices:
        into.put(CALL, _window(gpu.bar1(device)), slot=device.index)


def _window(memory: Bar1Memory) -> Structure:
    window: Structure = nvml.c_nvmlBAR1Memory_t(
        bar1Total=memory.total_bytes, bar1Free=memory.free_bytes, bar1Used=memory.used_bytes
    )
    return window
