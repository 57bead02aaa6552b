"""One device over time: the current value of each of its metrics, and why some are missing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from exporter.measure.plan import ScopePlan
from exporter.measure.windows import Windows
from exporter.nvml.protocol import Outcome, Unsupported, Value
from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Labelled, Metric, Probe, Publish
from slicewatch.service.exposition import own_labels_text
from slicewatch.wire.layout import Device

# Those that have a column of device values, in the catalog's order.
METRICS = CATALOG.of(Probe)
WINDOWED = tuple(m for m in METRICS if m.windowed)

# The value of a metric that has labels of its own: a number per text of these labels.
Variants = dict[str, float]
Held = float | Variants | None

# Why a part of a reading is missing where the rest is there.
OF_BOARD = "device"

# A reading speaks of the time since the one before it, but not of a long silence.
LONGEST_ELAPSED_TICKS = 2

_COLUMN = {m.name: index for index, m in enumerate(METRICS)}
_SERIES = {m.name: index for index, m in enumerate(WINDOWED)}


@dataclass(frozen=True, slots=True)
class Cell:
    """A metric with its place in a row and, if it is windowed, in the windows."""

    metric: Metric[Any]
    value: Callable[[Any], Any]
    column: int
    series: int | None
    accumulated: bool
    labelled: bool
    low: float
    high: float

    @classmethod
    def of(cls, metric: Metric[Any]) -> "Cell":
        """Look up the places of a metric."""
        if metric.value is None:
            raise TypeError(f"{metric.name} says nothing of how it comes from its reading")
        return cls(
            metric,
            metric.value,
            _COLUMN[metric.name],
            _SERIES.get(metric.name),
            metric.publish is Publish.ACCUMULATED,
            bool(metric.labels),
            metric.limits.low,
            metric.limits.high,
        )

    def variants(self, found: Labelled, reject: Callable[[str], None]) -> Variants:
        """Return what can be true of a labelled metric's values, by the text of their labels."""
        known: Variants = {}
        for key, value in found.items():
            if value is None:
                continue
            if self.metric.limits.hold(value):
                known[own_labels_text(self.metric, key)] = value
            else:
                reject(self.metric.name)
        return known


@dataclass(frozen=True, slots=True)
class Filling:
    """A probe and the cells of a row that its reading fills.

    Attributes:
        flows: each reading adds to what was before, even if it equals the last one.
    """

    probe: Probe[Any]
    cells: tuple[Cell, ...]
    flows: bool

    @classmethod
    def of(cls, probe: Probe[Any], metrics: Sequence[Metric[Any]]) -> "Filling":
        """Look up the places of a probe's metrics."""
        cells = tuple(map(Cell.of, metrics))
        return cls(probe, cells, any(cell.accumulated or cell.metric.weight for cell in cells))


def fillings(plan: ScopePlan) -> tuple[Filling, ...]:
    """Return what each probe of a plan fills, in the plan's order."""
    return tuple(
        Filling.of(probe, metrics)
        for probe, metrics in zip(plan.probes, plan.metrics, strict=True)
    )


