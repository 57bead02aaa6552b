"""What NVML answers: each GPU on a thread of its own, so that one that hangs costs itself."""

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from exporter.doctor.facts import Gpu, NoAnswer, Read, word
from exporter.doctor.question import Question
from exporter.nvml.gpm import comes_from_counters
from exporter.nvml.plan import Plan
from exporter.nvml.protocol import Driver, DriverUnavailableError, Nvml, Value
from slicewatch.catalog.model import Probe
from slicewatch.catalog.readings.utilization import Utilization
from slicewatch.wire.layout import Device

Clock = Callable[[], int]
"""Microseconds since 1970."""

_YEAR_NANOSECONDS: Final = 365 * 86_400 * 10**9


def real_driver(now_us: Clock) -> Nvml:
    """Return this machine's NVML, which keeps samples of the future: the doctor looks for them."""
    from exporter.nvml.real import RealNvml

    return RealNvml(cpu_nanoseconds=lambda: 1000 * now_us() + _YEAR_NANOSECONDS)


def ask(
    nvml: Nvml, now_us: Clock, *, counters: bool, until: float
) -> tuple[Driver | NoAnswer, tuple[Gpu, ...]]:
    """Return what NVML and every GPU answered; NVML stays started where a GPU hangs.

    Args:
        nvml: not started.
        now_us: the clock that the driver should have.
        counters: whether to take samples of GPM.
        until: on the monotonic clock; a third of the time is left to the GPUs.
    """
    now = time.monotonic()
    started = Question(lambda: _start(nvml)).answer(until - (until - now) / 3)
    if isinstance(started, NoAnswer):
        return started, ()
    driver, count = started
    if isinstance(driver, NoAnswer):
        return driver, ()
    examinations = [Examination(nvml, i, now_us, counters=counters) for i in range(count)]
    gpus = tuple(one.gpu(until) for one in examinations)
    if not any(one.hangs for one in examinations):
        Question(nvml.stop).answer(until)
    return driver, gpus


def _start(nvml: Nvml) -> tuple[Driver | NoAnswer, int]:
    try:
        return nvml.start(), nvml.count()
    except DriverUnavailableError as error:
        return NoAnswer(str(error), error.reason), 0


class Examination:
    """One GPU, read once.

    Attributes:
        step: the call that it is in, for those who wait in vain.
    """

    def __init__(self, nvml: Nvml, index: int, now_us: Clock, *, counters: bool) -> None:
        self.step = "its identity"
        self._nvml, self._index = nvml, index
        self._now_us, self._counters = now_us, counters
        self._question = Question(self._examine)

    @property
    def hangs(self) -> bool:
        """Tell whether it is still inside the driver."""
        return self._question.open

    def gpu(self, until: float) -> Gpu:
        """Return what the GPU answered until then."""
        answer = self._question.answer(until)
        if isinstance(answer, NoAnswer):
            return Gpu(index=self._index, silence=f"{answer.why} when asked for {self.step}")
        return answer

    def _examine(self) -> Gpu:
        found = self._nvml.identify(self._index)
        if not isinstance(found, Value):
            return Gpu(index=self._index, silence=word(found))
        session = self._nvml.open(found.value)
        try:
            self.step = "its devices"
            devices = session.devices()
            if not isinstance(devices, Value):
                return Gpu(index=self._index, silence=word(devices))
            reads, ahead = [], None
            for device, probe in self._asked(devices.value):
                self.step = f"{probe.name} of {device.uuid}"
                reads.append(Read(device, probe, session.read(probe, device)))
                ahead = self._ahead(reads[-1]) or ahead
            return Gpu(
                index=self._index, devices=devices.value, reads=tuple(reads), ahead_seconds=ahead,
                mig_change_pending=session.mig_change_pending,
            )  # fmt: skip
        finally:
            session.close()

    def _asked(self, devices: tuple[Device, ...]) -> Iterator[tuple[Device, Probe[Any]]]:
        plan = Plan.of(())
        for device in devices:
            for probe in plan.of_device(device).probes:
                if self._counters or not comes_from_counters(probe.name, device):
                    yield device, probe

    def _ahead(self, read: Read) -> float | None:
        """Return how far a sample of the driver's clock is ahead; those of GPM have our clock."""
        counted = comes_from_counters(read.probe.name, read.device)
        reading = read.outcome.value if isinstance(read.outcome, Value) else None
        if counted or not isinstance(reading, Utilization) or not reading.samples:
            return None
        return (reading.samples[-1][0] - self._now_us()) / 1e6
