"""From passes to snapshots: what is published of whom, and when the layout gets a new number."""

import dataclasses
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.measure.attribution import Uses
from exporter.measure.board import Board
from exporter.nvml.protocol import Failed, Lost, Slot, Unsupported, Value
from exporter.nvml.reader import Cycle
from exporter.tenants.tenants import Holders
from slicewatch.catalog.readings.power import Power
from slicewatch.catalog.readings.utilization import Utilization
from slicewatch.wire.layout import Tenant
from slicewatch.wire.snapshot import check_shape
from tests.unit.exporter.desk import PLAN, READINGS, make_gpu, make_mig

STALE = 5.0


class Table:
    """A board, the passes that it is given, and a clock."""

    def __init__(self, readings, make_gpu, make_mig):
        self.readings = readings
        self.gpu, self.mig = make_gpu, make_mig
        self.now = 1000.0
        self.rejected = []
        self.holders = Holders()
        self.board = Board(
            run="r", node="n", labels={"cluster": "c"}, window_seconds=15, tick_seconds=1,
            stale_seconds=STALE, reject=self.rejected.append,
        )  # fmt: skip

    def begin(self, *gpus, driver="580"):
        self.board.begin(driver, [Slot(index=g.gpu, gpu=Value(g)) for g in gpus], self.now)

    def cycle(self, *devices, **changed):
        """Return a pass that read all of these devices, the first of which is the GPU."""
        readings = tuple(
            tuple(self._outcomes(device, changed)[p.name] for p in PLAN.of_device(device).probes)
            for device in devices
        )
        return Cycle(
            gpu=devices[0],
            plan=PLAN,
            devices=Value(devices),
            readings=readings,
            at=self.now,
            spent={},
        )

    def _outcomes(self, device, changed):
        outcomes = {name: Value(reading) for name, reading in self.readings.items()}
        if device.mig_enabled or device.is_mig:
            reason = "mig_instance" if device.is_mig else "mig_enabled"
            outcomes["utilization"] = Unsupported(reason)
        return outcomes | changed

    def failed(self, gpu, outcome):
        return Cycle(gpu=gpu, plan=PLAN, devices=outcome, at=self.now, spent={})

    def tick(self, *cycles):
        self.board.merge(cycles, self.now)
        layout, snapshot = self.board.publish(
            self.now, self.holders, Uses(tenants=self.holders.tenants)
        )
        check_shape(layout, snapshot)
        self.now += 1
        return layout, snapshot


@pytest.fixture
def table(readings, gpu, mig):
    return Table(readings, gpu, mig)


def test_before_the_first_start_there_are_no_devices(table):
    layout, snapshot = table.tick()
    assert layout.devices == ()
    assert snapshot.up == []
    assert all(column == [] for column in snapshot.values.values())


def test_a_pass_is_published_in_the_rows_of_the_layout(table):
    one = table.gpu(0, mig_enabled=True)
    two, part = table.gpu(1), table.mig(table.gpu(0), 0)
    table.begin(one, two)
    layout, snapshot = table.tick(table.cycle(one, part), table.cycle(two))
    assert layout.devices == (one, part, two)
    assert snapshot.up == [True, True, True]
    assert snapshot.ages == [0, 0, 0]
    assert snapshot.values["gpu_power_usage_watts"] == [300, None, 300]
    assert snapshot.values["gpu_memory_used_bytes"] == [250, 250, 250]
    assert snapshot.values["gpu_utilization"] == [None, None, 40]
    assert snapshot.means["gpu_memory_used_bytes"] == [250, 250, 250]
    assert layout.labels == {"cluster": "c"}
    assert layout.driver == "580"


def test_a_gpu_that_was_found_but_not_read_yet_is_up_without_values_until_that_is_stale(table):
    one = table.gpu()
    table.begin(one)
    for _ in range(int(STALE) + 1):
        _, snapshot = table.tick()
        assert snapshot.up == [True]
        assert snapshot.ages == [None]
        assert all(column == [None] for column in snapshot.values.values())
    _, snapshot = table.tick()
    assert snapshot.up == [False]


