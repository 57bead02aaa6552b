"""The last answer of each GPU to each read, whatever it was.

Kept by reference in every tick and encoded only when somebody asks, which is rarely: ticks are
frequent. Nothing here decides what an answer means.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from exporter.nvml.plan import Plan
from exporter.nvml.protocol import Failed, Lost, Outcome, Unsupported, Value
from exporter.nvml.reader import Cycle
from slicewatch.catalog.model import Probe
from slicewatch.wire import evidence as wire

# Instead of NVML's name for an error: the driver called it a success, and it cannot be one.
INCONSISTENT: Final = "INCONSISTENT"

_encoder: Final = msgspec.json.Encoder()


class GpuReadings:
    """The last answers of one GPU.

    Attributes:
        answered_at: when its last pass went through, else when it was found; of the monotonic
            clock.
    """

    def __init__(self, found_at: float) -> None:
        self.answered_at = found_at
        self._plan: Plan | None = None
        self._outcomes: list[Outcome[Any] | None] = []
        self._times: list[float] = []
        self._refusal: Unsupported | Failed | Lost | None = None
        self._refused_at = found_at

    def take(self, cycle: Cycle) -> None:
        """Take a pass; one that found no devices says the same of every read."""
        found = cycle.devices
        if not isinstance(found, Value):
            self._refusal, self._refused_at = found, cycle.at
            return
        self._refusal, self.answered_at = None, cycle.at
        if cycle.plan is not self._plan:
            self._plan = cycle.plan
            count = len(cycle.plan.gpu.probes)
            self._outcomes, self._times = [None] * count, [0.0] * count
        for index, outcome in enumerate(cycle.readings[0]):
            if outcome is not None:
                self._outcomes[index] = outcome
                self._times[index] = cycle.at

    def on_wire(self, now: float) -> dict[str, wire.Reading]:
        """Return the answers by the names of the probes, without those never asked."""
        if self._plan is None:
            return {}
        asked = zip(self._plan.gpu.probes, self._outcomes, self._times, strict=True)
        if self._refusal is not None:
            refused = _on_wire(None, self._refusal, now - self._refused_at)
            return {probe.name: refused for probe, outcome, _ in asked if outcome is not None}
        return {
            probe.name: _on_wire(probe, outcome, now - at)
            for probe, outcome, at in asked
            if outcome is not None
        }


class Readings:
    """The last answers of all GPUs, by uuid. One that does not answer any more stays."""

    def __init__(self) -> None:
        self._of_gpu: dict[str, GpuReadings] = {}

    def begin(self, found: Iterable[str], now: float) -> None:
        """NVML was started: what was read before is of another life of the driver.

        Args:
            found: uuids of the GPUs that it found.
            now: of the monotonic clock.
        """
        before = {uuid: readings.answered_at for uuid, readings in self._of_gpu.items()}
        answered = dict.fromkeys(found, now) | before
        self._of_gpu = {uuid: GpuReadings(at) for uuid, at in answered.items()}

    def take(self, cycles: Iterable[Cycle]) -> None:
        """Take the passes of a tick."""
        for cycle in cycles:
            self._of_gpu[cycle.gpu.uuid].take(cycle)

    def of(self, uuid: str) -> GpuReadings:
        """Return the answers of a GPU that a start of NVML found."""
        return self._of_gpu[uuid]


def _on_wire(probe: Probe[Any] | None, outcome: Outcome[Any], age_seconds: float) -> wire.Reading:
    age = round(max(0.0, age_seconds), 3)
    if isinstance(outcome, Unsupported):
        return wire.Unsupported(reason=outcome.reason)
    if isinstance(outcome, Failed):
        return wire.Failed(error=outcome.error, age_seconds=age)
    if isinstance(outcome, Lost):
        return wire.Lost(reason=outcome.reason, age_seconds=age)
    if probe is not None and probe.consistent is not None and not probe.consistent(outcome.value):
        return wire.Failed(error=INCONSISTENT, age_seconds=age)
    return wire.Value(reading=msgspec.Raw(_encoder.encode(outcome.value)), age_seconds=age)
