"""One device over time: the current value of each of its metrics, and why some are missing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from exporter.measure.windows import Grid, Window
from exporter.nvml.plan import ScopePlan
from exporter.nvml.protocol import Outcome, Unsupported, Value
from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Labelled, Metric, Probe, Publish, Scope
from slicewatch.service.exposition import own_labels_text
from slicewatch.wire.layout import Device

# Those that have a column of device values, in the catalog's order.
METRICS = CATALOG.of(Probe)
# Those of MIG instances first, so that the series of their windows are the beginning of a board's.
WINDOWED = tuple(
    sorted((m for m in METRICS if m.windowed), key=lambda m: Scope.MIG not in m.scopes)
)

# The value of a metric that has labels of its own: a number per text of these labels.
Variants = dict[str, float]
Held = float | Variants | None

# Why a part of a reading is missing where the rest is there.
OF_BOARD = "device"

# A reading speaks of the time since the one before it, but not of a long silence.
LONGEST_ELAPSED_TICKS = 2

_COLUMN = {m.name: index for index, m in enumerate(METRICS)}
_SERIES = {m.name: index for index, m in enumerate(WINDOWED)}
_SERIES_ON_MIG = sum(Scope.MIG in m.scopes for m in WINDOWED)


@dataclass(frozen=True, slots=True)
class Cell:
    """A metric with its place in a row and, if it is windowed, in the row's window.

    Attributes:
        flows: it adds to what was before, as a total or with a time of its own; the others hold
            until the next reading.
    """

    metric: Metric[Any]
    value: Callable[[Any], Any]
    column: int
    series: int | None
    flows: bool
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
            metric.publish is Publish.ACCUMULATED or metric.weight is not None,
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
        return cls(probe, cells, any(cell.flows for cell in cells))


def fillings(plan: ScopePlan) -> tuple[Filling, ...]:
    """Return what each probe of a plan fills, in the plan's order."""
    return tuple(
        Filling.of(probe, metrics)
        for probe, metrics in zip(plan.probes, plan.metrics, strict=True)
    )


