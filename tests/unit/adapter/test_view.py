"""Node views: when they are renewed, and which exporter speaks for a node."""

from typing import Any

import pytest

from adapter.cluster.pods import Pods
from adapter.sources.fake import FakeSource
from adapter.sources.source import Target
from adapter.view import NodeView, View
from slicewatch.wire.layout import Layout
from slicewatch.wire.snapshot import Frame, encode
from testbed import fleet
from testbed.front_proxy import ManualClock

OLD, NEW = Target("http://old:9400"), Target("http://new:9400")


class Known:
    def __init__(self) -> None:
        self.clock = ManualClock(100.0)
        self.pods, self.source = Pods(), FakeSource()
        self.view = View(
            self.pods, self.source, max_age_seconds=15.0, monotonic=self.clock, wall=self.clock
        )

    def receive(
        self, target: Target, layout: Layout, sequence: int, *, whole: bool = True
    ) -> None:
        shot = fleet.snapshot(layout, sequence=sequence)
        line = encode(Frame(layout=layout if whole else None, snapshot=shot))
        self.source.receive(target, line, self.clock())

    def node(self, name: str = "n1") -> NodeView:
        seen = self.view.node(name)
        assert seen is not None
        return seen


@pytest.fixture
def known() -> Known:
    return Known()


def rows(**about: Any) -> Layout:
    return fleet.layout([fleet.gpu(0)], [fleet.tenant("GPU-n1-0", "a")], **about)


def test_a_view_lasts_until_a_reading_arrives_or_a_pod_of_its_node_changes(known: Known) -> None:
    known.receive(OLD, rows(), 1)
    first = known.node()
    known.pods.changed(None, fleet.pod(fleet.pod_json("b", node="n2")))
    assert known.node() is first
    known.pods.changed(None, fleet.pod(fleet.pod_json("a")))
    second = known.node()
    assert second is not first
    known.receive(OLD, rows(), 2, whole=False)
    assert known.node() is not second


def test_who_holds_what_is_kept_while_only_values_change(known: Known) -> None:
    known.receive(OLD, rows(), 1)
    allocation = known.node().join.allocation
    known.receive(OLD, rows(), 2, whole=False)
    assert known.node().join.allocation is allocation
    known.receive(OLD, rows(number=2), 3)
    assert known.node().join.allocation is not allocation


def test_of_two_exporters_of_a_node_the_first_counts_while_its_stream_is_open(
    known: Known,
) -> None:
    known.receive(OLD, rows(run="old"), 5)
    known.receive(NEW, rows(run="new"), 1)
    assert known.node().join.layout.run == "old"
    fault = f"{NEW} reports for node n1, for which {OLD} speaks already"
    assert known.source.streams[NEW].fault == fault
    known.source.disconnect(OLD, "hung up")
    assert known.node().join.layout.run == "old"
    known.receive(NEW, rows(run="new"), 2)
    assert known.node().join.layout.run == "new"
    assert known.source.streams[NEW].fault == ""
    known.source.remove(OLD)
    assert known.node().join.layout.run == "new"
    known.source.remove(NEW)
    assert known.view.node("n1") is None


def test_an_exporter_speaks_for_no_node_but_the_one_that_it_is_on(known: Known) -> None:
    known.source.want(NEW, "n2")
    known.receive(NEW, rows(), 1)
    assert known.view.nodes == ()
    assert known.source.streams[NEW].refused == "n1"
    assert known.source.streams[NEW].fault == f"{NEW} reports for node n1, but runs on node n2"
    known.receive(NEW, rows(node="n2"), 2)
    assert known.view.nodes == ("n2",)
    assert known.source.streams[NEW].refused == ""


def test_an_exporter_that_claims_anothers_node_keeps_its_own(known: Known) -> None:
    known.receive(OLD, rows(run="old"), 1)
    known.receive(NEW, rows(node="n2"), 1)
    known.receive(NEW, rows(), 2)
    assert known.view.nodes == ("n1", "n2")
    assert known.node().join.layout.run == "old"


def test_an_exporter_that_moved_to_another_node_leaves_the_first(known: Known) -> None:
    known.receive(OLD, rows(), 1)
    known.receive(OLD, rows(node="n2", number=2), 2)
    assert known.view.nodes == ("n2",)
    assert known.view.node("n1") is None


def test_a_value_is_dated_by_its_age_at_sending_and_the_time_since_receipt(known: Known) -> None:
    known.receive(OLD, rows(), 1)
    known.clock.at += 3
    seen = known.node()
    assert known.view.read_at(seen, 0.5) == pytest.approx(99.5)
    assert known.view.expires_at(seen, 0.5) == pytest.approx(114.5)
