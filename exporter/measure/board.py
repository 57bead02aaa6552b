"""All devices of the node: takes what the passes read, gives Layout and Snapshot."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from exporter.measure.inventory import GpuState, Inventory
from exporter.measure.plan import Plan
from exporter.measure.row import METRICS, WINDOWED, Row, fillings
from exporter.measure.windows import Windows
from exporter.nvml.protocol import Failed, Lost, Slot, Value
from exporter.nvml.reader import Cycle
from exporter.tenants.tenants import Holders
from slicewatch.catalog.model import Publish, Scope
from slicewatch.wire.layout import Device, Layout
from slicewatch.wire.snapshot import Column, Snapshot

# Of a GPU that answered last time, but longer ago than a value may be old.
NOT_READ = "not_read"

_NOTHING: tuple[None, ...] = (None,) * len(METRICS)


@dataclass(kw_only=True)
class Board:
    """The current state of every device of the node.

    Args:
        run: names this life of the process on the wire.
        stale_seconds: a GPU that was not read for longer counts as not answering.
        reject: called with the name of a metric whose value could not be true.
    """

    run: str
    node: str
    labels: dict[str, str]
    window_seconds: float
    tick_seconds: float
    stale_seconds: float
    reject: Callable[[str], None]
    plan: Plan = field(default_factory=Plan.of_catalog)
    driver: str = ""

    def __post_init__(self) -> None:
        self._windows = Windows(
            series=len(WINDOWED),
            window_seconds=self.window_seconds,
            tick_seconds=self.tick_seconds,
        )
        self._inventory = Inventory(self._windows)
        self._fillings = {False: fillings(self.plan.gpu), True: fillings(self.plan.mig)}
        self._sequence = 0
        self._layout: Layout | None = None
        self._laid_out_for: tuple[object, ...] = ()
        self._reasons_changed = 0

    @property
    def devices(self) -> tuple[Device, ...]:
        """Return the devices in the order of the rows; the same object until they change."""
        return self._inventory.devices

    def begin(self, driver: str, slots: Iterable[Slot], now: float) -> None:
        """Take what a start of NVML found; a GPU that was known keeps its row and its totals."""
        self.driver = driver
        self._inventory.begin(slots, now)

    def end(self, reason: str) -> None:
        """No GPU answers any more: the driver is gone."""
        self._inventory.end(reason)

    def merge(self, cycles: Iterable[Cycle], now: float) -> None:
        """Take the passes that came in since the last call.

        A pass that failed, without a word on why, changes nothing: the next one may work, and if
        none does the GPU is stale soon.
        """
        self._windows.advance(now)
        for cycle in cycles:
            found = cycle.devices
            if isinstance(found, Value):
                self._update(cycle, found.value)
            elif isinstance(found, Lost):
                self._inventory.silence(cycle.gpu, found.reason)
            elif isinstance(found, Failed) and found.reinitialise:
                self._inventory.silence(cycle.gpu, "no_driver")

    def silent(self, now: float) -> dict[Device, str]:
        """Return the GPUs that do not answer, and why, in one word."""
        return {
            state.device: state.silent or NOT_READ
            for state in self._inventory.gpus
            if not self._is_up(state, now)
        }

    def publish(self, now: float, holders: Holders) -> tuple[Layout, Snapshot]:
        """Return the layout, the same object while nothing of it changes, and a new snapshot."""
        rows = self._inventory.rows
        up: list[bool] = []
        for state in self._inventory.gpus:
            up += [self._is_up(state, now)] * len(state.rows)
        layout = self._lay_out(holders)
        self._sequence += 1
        means, peaks = self._windowed(up)
        return layout, Snapshot(
            run=self.run,
            layout=layout.number,
            sequence=self._sequence,
            clock=now,
            up=up,
            ages=[None if row.at is None else now - row.at for row in rows],
            values=_values(rows, up, means),
            means=means,
            peaks=peaks,
            tenants_age=holders.age_seconds,
        )

    def _update(self, cycle: Cycle, devices: tuple[Device, ...]) -> None:
        rows = self._inventory.place(cycle.gpu, devices)
        for row, outcomes in zip(rows, cycle.readings, strict=True):
            plan = self._fillings[row.device.is_mig]
            changed = row.update(plan, outcomes, cycle.at, self._windows, self.reject)
            self._reasons_changed += changed

    def _is_up(self, state: GpuState, now: float) -> bool:
        return not state.silent and now - state.last_seen_at() <= self.stale_seconds

    def _lay_out(self, holders: Holders) -> Layout:
        # All but the first comparison end at identity while nothing changes.
        made_of = (
            self._reasons_changed, self._inventory.devices, self.driver,
            holders.known, holders.tenants,
        )  # fmt: skip
        before = self._layout
        if before is not None and made_of == self._laid_out_for:
            return before
        self._laid_out_for = made_of
        layout = Layout(
            run=self.run,
            number=before.number if before else 1,
            node=self.node,
            driver=self.driver,
            window_seconds=self.window_seconds,
            labels=self.labels,
            devices=self._inventory.devices,
            tenants=holders.tenants,
            tenants_known=holders.known,
            support=_support(self._inventory.rows),
        )
        if before is not None:
            if layout == before:
                return before
            layout = msgspec.structs.replace(layout, number=before.number + 1)
        self._layout = layout
        return layout

    def _windowed(self, up: Sequence[bool]) -> tuple[dict[str, Column], dict[str, Column]]:
        """Return means and peaks, one column per windowed metric, without what is not known."""
        by_row = self._windows.summary()[:, self._inventory.slots]
        if not all(up):
            by_row[:, ~np.asarray(up, dtype=bool)] = np.nan
        means, peaks = by_row.transpose(0, 2, 1).tolist()
        return _known(means), _known(peaks)


def _known(columns: list[list[float]]) -> dict[str, Column]:
    return {
        metric.name: [value if value == value else None for value in column]
        for metric, column in zip(WINDOWED, columns, strict=True)
    }


def _values(
    rows: Sequence[Row], up: Sequence[bool], means: dict[str, Column]
) -> dict[str, Column]:
    shown = [row.values if is_up else _NOTHING for row, is_up in zip(rows, up, strict=True)]
    by_metric = map(list, zip(*shown, strict=True)) if shown else ([] for _ in METRICS)
    return {
        metric.name: means[metric.name] if metric.publish is Publish.WINDOW_MEAN else column
        for metric, column in zip(METRICS, by_metric, strict=True)
    }


def _support(rows: Sequence[Row]) -> dict[str, tuple[str | None, ...]]:
    """Return, per metric that some device cannot report, each device's reason.

    A metric that the adapter serves and that is not made for MIG instances has its reason there
    too: an HPA may ask for it, and the answer has to say why there is none.
    """
    support: dict[str, tuple[str | None, ...]] = {}
    for index, metric in enumerate(METRICS):
        on_mig = "mig_instance" if metric.serve and Scope.MIG not in metric.scopes else None
        reasons = tuple(
            row.reasons[index] or (on_mig if row.device.is_mig else None) for row in rows
        )
        if any(reasons):
            support[metric.name] = reasons
    return support
