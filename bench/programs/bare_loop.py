"""The least that the exporter's reads can cost in Python: the same calls in a bare loop.

What a script does that polls a node with NVIDIA's binding: no threads, no checks, nothing kept,
nothing served.
"""

import sys
import threading
import time
from collections.abc import Iterable
from typing import Final

from bench.programs import bare_reads
from bench.programs.bare_reads import Handle, Read, Rhythm, nvml
from bench.programs.counting import Counting
from slicewatch.catalog.gpm import ASKED, GPM
from testbed.driver.loaded import LoadedDriver

# As many as the exporter asks for.
GPM_METRICS: Final = ASKED[GPM.name]


class Reads:
    """What is read of a device; what it does not support is not asked again."""

    def __init__(self, *rhythms: Rhythm) -> None:
        self._rhythms = [{every: [*reads] for every, reads in one.items()} for one in rhythms]

    def make(self, device: Handle, tick: int) -> list[object]:
        """Make the reads that are due."""
        found = []
        for rhythm in self._rhythms:
            for every, reads in rhythm.items():
                if tick % every == 0:
                    found += [_read(read, device, reads) for read in tuple(reads)]
        return found


def _read(read: Read, device: Handle, reads: list[Read]) -> object:
    try:
        return read(device)
    except nvml.NVMLError_NotSupported:
        reads.remove(read)
    except nvml.NVMLError:
        pass
    return None


class Counters:
    """GPM of a GPU or an instance of it: the means between two samples."""

    def __init__(self, metrics: Iterable[int] = GPM_METRICS) -> None:
        self._metrics = tuple(metrics)
        self._before: Handle = None
        self._spare: Handle = None
        self._asked = nvml.c_nvmlGpmMetricsGet_t()
        self._asked.version = nvml.NVML_GPM_METRICS_GET_VERSION
        self._asked.numMetrics = len(self._metrics)
        for row, metric in enumerate(self._metrics):
            self._asked.metrics[row].metricId = metric

    def read(self, gpu: Handle, instance: int | None) -> list[float]:
        """Take a sample and compare it with the one before it."""
        sample, self._spare = self._spare or nvml.nvmlGpmSampleAlloc(), None
        if instance is None:
            nvml.nvmlGpmSampleGet(gpu, sample)
        else:
            nvml.nvmlGpmMigSampleGet(gpu, instance, sample)
        before, self._before = self._before, sample
        if before is None:
            return []
        asked = self._asked
        asked.sample1, asked.sample2 = before, sample
        nvml.nvmlGpmMetricsGet(asked)
        self._spare = before
        return [asked.metrics[row].value for row in range(len(self._metrics))]


class Gpu:
    """One GPU with its MIG instances."""

    def __init__(self, index: int) -> None:
        self._index = index
        gpu = nvml.nvmlDeviceGetHandleByIndex(index)
        current, _ = nvml.nvmlDeviceGetMigMode(gpu)
        besides = () if current else (bare_reads.whole(),)
        self._own = Reads(bare_reads.board(), *besides)
        self._instances = [Reads(bare_reads.instance()) for _ in range(self._most(gpu, current))]
        self._counters = [Counters() for _ in range(len(self._instances) + 1)]

    def read(self, tick: int) -> list[object]:
        """Read all that is due in a tick."""
        gpu = nvml.nvmlDeviceGetHandleByIndex(self._index)
        current, _ = nvml.nvmlDeviceGetMigMode(gpu)
        found: list[object] = [nvml.nvmlDeviceGetUUID(gpu)]
        for slot in range(self._most(gpu, current)):
            found += self._read_instance(gpu, slot, tick)
        found.append(self._counters[-1].read(gpu, None))
        return found + self._own.make(gpu, tick)

    def _read_instance(self, gpu: Handle, slot: int, tick: int) -> list[object]:
        instance = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, slot)
        number = nvml.nvmlDeviceGetGpuInstanceId(instance)
        return [
            nvml.nvmlDeviceGetUUID(instance),
            nvml.nvmlDeviceGetComputeInstanceId(instance),
            nvml.nvmlDeviceGetAttributes_v2(instance),
            self._counters[slot].read(gpu, number),
            *self._instances[slot].make(instance, tick),
        ]

    @staticmethod
    def _most(gpu: Handle, current: int) -> int:
        return int(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)) if current else 0


def loop(tick_seconds: float) -> None:
    """Read all GPUs once a tick, for ever: in the rhythm of the exporter, half a tick apart."""
    nvml.nvmlInit()
    gpus = [Gpu(index) for index in range(nvml.nvmlDeviceGetCount())]
    pause, tick = threading.Event(), 0
    while True:
        for gpu in gpus:
            gpu.read(tick)
        tick += 1
        now = time.monotonic() + tick_seconds / 2
        pause.wait(tick_seconds - now % tick_seconds)


if __name__ == "__main__":
    Counting(LoadedDriver()).start()
    loop(float(sys.argv[1]))