class Row:
    """The state of one device.

    Attributes:
        at: monotonic seconds of the last pass over the device; None before the first.
        values: per metric of ``METRICS``, the value of the last pass (the running total of an
            accumulated one; of a labelled one its variants), or None.
        reasons: per metric, why the device cannot report it; None where it can.
    """

    def __init__(self, device: Device, slot: int) -> None:
        self.device = device
        self.slot = slot
        self.at: float | None = None
        self.values: list[Held] = [None] * len(METRICS)
        self.reasons: list[str | None] = [None] * len(METRICS)
        # Totals outlive a time in which they cannot be read and are not shown: a counter that
        # starts anew while the process lives is a lie about the time before.
        self._totals: dict[int, float] = {}
        self._last: dict[int, Outcome[Any]] = {}
        self._settled: Sequence[Outcome[Any] | None] | None = None
        # How often a reason came, went or changed.
        self._moved = 0

    def update(
        self,
        plan: Sequence[Filling],
        outcomes: Sequence[Outcome[Any] | None],
        at: float,
        windows: Windows,
        reject: Callable[[str], None],
    ) -> bool:
        """Take the outcomes of a pass, one per probe; None leaves its metrics as they are.

        Returns:
            Whether a reason came, went or changed.
        """
        tick = windows.tick_seconds
        elapsed = tick if self.at is None else min(at - self.at, LONGEST_ELAPSED_TICKS * tick)
        self.at = at
        changed = False
        # Most of what is read stays as it was: memory for hours, clocks for seconds.
        if outcomes != self._settled:
            for index, outcome in enumerate(outcomes):
                if outcome is not None and outcome != self._last.get(index):
                    changed |= self._change(index, plan[index], outcome, elapsed, windows, reject)
            known = self._last
            settled = all(o is None or index in known for index, o in enumerate(outcomes))
            self._settled = outcomes if settled else None
        windows.let_pass(self.slot, elapsed)
        return changed

    def plain(self, column: int) -> float | None:
        """Return the value of a metric without labels of its own."""
        value = self.values[column]
        return None if isinstance(value, dict) else value

    def start_anew(self) -> None:
        """Forget what the last readings were: others are read from now on. Totals stay."""
        self.values = [None] * len(METRICS)
        self.reasons = [None] * len(METRICS)
        self._last.clear()
        self._settled = None

    def _change(
        self,
        index: int,
        filling: Filling,
        outcome: Outcome[Any],
        elapsed: float,
        windows: Windows,
        reject: Callable[[str], None],
    ) -> bool:
        self._last.pop(index, None)
        before = self._moved
        if isinstance(outcome, Value):
            believed = self._take(filling, outcome.value, elapsed, windows, reject)
            # What is not believed is counted each time; what flows is never the same again.
            if believed and not filling.flows:
                self._last[index] = outcome
            return self._moved != before
        self._last[index] = outcome
        if isinstance(outcome, Unsupported):
            self._withdraw(filling, outcome.reason, windows)
        else:
            self._miss(filling, windows)
        return self._moved != before

    def _take(
        self,
        filling: Filling,
        reading: Any,  # noqa: ANN401 - the cells' metrics fix its type
        elapsed: float,
        windows: Windows,
        reject: Callable[[str], None],
    ) -> bool:
        """Fill the cells of a reading; return whether all of it can be true."""
        consistent = filling.probe.consistent
        believable = believed = consistent is None or consistent(reading)
        reasons = self.reasons
        for cell in filling.cells:
            value = cell.value(reading) if believable else None
            reason = None
            if not believable:
                reject(cell.metric.name)
            if cell.labelled:
                believed &= self._spread(cell, value or {}, reject)
            else:
                if value is None:
                    # A board may have one part of what is read together and lack the other.
                    reason = OF_BOARD if believable and not filling.flows else None
                elif not cell.low <= value <= cell.high:
                    reject(cell.metric.name)
                    value, believed = None, False
                self._fill(cell, value, reading, elapsed, windows)
            if reasons[cell.column] is not reason:
                self._explain(cell, reason)
        return believed

    def _spread(self, cell: Cell, found: Labelled, reject: Callable[[str], None]) -> bool:
        """Fill a labelled cell; return whether all of its values can be true."""
        stated = sum(value is not None for value in found.values())
        variants = cell.variants(found, reject)
        self.values[cell.column] = variants or None
        return len(variants) == stated

    def _fill(
        self,
        cell: Cell,
        value: float | None,
        reading: Any,  # noqa: ANN401
        elapsed: float,
        windows: Windows,
    ) -> None:
        column, weigh = cell.column, cell.metric.weight
        if cell.accumulated:
            if value is not None:
                self._totals[column] = self._totals.get(column, 0.0) + value
            self.values[column] = self._totals.get(column)
            return
        self.values[column] = value
        if cell.series is None:
            return
        if weigh is None:
            windows.hold(self.slot, cell.series, value)
        elif value is not None:
            weight = weigh(reading)
            windows.add(self.slot, cell.series, value, elapsed if weight is None else weight)

    def _miss(self, filling: Filling, windows: Windows) -> None:
        """A read brought nothing. A total stays what it was: the next read goes on from there."""
        for cell in filling.cells:
            self._explain(cell, None)
            if not cell.accumulated:
                self.values[cell.column] = None
                if cell.series is not None:
                    windows.hold(self.slot, cell.series, None)

    def _withdraw(self, filling: Filling, reason: str, windows: Windows) -> None:
        """Note why the metrics cannot be read; what was read before is withdrawn with it."""
        for cell in filling.cells:
            self._explain(cell, reason)
            self.values[cell.column] = None
            if cell.series is not None:
                windows.forget(self.slot, cell.series)

    def _explain(self, cell: Cell, reason: str | None) -> None:
        if self.reasons[cell.column] != reason:
            self.reasons[cell.column] = reason
            self._moved += 1
