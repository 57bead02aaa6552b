"""All devices of the node: takes what the passes read, gives Layout and Snapshot."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import msgspec

from exporter.measure.attribution import Uses
from exporter.measure.columns import NOTHING, Columns, by_metric
from exporter.measure.inventory import GpuState, Inventory
from exporter.measure.prices import Prices
from exporter.measure.row import METRICS, Filling, Row, fillings
from exporter.measure.substitute import UTILIZATION, Substitute
from exporter.measure.windows import Grid
from exporter.nvml.plan import Plan
from exporter.nvml.protocol import Failed, Lost, Slot, Value
from exporter.nvml.reader import Cycle
from exporter.tenants.tenants import Holders
from slicewatch.catalog.model import Object, Scope
from slicewatch.wire.layout import Device, Layout
from slicewatch.wire.snapshot import Column, Snapshot

_COLUMN = {metric.name: index for index, metric in enumerate(METRICS)}
_CAPACITY = _COLUMN["gpu_memory_total_bytes"]
_PRESSURE = (_COLUMN["gpu_gpm_sm_ratio"], _COLUMN["gpu_gpm_dram_ratio"])

# Reasons of a host without virtual GPUs, and of a machine that is not a guest.
OF_OTHER_MACHINES = frozenset({"no_vgpu_host", "no_vgpu_guest"})

# Of a GPU that answered last time, but longer ago than a value may be old.
NOT_READ = "not_read"


@dataclass(kw_only=True)
class Board:
    """The current state of every device of the node.

    Args:
        run: names this life of the process on the wire.
        stale_seconds: a GPU that was not read for longer counts as not answering.
        prices: what devices cost.
        substitute: knows the utilization of MIG instances where NVML does not.
        reject: called with the name of a metric whose value could not be true.
    """

    run: str
    node: str
    labels: dict[str, str]
    window_seconds: float
    tick_seconds: float
    stale_seconds: float
    reject: Callable[[str], None]
    driver: str = ""
    prices: Prices = field(default_factory=lambda: Prices({}))
    substitute: Substitute | None = None

    def __post_init__(self) -> None:
        self._grid = Grid(window_seconds=self.window_seconds, tick_seconds=self.tick_seconds)
        self._inventory = Inventory(self._grid, self.reject)
        self._plan: Plan | None = None
        self._fillings: dict[bool, tuple[Filling, ...]] = {}
        self._columns = Columns(frozenset())
        self._sequence = 0
        self._layout: Layout | None = None
        self._laid_out_for: tuple[object, ...] = ()
        self._reasons_changed = 0
        # From when to when nobody was to ask the GPUs, the last time.
        self._held = (-math.inf, -math.inf)

    @property
    def devices(self) -> tuple[Device, ...]:
        """Return the devices in the order of the rows; the same object until they change."""
        return self._inventory.devices

    def begin(self, driver: str, slots: Iterable[Slot], now: float) -> None:
        """Take what a start of NVML found; a GPU that was known keeps its row and its totals."""
        self.driver = driver
        self._held = (self._held[0], min(now, self._held[1]))
        self._inventory.begin(slots, now)

    def end(self, reason: str) -> None:
        """No GPU answers any more: the driver is gone."""
        self._held = (-math.inf, -math.inf)
        self._inventory.end(reason)

    def hold(self, now: float) -> None:
        """Keep what was read last until the next ``begin`` or ``end``: nobody asks meanwhile.

        No GPU goes down for that, windows stand still; ages grow.
        """
        self._held = (now, math.inf)

    def merge(self, cycles: Iterable[Cycle], now: float) -> None:
        """Take the passes that came in since the last call.

        A pass that failed, without a word on why, changes nothing: the next one may work, and if
        none does the GPU is stale soon.
        """
        if now > self._held[1]:
            self._grid.advance(now)
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

    def up(self, now: float) -> list[bool]:
        """Return which devices answer."""
        up: list[bool] = []
        for state in self._inventory.gpus:
            up += [self._is_up(state, now)] * len(state.rows)
        return up

    def capacity(self) -> Column:
        """Return the memory of each device in bytes, as far as it is known."""
        return [row.plain(_CAPACITY) for row in self._inventory.rows]

    def pressure(self) -> Column:
        """Return how busy the busier of SMs and memory of each device is, 0 to 1, if known."""
        return [_largest(map(row.plain, _PRESSURE)) for row in self._inventory.rows]

    def publish(
        self,
        now: float,
        holders: Holders,
        uses: Uses,
        events: Mapping[str, Column] = MappingProxyType({}),
    ) -> tuple[Layout, Snapshot]:
        """Return the layout, the same object while nothing of it changes, and a new snapshot.

        Args:
            now: monotonic seconds.
            holders: what the kubelet says.
            uses: who uses the present devices.
            events: counts of what happened on them; shown of a GPU that is down too.
        """
        rows = self._inventory.rows
        up = self.up(now)
        known = None if self.substitute is None else self.substitute.ask(rows, now)
        layout = self._lay_out(holders, uses)
        self._sequence += 1
        means = self._means(up)
        values = {**self._columns.of(rows, up, means), **uses.of_devices, **events}
        values |= self.prices.columns(self.devices)
        if self.substitute is not None and known is not None:
            known = [value if is_up else None for value, is_up in zip(known, up, strict=True)]
            for columns in (values, means):
                self.substitute.fill(columns, known)
            values |= self.substitute.mark(known)
        return layout, Snapshot(
            run=self.run,
            layout=layout.number,
            sequence=self._sequence,
            clock=now,
            up=up,
            ages=[None if row.at is None else now - row.at for row in rows],
            values=values,
            means=means,
            tenant_values=uses.of_tenants,
            shares=uses.shares,
            tenants_age=holders.age_seconds,
        )

    def _update(self, cycle: Cycle, devices: tuple[Device, ...]) -> None:
        rows = self._inventory.place(cycle.gpu, devices)
        if self._plan is not None and cycle.plan.number < self._plan.number:
            # It hung when the plan changed; to go back to its plan would cost all others what is
            # read once an hour.
            return
        self._follow(cycle.plan)
        for row, outcomes in zip(rows, cycle.readings, strict=True):
            plan = self._fillings[row.device.is_mig]
            self._reasons_changed += row.update(plan, outcomes, cycle.at)

    def _follow(self, plan: Plan) -> None:
        """Take what a pass reads for what all passes read from now on."""
        if plan is self._plan:
            return
        self._plan = plan
        self._fillings = {False: fillings(plan.gpu), True: fillings(plan.mig)}
        self._columns = Columns(plan.metrics)
        for row in self._inventory.rows:
            row.start_anew()

    def _is_up(self, state: GpuState, now: float) -> bool:
        seen, (began, ended) = state.last_seen_at(), self._held
        unasked = min(now, ended) - began if seen <= began else 0.0
        return not state.silent and now - seen - unasked <= self.stale_seconds

    def _lay_out(self, holders: Holders, uses: Uses) -> Layout:
        # All but the first comparison end at identity while nothing changes.
        made_of = (
            self._reasons_changed, self._inventory.devices, self.driver, self.labels,
            holders.known, uses.tenants, uses.reasons, self._substitute_reasons(),
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
            tenants=uses.tenants,
            tenants_known=holders.known,
            support=_support(self._inventory.rows) | uses.reasons | self._substitute_reasons(),
        )
        if before is not None:
            if layout == before:
                return before
            layout = msgspec.structs.replace(layout, number=before.number + 1)
        self._layout = layout
        return layout

    def _substitute_reasons(self) -> dict[str, tuple[str | None, ...]]:
        return {} if self.substitute is None else {UTILIZATION: self.substitute.reasons}

    def _means(self, up: Sequence[bool]) -> dict[str, Column]:
        """Return one column per windowed metric, without what is not known."""
        rows = zip(self._inventory.rows, up, strict=True)
        return by_metric([row.window.means() if is_up else NOTHING for row, is_up in rows])


def _missing(reason: str | None) -> str | None:
    return None if reason in OF_OTHER_MACHINES else reason


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _support(rows: Sequence[Row]) -> dict[str, tuple[str | None, ...]]:
    """Return, per metric that some device cannot report, each device's reason.

    A metric that the adapter serves and that is not made for MIG instances has its reason there
    too: an HPA may ask for it, and the answer has to say why there is none. What is made for
    another kind of machine is not missing.
    """
    support: dict[str, tuple[str | None, ...]] = {}
    for index, metric in enumerate(METRICS):
        to_pods = metric.serve is not None and Object.POD in metric.serve.objects
        on_mig = "mig_instance" if to_pods and Scope.MIG not in metric.scopes else None
        reasons = tuple(
            _missing(row.reasons[index]) or (on_mig if row.device.is_mig else None) for row in rows
        )
        if any(reasons):
            support[metric.name] = reasons
    return support
