"""From events to columns: each counted once, on the row that it belongs to."""

import msgspec
import pytest

from exporter.measure.event_counts import EventCounts
from exporter.nvml.event_log import EventLog
from exporter.nvml.protocol import Event, EventKind
from slicewatch.wire.layout import Device

GPU = Device(uuid="GPU-1", gpu=0, model="H100", mig_enabled=True)
OTHER = Device(uuid="GPU-2", gpu=1, model="H100")
FIRST = Device(
    uuid="MIG-1", gpu=0, model="H100", parent="GPU-1", gpu_instance=5, compute_instance=0,
    profile="1g.10gb",
)  # fmt: skip
SECOND = msgspec.structs.replace(FIRST, uuid="MIG-2", gpu_instance=6)
ROWS = (GPU, FIRST, SECOND, OTHER)
ALL_KINDS = frozenset(EventKind)
TOTAL = "gpu_xid_events_total"


class Desk:
    """A log, the counts, and what they dropped."""

    def __init__(self, kept=64, kinds=ALL_KINDS):
        self.now = 1000.0
        self.log = EventLog(kept=kept, wall=lambda: self.now)
        self.dropped = 0
        self.counts = EventCounts(self.log, self.drop)
        if kinds:
            self.log.listen({"GPU-1": kinds, "GPU-2": kinds})

    def drop(self, number):
        self.dropped += number

    def xids(self, *numbers, gpu="GPU-1", gi=None, ci=None):
        self.log.add(
            [
                Event(kind=EventKind.XID, gpu=gpu, data=n, gpu_instance=gi, compute_instance=ci)
                for n in numbers
            ]
        )

    def columns(self, rows=ROWS):
        return self.counts.columns(rows)


@pytest.fixture
def desk():
    return Desk()


def test_every_row_counts_from_zero_once_its_gpu_is_listened_to(desk):
    """dcgm-exporter #700, #646 and #310: the row was missing until the first error."""
    columns = desk.columns()
    assert columns[TOTAL] == [0, 0, 0, 0]
    assert columns['gpu_ecc_events_total{kind="corrected"}'] == [0, None, None, 0]
    assert columns['gpu_ecc_events_total{kind="uncorrected"}'] == [0, None, None, 0]


def test_what_is_not_listened_to_has_no_series():
    desk = Desk(kinds=None)
    assert desk.columns() == {TOTAL: [None] * 4}
    desk.log.listen({"GPU-2": frozenset({EventKind.XID})})
    assert desk.columns() == {TOTAL: [None, None, None, 0]}


def test_two_xids_within_one_tick_are_both_counted(desk):
    """DCGM #235: of Xids 62 and 45 within one cycle only the last was shown."""
    desk.xids(62, 45)
    columns = desk.columns()
    assert columns['gpu_xid_errors_total{xid="62"}'] == [1, None, None, None]
    assert columns['gpu_xid_errors_total{xid="45"}'] == [1, None, None, None]
    assert columns[TOTAL] == [2, 0, 0, 0]


def test_a_counter_stands_still_after_an_error_and_the_time_says_how_old_it_is(desk):
    """dcgm-exporter #500 and #190, DCGM #277: the last Xid stuck in a gauge for ever."""
    desk.xids(31)
    desk.columns()
    desk.now = 2000.0
    columns = desk.columns()
    assert columns['gpu_xid_errors_total{xid="31"}'][0] == 1
    assert columns['gpu_xid_last_seen_timestamp_seconds{xid="31"}'][0] == 1000.0
    desk.xids(31)
    columns = desk.columns()
    assert columns['gpu_xid_errors_total{xid="31"}'][0] == 2
    assert columns['gpu_xid_last_seen_timestamp_seconds{xid="31"}'][0] == 2000.0


def test_a_counter_never_goes_down_however_long_nothing_happens(desk):
    """dcgm-exporter #502: a count over a window fell by itself, and could not be reset."""
    seen = []
    for tick in range(50):
        if tick % 7 == 0:
            desk.xids(13)
        desk.now += 600
        seen.append(desk.columns()[TOTAL][0])
    assert seen == sorted(seen)
    assert seen[-1] == 8


def test_an_event_of_an_instance_is_on_its_row_alone(desk):
    """dcgm-exporter repeats the count of a GPU on each of its instances."""
    desk.xids(43, gi=6, ci=0)
    columns = desk.columns()
    assert columns[TOTAL] == [0, 0, 1, 0]
    assert columns['gpu_xid_errors_total{xid="43"}'] == [None, None, 1, None]


def test_an_event_of_the_whole_gpu_is_not_repeated_on_its_instances(desk):
    desk.xids(79)
    assert desk.columns()[TOTAL] == [1, 0, 0, 0]


def test_an_event_of_a_gpu_instance_is_on_its_only_compute_instance(desk):
    desk.xids(43, gi=5)
    assert desk.columns()[TOTAL] == [0, 1, 0, 0]


@pytest.mark.parametrize("rows", [(GPU, OTHER), (GPU, FIRST, OTHER)])
def test_an_event_of_an_instance_that_is_not_there_is_on_the_gpu(desk, rows):
    desk.xids(43, gi=6, ci=0)
    assert desk.columns(rows)[TOTAL][0] == 1


def test_of_two_compute_instances_of_one_gpu_instance_neither_is_blamed_alone(desk):
    twin = msgspec.structs.replace(FIRST, uuid="MIG-3", compute_instance=1)
    rows = (GPU, FIRST, twin)
    desk.xids(43, gi=5)
    desk.xids(45, gi=5, ci=1)
    assert desk.columns(rows)[TOTAL] == [1, 0, 1]


def test_another_instance_in_the_same_place_inherits_nothing(desk):
    desk.xids(43, gi=6, ci=0)
    desk.columns()
    new = msgspec.structs.replace(SECOND, profile="1g.10gb+me")
    assert desk.columns((GPU, FIRST, new, OTHER))[TOTAL] == [0, 0, 0, 0]
    assert desk.columns(ROWS)[TOTAL] == [0, 0, 0, 0]


def test_a_gpu_keeps_its_counts_when_its_mig_mode_changes(desk):
    desk.xids(31)
    desk.columns()
    whole = msgspec.structs.replace(GPU, mig_enabled=False)
    assert desk.columns((whole, OTHER))[TOTAL] == [1, 0]


def test_an_xid_that_the_driver_cannot_name_is_counted_as_unknown(desk):
    desk.xids(999)
    assert desk.columns()['gpu_xid_errors_total{xid="unknown"}'][0] == 1


def test_events_of_memory_errors_are_counted_by_kind(desk):
    desk.log.add([Event(kind=EventKind.DOUBLE_BIT_ECC, gpu="GPU-2", data=0)])
    columns = desk.columns()
    assert columns['gpu_ecc_events_total{kind="uncorrected"}'] == [0, None, None, 1]
    assert columns[TOTAL] == [0, 0, 0, 0]


def test_what_no_row_can_count_is_counted_as_dropped():
    desk = Desk(kept=3)
    desk.xids(*range(1, 6))
    desk.columns()
    assert desk.dropped == 2
    desk.xids(7, gpu="")
    desk.columns()
    assert desk.dropped == 3


def test_events_from_before_the_rows_were_known_are_not_lost(desk):
    desk.xids(79)
    assert desk.columns(()) == {TOTAL: []}
    assert desk.columns()[TOTAL] == [1, 0, 0, 0]


def test_while_nothing_happens_nothing_is_computed(desk):
    desk.xids(79)
    assert desk.columns() is desk.columns()
