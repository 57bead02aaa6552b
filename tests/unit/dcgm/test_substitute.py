"""Utilization of MIG instances from DCGM: on the board where NVML has none, and only there."""

import pytest

from exporter.dcgm.page import read
from exporter.dcgm.source import DEADLINE_SECONDS, INTERVALS_UNTIL_STALE, DcgmSource, Reason
from exporter.measure.attribution import Uses
from exporter.measure.board import Board
from exporter.measure.substitute import Substitute
from exporter.nvml.protocol import Slot, Unsupported, Value
from exporter.nvml.reader import Cycle
from exporter.tenants.tenants import Holders
from slicewatch.catalog.readings.utilization import Utilization
from slicewatch.wire.snapshot import check_shape
from tests.unit.exporter.desk import PLAN, READINGS, make_gpu, make_mig

INTERVAL = 5.0
STALE = INTERVALS_UNTIL_STALE * INTERVAL + DEADLINE_SECONDS
SOURCE = 'gpu_metric_source_info{metric="gpu_utilization",source="dcgm"}'
# What NVML says of the utilization before Hopper.
OF_GPU, OF_MIG = Unsupported("mig_enabled"), Unsupported("mig_instance")


def dcgm_page(**ratios):
    """Return a page with the activity of instances of GPU-0 by number, as in ``i7=0.5``."""
    return read(
        "".join(
            f'DCGM_FI_PROF_GR_ENGINE_ACTIVE{{gpu="0",UUID="GPU-0",GPU_I_PROFILE="1g.10gb",'
            f'GPU_I_ID="{number[1:]}"}} {ratio}\n'
            for number, ratio in ratios.items()
        )
    )


class Node:
    """A board with one GPU in MIG mode, and the DCGM beside it."""

    def __init__(self):
        self.now = 1000.0
        self.gpu = make_gpu(0, mig_enabled=True)
        self.parts = (make_mig(self.gpu, 0), make_mig(self.gpu, 1))
        self.source = DcgmSource(interval_seconds=INTERVAL, reject=lambda _: None)
        self.board = Board(
            run="r", node="n", labels={}, window_seconds=15, tick_seconds=1, stale_seconds=5,
            reject=lambda _: None, substitute=Substitute(self.source),
        )  # fmt: skip
        self.board.begin("580", [Slot(index=0, gpu=Value(self.gpu))], self.now)

    def cycle(self, of_gpu=OF_GPU, of_mig=OF_MIG):
        devices = (self.gpu, *self.parts)
        readings = []
        for device in devices:
            answers = {name: Value(reading) for name, reading in READINGS.items()}
            answers["utilization"] = of_mig if device.is_mig else of_gpu
            readings.append(tuple(answers[p.name] for p in PLAN.of_device(device).probes))
        return Cycle(
            gpu=self.gpu, plan=PLAN, devices=Value(devices), readings=tuple(readings),
            at=self.now, spent={},
        )  # fmt: skip

    def tick(self, cycles=None):
        self.board.merge([self.cycle()] if cycles is None else cycles, self.now)
        layout, snapshot = self.board.publish(self.now, Holders(), Uses())
        check_shape(layout, snapshot)
        self.now += 1
        return layout, snapshot


@pytest.fixture
def node():
    return Node()


def reasons(layout):
    return layout.support["gpu_utilization"]


def test_instances_get_value_and_mean_and_the_gpu_as_a_whole_gets_none(node):
    node.source.take(dcgm_page(i7=0.5, i8=0), node.now)
    _, snapshot = node.tick()
    for columns in (snapshot.values, snapshot.means):
        assert columns["gpu_utilization"] == [None, 50, 0]


def test_what_comes_from_dcgm_is_marked_and_nothing_else(node):
    node.source.take(dcgm_page(i7=0.5), node.now)
    _, snapshot = node.tick()
    assert snapshot.values[SOURCE] == [None, 1, None]


def test_a_reason_stands_exactly_where_neither_knows_a_value(node):
    node.source.take(dcgm_page(i7=0.5), node.now)
    layout, _ = node.tick()
    assert reasons(layout) == ("mig_enabled", None, Reason.NO_INSTANCE)


