"""GPM's counters through the driver: one sample at a time in the whole process.

``nvmlGpmSampleGet`` crashed kernels when two threads were in it, even for different GPUs, whatever
the header says of threads. The lock is held by a call that hangs, so nobody waits for it long: a
sample that cannot be taken in time is left out.
"""

import contextlib
import ctypes
import struct
import threading
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pynvml
from pynvml import NVMLError

from exporter.nvml.protocol import Failed, Outcome, Unsupported, Value
from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.returns import gravest, outcome_of
from slicewatch.catalog.readings.gpm import Gpm, GpmMetric
from slicewatch.wire.layout import Device

_ONE_AT_A_TIME: Final = threading.Lock()
# Sixteen GPUs with seven instances each are sampled in a fraction of this.
PATIENCE_SECONDS: Final = 0.25
# Another thread takes samples, or hangs in one; NVML has no word for it.
BUSY: Final = Failed("GPM_BUSY")
_NANOSECONDS_PER_MICROSECOND: Final = 1000
# nvmlGpmMetric_t: return code and value of one metric.
_METRIC: Final = "4xId24x"
_SAMPLES: Final = struct.Struct("@PP")


class RealSample(msgspec.Struct, frozen=True, gc=False):
    """A sample in the driver's memory, where that is, and when it was taken."""

    handle: Any
    address: int
    at_us: int


class _Question:
    """What is asked between two samples, with its answer behind it in the same memory.

    The binding decodes each field anew; a node of instances has thousands in every tick.
    """

    def __init__(self, asked: tuple[GpmMetric, ...]) -> None:
        self._asked = asked
        # With room for all metrics that the binding knows, however few are asked for.
        question = pynvml.c_nvmlGpmMetricsGet_t()
        question.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        question.numMetrics = len(asked)
        for row, metric in enumerate(asked):
            question.metrics[row].metricId = metric
        self._memory = question
        self._rows = struct.Struct("@" + _METRIC * len(asked))
        self.at = ctypes.byref(question)

    def between(self, earlier: RealSample, later: RealSample) -> None:
        """Ask about the time between two samples."""
        place = pynvml.c_nvmlGpmMetricsGet_t.sample1.offset
        _SAMPLES.pack_into(self._memory, place, earlier.address, later.address)

    def answer(self) -> Outcome[Gpm]:
        """Return the means; a metric whose own code is an error is left out."""
        place = pynvml.c_nvmlGpmMetricsGet_t.metrics.offset
        found = self._rows.unpack_from(self._memory, place)
        codes, values = found[::2], found[1::2]
        if not any(codes):
            return Value(Gpm(dict(zip(self._asked, values, strict=True))))
        known = {m: v for m, c, v in zip(self._asked, codes, values, strict=True) if not c}
        return Value(Gpm(known)) if known else outcome_of(gravest(codes))


class RealCounters:
    """The counters of one GPU and its GPU instances; see ``gpm.Counters``.

    Args:
        calls: into the library.
        monotonic_nanoseconds: a clock that never goes back.
    """

    def __init__(self, calls: Calls, monotonic_nanoseconds: Callable[[], int]) -> None:
        self._calls = calls
        self._monotonic_nanoseconds = monotonic_nanoseconds
        self._gpu: Handle | None = None
        self._supported = False
        self._patience_seconds = PATIENCE_SECONDS
        # By identity: what is asked are constants, and members of an enumeration are slow keys.
        self._questions: dict[int, _Question] = {}

    def begin(self, gpu: Handle) -> None:
        """Begin a cycle with the handle that the GPU has now."""
        self._gpu = gpu
        self._patience_seconds = PATIENCE_SECONDS

    def now_us(self) -> int:
        """Return the time by the clock of the samples."""
        return self._monotonic_nanoseconds() // _NANOSECONDS_PER_MICROSECOND

    def take(self, device: Device, spare: RealSample | None) -> Outcome[RealSample]:
        """Take a sample of the GPU or one of its GPU instances, or say why there is none."""
        try:
            if not self._is_supported():
                return Unsupported("device")
            if not _ONE_AT_A_TIME.acquire(timeout=self._patience_seconds):
                # Once a cycle: a node of hundreds of instances would wait for minutes.
                self._patience_seconds = 0
                return BUSY
            try:
                return Value(self._take(device, spare))
            finally:
                _ONE_AT_A_TIME.release()
        except NVMLError as error:
            return outcome_of(error.value)

    def means(
        self, earlier: RealSample, later: RealSample, asked: tuple[GpmMetric, ...]
    ) -> Outcome[Gpm]:
        """Return the means between two samples; a metric whose own code is an error is left out."""
        question = self._questions.get(id(asked))
        if question is None:
            question = self._questions[id(asked)] = _Question(asked)
        question.between(earlier, later)
        try:
            self._calls.call("nvmlGpmMetricsGet", question.at)
        except NVMLError as error:
            return outcome_of(error.value)
        return question.answer()

    def free(self, sample: RealSample) -> None:
        """Give up a sample; the driver may be gone, and its memory with it."""
        with contextlib.suppress(NVMLError):
            self._calls.call("nvmlGpmSampleFree", sample.handle)

    def _take(self, device: Device, spare: RealSample | None) -> RealSample:
        if spare is None:
            handle = pynvml.nvmlGpmSampleAlloc()
            address = ctypes.cast(handle, ctypes.c_void_p).value or 0
        else:
            handle, address = spare.handle, spare.address
        sample = RealSample(handle, address, self.now_us())
        try:
            if device.gpu_instance is None:
                self._calls.call("nvmlGpmSampleGet", self._gpu, handle)
            else:
                self._calls.call("nvmlGpmMigSampleGet", self._gpu, device.gpu_instance, handle)
        except NVMLError:
            if spare is None:
                self.free(sample)
            raise
        return sample

    def _is_supported(self) -> bool:
        if not self._supported:
            answer = pynvml.nvmlGpmQueryDeviceSupport(self._gpu)
            self._supported = bool(answer.isSupportedDevice)
        return self._supported
