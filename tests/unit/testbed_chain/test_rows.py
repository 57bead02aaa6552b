"""The timeline of a ramp: what makes a row, and whose event stands beside a size."""

import io
from dataclasses import replace

import pytest

from testbed.chain import manifests, rows
from testbed.chain.course import LATENCY, UTILIZATION, Moment
from testbed.chain.pools import Pool
from testbed.chain.rows import ROW_SECONDS, Rows

POOL = Pool(name="whole", resource=manifests.GPU, namespace="ml")
ABOVE = "pods metric gpu_utilization above target"
BELOW = "All metrics below target"
START = Moment(
    at_seconds=10, requests_per_second=4, busy=(0.5, 0.25), replicas=2, wanted=2,
    values={UTILIZATION: 24.0, LATENCY: 68.0}, limit="", active=True,
)  # fmt: skip


class ToldCourse:
    """A course that is told what to have noted."""

    def __init__(self, *moments: Moment, events: tuple[str, ...] = ()) -> None:
        self.moments = list(moments)
        self.events = list(events)

    def seconds(self) -> float:
        return 42.0

    def of(self, pool: Pool) -> tuple[Moment, ...]:
        assert pool is POOL
        return tuple(self.moments)

    def rescales(self, pool: Pool) -> list[str]:
        assert pool is POOL
        return self.events


def written(course: ToldCourse) -> list[str]:
    file = io.StringIO()
    Rows(course, [POOL], file).follow()
    return file.getvalue().splitlines()


def test_a_row_has_the_sum_of_the_busy_devices_and_both_values() -> None:
    (row,) = written(ToldCourse(START))
    assert " ".join(row.split()) == "10 whole 4.0 0.8 of 2 2 2 24 % 68 ms"


def test_values_alone_make_a_row_only_after_a_minute() -> None:
    later = [
        replace(START, at_seconds=10 + seconds, values={UTILIZATION: seconds, LATENCY: 70.0})
        for seconds in (1.0, ROW_SECONDS - 1, ROW_SECONDS)
    ]
    assert [row.split()[0] for row in written(ToldCourse(START, *later))] == ["10", "70"]


@pytest.mark.parametrize(
    "change",
    [
        {"replicas": 3},
        {"limit": "ScaleUpLimit"},
        {"active": False},
        {"requests_per_second": 5.0},
        {"values": {UTILIZATION: 24.0}},
    ],
)
def test_whatever_else_changes_makes_a_row_at_once(change) -> None:
    assert len(written(ToldCourse(START, replace(START, at_seconds=11, **change)))) == 2


def test_a_value_that_is_missing_is_a_dash() -> None:
    (row,) = written(ToldCourse(replace(START, values={LATENCY: 68.0})))
    assert "–" in row


def test_the_way_down_has_its_own_event_at_a_size_of_the_way_up() -> None:
    sizes = [2, 3, 5, 3]
    course = ToldCourse(
        *(replace(START, at_seconds=at, wanted=size) for at, size in enumerate(sizes)),
        events=(
            f"New size: 3; reason: {ABOVE}",
            f"New size: 5; reason: {ABOVE}",
            f"(combined from similar events): New size: 3; reason: {BELOW}",
        ),
    )
    first, *steps = written(course)
    assert not first.endswith("target")
    assert [row[row.index("ms") + 2 :].strip() for row in steps] == [ABOVE, ABOVE, BELOW]


def test_rows_go_on_where_they_ended() -> None:
    course, file = ToldCourse(START), io.StringIO()
    told = Rows(course, [POOL], file)
    told.follow()
    course.moments.append(replace(START, at_seconds=12, replicas=3))
    told.follow()
    told.say("held")
    assert [row.split()[0] for row in file.getvalue().splitlines()] == ["10", "12", "42"]


def test_an_event_that_does_not_come_is_said_in_its_place(monkeypatch) -> None:
    monkeypatch.setattr(rows, "_EVENT_SECONDS", 0)
    _, row = written(ToldCourse(START, replace(START, at_seconds=11, wanted=3)))
    assert row.endswith("(waited 0 s in vain for an event of size 3)")


def test_the_first_size_of_an_hpa_is_no_change(monkeypatch) -> None:
    monkeypatch.setattr(rows, "_EVENT_SECONDS", 0)
    none = replace(START, at_seconds=9, wanted=0)
    assert "in vain" not in "".join(written(ToldCourse(none, START)))