def test_utilization_is_the_mean_over_the_window(table):
    one = table.gpu()
    table.begin(one)
    for percent in (100, 0, 50, 50):
        sample = Value(Utilization(((2_000_000, percent),), 1_000_000))
        _, snapshot = table.tick(table.cycle(one, utilization=sample))
    assert snapshot.values["gpu_utilization"] == [50]
    assert snapshot.values["gpu_busy_seconds_total"] == [2]


def test_a_lost_gpu_is_down_without_values_and_the_others_are_not(table):
    one, two = table.gpu(0), table.gpu(1)
    table.begin(one, two)
    table.tick(table.cycle(one), table.cycle(two))
    layout, snapshot = table.tick(table.failed(one, Lost("gpu_is_lost")), table.cycle(two))
    assert layout.devices == (one, two)
    assert snapshot.up == [False, True]
    assert snapshot.ages == [1, 0]
    for columns in (snapshot.values, snapshot.means):
        assert all(column[0] is None for column in columns.values())
        assert all(columns[name][1] is not None for name in columns.keys() & PLAN.metrics)
    assert table.board.silent(table.now) == {one: "gpu_is_lost"}


def test_a_gpu_that_hangs_is_down_once_its_values_are_stale_and_its_rows_stay(table):
    one = table.gpu(mig_enabled=True)
    part = table.mig(one, 0)
    table.begin(one)
    table.tick(table.cycle(one, part))
    for age in range(1, int(STALE) + 1):
        layout, snapshot = table.tick()
        assert snapshot.up == [True, True]
        assert snapshot.ages == [age, age]
        assert snapshot.values["gpu_memory_used_bytes"] == [250, 250]
    layout, snapshot = table.tick()
    assert layout.devices == (one, part)
    assert snapshot.up == [False, False]
    assert snapshot.values["gpu_memory_used_bytes"] == [None, None]
    assert table.board.silent(table.now) == {one: "not_read"}
    _, snapshot = table.tick(table.cycle(one, part))
    assert snapshot.up == [True, True]
    assert table.board.silent(table.now) == {}


def test_a_pass_that_hung_while_the_plan_changed_costs_the_others_nothing(table):
    """What is read once an hour would be missing until then."""
    hung, other = table.gpu(0), table.gpu(1)
    table.begin(hung, other)
    late = table.cycle(hung)
    newer = dataclasses.replace(PLAN, number=PLAN.number + 1)
    read = dataclasses.replace(table.cycle(other), plan=newer)
    nothing_due = tuple(tuple(None for _ in outcomes) for outcomes in read.readings)
    table.tick(read)
    table.tick(late)
    _, snapshot = table.tick(dataclasses.replace(read, readings=nothing_due))
    assert snapshot.up == [True, True]
    assert snapshot.values["gpu_memory_total_bytes"] == [None, 1000]


def test_a_pass_that_fails_once_takes_nobody_down(table):
    one = table.gpu(mig_enabled=True)
    part = table.mig(one, 0)
    table.begin(one)
    table.tick(table.cycle(one, part))
    layout, snapshot = table.tick(table.failed(one, Failed("UNKNOWN")))
    assert layout.devices == (one, part)
    assert snapshot.up == [True, True]


def test_a_gpu_whose_driver_is_gone_is_down_at_once(table):
    one = table.gpu()
    table.begin(one)
    table.tick(table.cycle(one))
    _, snapshot = table.tick(table.failed(one, Failed("DRIVER_NOT_LOADED", reinitialise=True)))
    assert snapshot.up == [False]


def test_totals_go_on_over_losses_and_new_starts(table):
    one = table.gpu()
    table.begin(one)
    table.tick(table.cycle(one))
    table.tick(table.failed(one, Lost("gpu_is_lost")))
    table.board.end("no_driver")
    table.begin(one, driver="590")
    layout, snapshot = table.tick(table.cycle(one))
    assert snapshot.values["gpu_busy_seconds_total"] == [pytest.approx(0.8)]
    assert layout.driver == "590"