class Row:
    """The state of one device.

    Args:
        grid: of all windows of the node.
        reject: called with the name of a metric whose value could not be true.

    Attributes:
        at: monotonic seconds of the last pass over the device; None before the first.
        values: per metric of ``METRICS``, the value of the last pass (the running total of an
            accumulated one; of a labelled one its variants), or None.
        reasons: per metric, why the device cannot report it; None where it can.
        window: of the metrics of ``WINDOWED``; on a MIG instance the first of them, and no more.
    """

    def __init__(self, device: Device, grid: Grid, reject: Callable[[str], None]) -> None:
        self.device = device
        self.at: float | None = None
        self.values: list[Held] = [None] * len(METRICS)
        self.reasons: list[str | None] = [None] * len(METRICS)
        self.window = Window(_SERIES_ON_MIG if device.is_mig else len(WINDOWED), grid)
        self._tick_seconds = grid.tick_seconds
        self._reject = reject
        # Totals outlive a time in which they cannot be read and are not shown: a counter that
        # starts anew while the process lives is a lie about the time before.
        self._totals: dict[int, float] = {}
        self._last: dict[int, Outcome[Any]] = {}
        self._settled: Sequence[Outcome[Any] | None] | None = None
        # How often a reason came, went or changed.
        self._moved = 0

    def update(
        self, plan: Sequence[Filling], outcomes: Sequence[Outcome[Any] | None], at: float
    ) -> bool:
        """Take the outcomes of a pass, one per probe; None leaves its metrics as they are.

        Returns:
            Whether a reason came, went or changed.
        """
        tick, before = self._tick_seconds, self._moved
        elapsed = tick if self.at is None else min(at - self.at, LONGEST_ELAPSED_TICKS * tick)
        self.at = at
        # Most of what is read stays as it was: memory for hours, clocks for seconds.
        if outcomes != self._settled:
            known = self._last
            settled = True
            for index, outcome in enumerate(outcomes):
                if outcome is None or outcome == known.get(index):
                    continue
                lasts = self._change(plan[index], outcome, elapsed)
                if lasts:
                    known[index] = outcome
                else:
                    known.pop(index, None)
                    settled = False
            self._settled = outcomes if settled else None
        self.window.let_pass(elapsed)
        return self._moved != before

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

    def _change(self, filling: Filling, outcome: Outcome[Any], elapsed: float) -> bool:
        """Take an outcome; return whether the same one would change nothing the next time."""
        if type(outcome) is Value:
            consistent = filling.probe.consistent
            if consistent is not None and not consistent(outcome.value):
                self._disbelieve(filling)
                return False
            # What is not believed is counted each time; what flows is never the same again.
            return self._take(filling, outcome.value, elapsed) and not filling.flows
        if isinstance(outcome, Unsupported):
            self._withdraw(filling, outcome.reason)
        else:
            self._miss(filling)
        return True

    def _take(
        self,
        filling: Filling,
        reading: Any,  # noqa: ANN401 - the cells' metrics fix its type
        elapsed: float,
    ) -> bool:
        """Fill the cells of a reading; return whether all of it can be true."""
        believed, values, reasons, held = True, self.values, self.reasons, self.window.held
        for cell in filling.cells:
            value, reason = cell.value(reading), None
            if cell.labelled:
                believed &= self._spread(cell, value or {})
            else:
                if value is None:
                    # A board may have one part of what is read together and lack the other.
                    reason = None if filling.flows else OF_BOARD
                elif not cell.low <= value <= cell.high:
                    self._reject(cell.metric.name)
                    value, believed = None, False
                if cell.flows:
                    self._add(cell, value, reading, elapsed)
                else:
                    values[cell.column] = value
                    if cell.series is not None:
                        held[cell.series] = value
            if reasons[cell.column] is not reason:
                self._explain(cell, reason)
        return believed

    def _disbelieve(self, filling: Filling) -> None:
        """Reject a reading whose parts contradict each other."""
        for cell in filling.cells:
            self._reject(cell.metric.name)
        self._miss(filling)

    def _spread(self, cell: Cell, found: Labelled) -> bool:
        """Fill a labelled cell; return whether all of its values can be true."""
        stated = sum(value is not None for value in found.values())
        variants = cell.variants(found, self._reject)
        self.values[cell.column] = variants or None
        return len(variants) == stated

    def _add(
        self,
        cell: Cell,
        value: float | None,
        reading: Any,  # noqa: ANN401
        elapsed: float,
    ) -> None:
        """Add a value to what was before: to a total, or with its own time to the window."""
        column, weigh = cell.column, cell.metric.weight
        if cell.accumulated:
            if value is not None:
                self._totals[column] = self._totals.get(column, 0.0) + value
            self.values[column] = self._totals.get(column)
            return
        self.values[column] = value
        if weigh is not None and cell.series is not None and value is not None:
            weight = weigh(reading)
            self.window.add(cell.series, value, elapsed if weight is None else weight)

    def _miss(self, filling: Filling) -> None:
        """A read brought nothing. A total stays what it was: the next read goes on from there."""
        for cell in filling.cells:
            self._explain(cell, None)
            if not cell.accumulated:
                self.values[cell.column] = None
                if cell.series is not None:
                    self.window.held[cell.series] = None

    def _withdraw(self, filling: Filling, reason: str) -> None:
        """Note why the metrics cannot be read; what was read before is withdrawn with it."""
        for cell in filling.cells:
            self._explain(cell, reason)
            self.values[cell.column] = None
            if cell.series is not None:
                self.window.forget(cell.series)

    def _explain(self, cell: Cell, reason: str | None) -> None:
        if self.reasons[cell.column] != reason:
            self.reasons[cell.column] = reason
            self._moved += 1
