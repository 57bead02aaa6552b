"""The least that the exporter's reads can cost in Python: the same calls in a bare loop.

What a script does that polls a node with NVIDIA's binding: no threads, no checks, nothing kept,
nothing served. That the calls are the same ones is not claimed here but counted by whoever
compares.
"""

import sys
import threading
import time

import pynvml
from pynvml import NVMLError

from bench.programs.counting import Counting
from testbed.driver.loaded import LoadedDriver

Handle = pynvml.c_nvmlDevice_t


def read_gpu(index: int) -> list[object]:
    """Read one GPU and its MIG instances."""
    gpu = pynvml.nvmlDeviceGetHandleByIndex(index)
    readings: list[object] = [pynvml.nvmlDeviceGetUUID(gpu), pynvml.nvmlDeviceGetMigMode(gpu)]
    instances = []
    for slot in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            instance = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, slot)
        except NVMLError:
            continue
        instances.append(instance)
        readings += (
            pynvml.nvmlDeviceGetUUID(instance),
            pynvml.nvmlDeviceGetGpuInstanceId(instance),
            pynvml.nvmlDeviceGetComputeInstanceId(instance),
            pynvml.nvmlDeviceGetAttributes_v2(instance),
        )
    readings += (
        pynvml.nvmlDeviceGetMemoryInfo(gpu, pynvml.nvmlMemory_v2),
        pynvml.nvmlDeviceGetPowerUsage(gpu),
        pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu),
        pynvml.nvmlDeviceGetTemperatureV(gpu, pynvml.NVML_TEMPERATURE_GPU),
        pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM),
        pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_MEM),
    )
    readings += (pynvml.nvmlDeviceGetMemoryInfo(i, pynvml.nvmlMemory_v2) for i in instances)
    return readings


def loop(tick_seconds: float) -> None:
    """Read all GPUs once a tick, for ever: in the rhythm of the exporter, half a tick apart."""
    pynvml.nvmlInit()
    gpus = range(pynvml.nvmlDeviceGetCount())
    pause = threading.Event()
    while True:
        for index in gpus:
            read_gpu(index)
        now = time.monotonic() + tick_seconds / 2
        pause.wait(tick_seconds - now % tick_seconds)


if __name__ == "__main__":
    Counting(LoadedDriver()).start()
    loop(float(sys.argv[1]))