def test_what_a_gpu_cannot_report_has_its_reason_in_the_layout(table):
    whole, plain = table.gpu(0, mig_enabled=True), table.gpu(1)
    part = table.mig(whole, 0)
    table.begin(whole, plain)
    no = Unsupported("permission")
    layout, _ = table.tick(table.cycle(whole, part), table.cycle(plain, energy=no))
    assert layout.support == {
        "gpu_utilization": ("mig_enabled", "mig_instance", None),
        "gpu_busy_seconds_total": ("mig_enabled", "mig_instance", None),
        "gpu_energy_joules_total": (None, None, "permission"),
        "gpu_power_usage_watts": (None, "mig_instance", None),
    }


def test_no_number_that_is_published_is_nan_or_infinite(table):
    one = table.gpu()
    table.begin(one)
    nothing = Value(Utilization((), None))
    _, snapshot = table.tick(table.cycle(one, utilization=nothing, power=Value(Power(2**40))))
    numbers = [
        value
        for columns in (snapshot.values, snapshot.means)
        for column in columns.values()
        for value in column
        if value is not None
    ]
    assert numbers
    assert all(math.isfinite(value) for value in numbers)
    assert snapshot.values["gpu_utilization"] == [None]
    assert snapshot.values["gpu_power_usage_watts"] == [None]
    assert table.rejected == ["gpu_power_usage_watts"]


def test_snapshots_are_numbered_and_name_their_layout(table):
    table.begin(table.gpu())
    found = [table.tick(table.cycle(table.gpu())) for _ in range(3)]
    assert [snapshot.sequence for _, snapshot in found] == [1, 2, 3]
    assert all((s.run, s.layout) == (layout.run, layout.number) for layout, s in found)


def test_a_change_that_is_undone_within_a_tick_is_none(table):
    """Two passes of a slow GPU may come in at once."""
    one = table.gpu()
    table.begin(one)
    before, _ = table.tick(table.cycle(one))
    refused = table.cycle(one, energy=Unsupported("permission"))
    after, _ = table.tick(refused, table.cycle(one))
    assert after is before


TENANTS = (Tenant(device="GPU-0", namespace="a", pod="p", container="c"),)
moves = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(0, 2), st.integers(0, 3), st.booleans()),
        st.tuples(st.just("lose"), st.integers(0, 2)),
        st.tuples(st.just("begin"), st.sampled_from(["580", "590"])),
        st.tuples(st.just("end")),
        st.tuples(st.just("tenants"), st.sampled_from([(), TENANTS, TENANTS * 2])),
        st.tuples(st.just("known"), st.booleans()),
        st.tuples(st.just("wait"), st.integers(1, 20)),
    ),
    max_size=30,
)


@given(moves)
def test_the_layout_changes_its_number_exactly_when_something_of_it_changes(sequence):
    table = Table(dict(READINGS), make_gpu, make_mig)
    before, _ = table.tick()
    table.begin(*(make_gpu(n) for n in range(3)))
    for kind, *facts in sequence:
        cycles = []
        if kind == "read":
            index, parts, refused = facts
            whole = make_gpu(index, mig_enabled=parts > 0)
            changed = {"energy": Unsupported("device")} if refused else {}
            cycles = [table.cycle(whole, *(make_mig(whole, n) for n in range(parts)), **changed)]
        elif kind == "lose":
            cycles = [table.failed(make_gpu(facts[0]), Lost("gpu_is_lost"))]
        elif kind == "begin":
            table.begin(*(make_gpu(n) for n in range(3)), driver=facts[0])
        elif kind == "end":
            table.board.end("no_driver")
        elif kind == "tenants":
            table.holders = Holders(tenants=facts[0], known=table.holders.known)
        elif kind == "known":
            table.holders = Holders(tenants=table.holders.tenants, known=facts[0])
        else:
            table.now += facts[0]
        layout, _ = table.tick(*cycles)
        same = msgspec.structs.replace(layout, number=0) == msgspec.structs.replace(
            before, number=0
        )
        assert layout.number == before.number + (not same)
        assert (layout is before) == same
        before = layout