def test_before_the_first_page_dcgms_reason_goes_before_nvmls(node):
    layout, snapshot = node.tick()
    assert reasons(layout) == ("mig_enabled", Reason.NOT_READ, Reason.NOT_READ)
    assert snapshot.values["gpu_utilization"] == [None] * 3
    assert snapshot.values[SOURCE] == [None] * 3


def test_where_nvml_knows_dcgm_is_not_heard(node):
    """GPM of Hopper and newer; DCGM's is older and rounder."""
    node.source.take(dcgm_page(i7=0.5, i8=0.5), node.now)
    known = Value(Utilization(samples=((2_000_000, 90),), since_us=1_000_000))
    layout, snapshot = node.tick([node.cycle(of_gpu=known, of_mig=known)])
    assert snapshot.values["gpu_utilization"] == [90, 90, 90]
    assert snapshot.values[SOURCE] == [None] * 3
    assert not any(layout.support.get("gpu_utilization", ()))


def test_a_gap_in_what_nvml_knows_is_not_filled(node):
    """A series that changes its source with every gap is neither."""
    node.source.take(dcgm_page(i7=0.5, i8=0.5), node.now)
    nothing_yet = Value(Utilization(samples=(), since_us=None))
    _, snapshot = node.tick([node.cycle(of_mig=nothing_yet)])
    assert snapshot.values["gpu_utilization"] == [None] * 3
    assert snapshot.values[SOURCE] == [None] * 3


def test_values_are_withdrawn_with_their_mark_once_the_page_is_stale(node):
    """gpu-monitoring-tools #188: values that stay as they were for ever."""
    node.source.take(dcgm_page(i7=0.5, i8=0.5), node.now)
    node.tick()
    node.source.fail(Reason.UNREACHABLE)
    node.now = 1000 + STALE
    layout, snapshot = node.tick()
    assert snapshot.values["gpu_utilization"] == [None, 50, 50]
    layout, snapshot = node.tick()
    for columns in (snapshot.values, snapshot.means):
        assert columns["gpu_utilization"] == [None] * 3
    assert snapshot.values[SOURCE] == [None] * 3
    assert reasons(layout) == ("mig_enabled", Reason.UNREACHABLE, Reason.UNREACHABLE)


def test_a_gpu_that_does_not_answer_has_no_value_from_dcgm_either(node):
    node.source.take(dcgm_page(i7=0.5, i8=0.5), node.now)
    node.tick()
    node.now += 10
    _, snapshot = node.tick([])
    assert snapshot.up == [False] * 3
    for columns in (snapshot.values, snapshot.means):
        assert columns["gpu_utilization"] == [None] * 3
    assert snapshot.values[SOURCE] == [None] * 3


def test_the_layout_changes_its_number_when_values_come_and_go_and_not_with_each_of_them(node):
    numbers = []
    for ratio in (None, 0.1, 0.2, 0.3, None, None):
        page = dcgm_page() if ratio is None else dcgm_page(i7=ratio, i8=ratio)
        node.source.take(page, node.now)
        numbers.append(node.tick()[0].number)
    assert numbers == [1, 2, 2, 2, 3, 3]


def test_the_values_of_whole_gpus_beside_it_stay_nvmls(node):
    other = make_gpu(1)
    node.board.begin("580", [Slot(index=g.gpu, gpu=Value(g)) for g in (node.gpu, other)], node.now)
    node.source.take(dcgm_page(i7=0.5), node.now)
    answers = tuple(Value(READINGS[p.name]) for p in PLAN.of_device(other).probes)
    beside = Cycle(
        gpu=other, plan=PLAN, devices=Value((other,)), readings=(answers,), at=node.now, spent={}
    )
    _, snapshot = node.tick([node.cycle(), beside])
    assert snapshot.values["gpu_utilization"] == [None, 50, None, 40]
    assert snapshot.values[SOURCE] == [None, 1, None, None]
