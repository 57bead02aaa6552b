"""Values over a minute: what earlier snapshots count for, and when there are too few of them."""

import sys
from collections.abc import Mapping, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.history import LONGEST_SECONDS, History
from adapter.sources.source import Reading
from slicewatch.wire.layout import Device, Layout, Tenant
from slicewatch.wire.snapshot import Column, Frame, Snapshot, encode
from testbed import fleet
from testbed.front_proxy import ROOT, Asker

MINUTE = "metricLabelSelector=window%3D1m"
POD = f"{ROOT}/namespaces/ml/pods/a/gpu_utilization"


def line(snapshot: Snapshot) -> bytes:
    return encode(Frame(snapshot=snapshot))


def readings(
    values: Sequence[float], *, step: float = 1.0, began: float = 100.0, **about: str
) -> list[Reading]:
    layout = fleet.layout([fleet.gpu(0)], [fleet.tenant("GPU-n1-0", "a")], **about)  # type: ignore[arg-type]  # only run and node
    return [
        Reading(
            layout=layout,
            line=line(fleet.snapshot(layout, {"gpu_utilization": [value]}, sequence=tick)),
            received_at=began + tick * step,
        )
        for tick, value in enumerate(values)
    ]


def followed(taken: Sequence[Reading]) -> History:
    history = History()
    for reading in taken:
        history.take(reading)
    return history


@given(st.integers(1, 200), st.sampled_from([0.5, 1.0, 2.0, 5.0]), st.floats(1, 60))
def test_the_tiles_of_a_span_add_up_to_what_is_known_and_no_more(
    ticks: int, step: float, seconds: float
) -> None:
    taken = readings([1.0] * ticks, step=step)
    span = followed(taken).span(taken[-1].received_at, seconds)
    known = taken[-1].received_at - taken[0].received_at
    # The first tile may have begun up to a tick before the window that it describes.
    assert min(known, seconds) - step <= span.covered_seconds <= min(known, seconds) + 1e-9
    if known > seconds + 2 * step:
        assert span.covered_seconds == pytest.approx(seconds)
    assert span.now_seconds <= taken[0].layout.window_seconds + step
    ages = [entry.at for _, entry in span.earlier]
    assert ages == sorted(ages, reverse=True)


@pytest.mark.parametrize("broken", ["run", "silence"])
def test_another_run_and_a_silence_start_anew(broken: str) -> None:
    taken = readings([1.0] * 100)
    last = taken[-1].received_at
    more = {
        "run": readings([1.0] * 5, began=last + 1, run="run-2"),
        "silence": readings([1.0] * 5, began=last + 16),
    }[broken]
    span = followed(taken + more).span(more[-1].received_at, 60)
    assert span.covered_seconds == pytest.approx(4)
    assert span.earlier == ()


def test_a_shorter_silence_breaks_nothing_since_windows_reach_over_it() -> None:
    taken = readings([1.0] * 100)
    more = readings([1.0] * 5, began=taken[-1].received_at + 14)
    assert followed(taken + more).span(more[-1].received_at, 60).covered_seconds == 60


def test_a_node_of_eight_gpus_keeps_less_than_ten_kilobytes() -> None:
    gpus = [fleet.gpu(index) for index in range(8)]
    held = [fleet.tenant(f"GPU-n1-{index}", f"p{index}") for index in range(8)]
    layout = fleet.layout(gpus, held)
    history = History()
    for tick in range(600):
        columns: dict[str, Column] = {
            name: [tick + index / 7 for index in range(8)]
            for name in (*fleet.READINGS, "gpu_temperature_celsius", "gpu_gpm_sm_ratio")
        }
        shot = fleet.snapshot(layout, columns, tenant_values={"gpu_tenant_busy_ratio": [0.1] * 8})
        history.take(Reading(layout=layout, line=line(shot), received_at=float(tick)))
    entries = [entry for _, entry in history.span(599.0, LONGEST_SECONDS).earlier]
    assert 4 <= len(entries) <= 5
    assert sum(sys.getsizeof(e) + sys.getsizeof(e.kept) for e in entries) < 10_000
    assert "gpu_temperature_celsius" not in entries[0].snapshot().means


def test_an_exporter_with_a_short_window_is_sampled_and_its_ticks_may_be_late() -> None:
    taken = [
        Reading(
            layout=msgspec.structs.replace(reading.layout, window_seconds=1.0),
            line=reading.line,
            received_at=reading.received_at,
        )
        for reading in readings([1.0] * 60, step=1.3)
    ]
    span = followed(taken).span(taken[-1].received_at, 60)
    assert span.covered_seconds == pytest.approx(60)
    assert len(span.earlier) <= 12


class Node:
    """A node whose exporter sends a line a second."""

    def __init__(self, ask: Asker) -> None:
        self.port = ask.port
        self.number = 100

    def lay_out(
        self, devices: Sequence[Device], tenants: Sequence[Tenant], **support: tuple[str | None]
    ) -> Layout:
        self.number += 1
        return fleet.layout(devices, tenants, number=self.number, support=support)

    def run(
        self,
        layout: Layout,
        seconds: int,
        utilization: float,
        busy: Mapping[str, float] | None = None,
        age: float = 0.5,
    ) -> None:
        tenants: dict[str, Column] = {}
        if busy is not None:
            tenants = {"gpu_tenant_busy_ratio": [busy[t.pod] for t in layout.tenants]}
        for _ in range(seconds):
            self.port.pass_seconds(1.0)
            columns: dict[str, Column] = {"gpu_utilization": [utilization] * len(layout.devices)}
            shot = fleet.snapshot(
                layout, columns, ages=[age] * len(layout.devices), tenant_values=tenants,
                shares="processes" if busy else "",
            )  # fmt: skip
            self.port.receive(Frame(layout=layout, snapshot=shot))


@pytest.fixture
def node(ask: Asker) -> Node:
    return Node(ask)


HELD_BY_A = [fleet.tenant("GPU-n1-0", "a")]


async def test_a_minute_is_the_mean_of_its_tiles_by_time(ask: Asker, node: Node) -> None:
    layout = node.lay_out([fleet.gpu(0)], HELD_BY_A)
    node.run(layout, 90, 80.0)
    node.run(layout, 30, 20.0)
    assert await ask.values(f"{POD}?metricLabelSelector=window%3D15s") == {"a": "20"}
    assert await ask.values(POD) == {"a": "20"}
    got = await ask.values(f"{POD}?{MINUTE}")
    assert got == {"a": "50"}
    assert b'"windowSeconds":60' in (await ask(f"{POD}?{MINUTE}")).body
    assert b'"windowSeconds":15' in (await ask(POD)).body


async def test_nodes_and_namespaces_have_minutes_too(ask: Asker, node: Node) -> None:
    layout = node.lay_out([fleet.gpu(0)], HELD_BY_A)
    node.run(layout, 75, 80.0)
    assert await ask.values(f"{ROOT}/nodes/n1/gpu_utilization?{MINUTE}") == {"n1": "80"}
    # The other pod of the namespace is on a node whose exporter has fallen silent.
    namespace = f"{ROOT}/namespaces/ml/metrics/gpu_utilization?{MINUTE}"
    assert "too old" in await ask.refusal(f"{ROOT}/nodes/n2/gpu_utilization", 503)
    assert "not known for the whole window" in await ask.refusal(namespace, 503)


async def test_a_device_that_is_known_for_less_than_the_window_has_no_mean(
    ask: Asker, node: Node
) -> None:
    layout = node.lay_out([fleet.gpu(0)], HELD_BY_A)
    node.run(layout, 40, 80.0)
    message = await ask.refusal(f"{POD}?{MINUTE}", 503)
    assert "it is not known for the whole window yet" in message
    assert "for 40 of 60 s" in message


async def test_a_pod_that_is_younger_than_the_window_does_not_inherit_the_load_before_it(
    ask: Asker, node: Node
) -> None:
    gone = node.lay_out([fleet.gpu(0)], [fleet.tenant("GPU-n1-0", "before")])
    node.run(gone, 60, 95.0)
    layout = node.lay_out([fleet.gpu(0)], HELD_BY_A)
    node.run(layout, 30, 10.0)
    assert "for 30 of 60 s" in await ask.refusal(f"{POD}?{MINUTE}", 503)
    node.run(layout, 30, 10.0)
    assert await ask.values(f"{POD}?{MINUTE}") == {"a": "10"}


async def test_a_neighbour_counts_for_the_time_that_it_was_there(ask: Asker, node: Node) -> None:
    ask.port.add(fleet.pod(fleet.pod_json("x", owner=("ReplicaSet", "x"))))
    both = [*HELD_BY_A, fleet.tenant("GPU-n1-0", "x")]
    shared = node.lay_out([fleet.gpu(0)], both)
    alone = node.lay_out([fleet.gpu(0)], HELD_BY_A)
    node.run(shared, 45, 100.0, {"a": 0.5, "x": 0.5})
    node.run(alone, 30, 40.0, {"a": 0.4})
    # Half of the time it had all that it could have, and half of the time 40 percent.
    assert await ask.values(f"{POD}?{MINUTE}") == {"a": "70"}


async def test_devices_are_the_same_by_uuid_wherever_they_stand(ask: Asker, node: Node) -> None:
    layout = node.lay_out([fleet.gpu(0)], HELD_BY_A)
    node.run(layout, 45, 60.0)
    added = node.lay_out([fleet.gpu(1), fleet.gpu(0)], HELD_BY_A)
    node.run(added, 30, 60.0)
    assert await ask.values(f"{POD}?{MINUTE}") == {"a": "60"}


async def test_a_repartitioned_device_is_another_one_though_its_uuid_is_the_same(
    ask: Asker, node: Node
) -> None:
    held = [fleet.tenant("MIG-n1-0-1", "a")]
    small = node.lay_out([fleet.mig(0, 1)], held)
    node.run(small, 60, 90.0)
    large = node.lay_out([fleet.mig(0, 1, profile="3g.71gb")], held)
    node.run(large, 30, 30.0)
    assert "for 30 of 60 s" in await ask.refusal(f"{POD}?{MINUTE}", 503)


async def test_time_in_which_nobody_read_the_device_is_not_part_of_a_mean(
    ask: Asker, node: Node
) -> None:
    """As while an exporter has let go of its devices: its windows stand still, and ages grow."""
    layout = node.lay_out([fleet.gpu(0)], HELD_BY_A)
    node.run(layout, 40, 90.0)
    node.run(layout, 20, 90.0, age=30.0)
    node.run(layout, 20, 90.0)
    assert await ask.values(POD) == {"a": "90"}
    assert "not known for the whole window" in await ask.refusal(f"{POD}?{MINUTE}", 503)


async def test_what_has_no_such_window_is_refused_with_the_one_that_it_has(ask: Asker) -> None:
    pods = f"{ROOT}/namespaces/ml/pods/a"
    short = "metricLabelSelector=window%3D15s"
    contention = await ask.refusal(f"{pods}/gpu_tenant_contention_ratio?{short}", 400)
    assert "has a window of 60 s" in contention
    moment = await ask.refusal(f"{pods}/DCGM_FI_DEV_GPU_TEMP?{MINUTE}", 400)
    assert "is of the moment" in moment
    # Its own is no other window, so it is looked for, and found unknown here.
    assert "no value" in await ask.refusal(f"{pods}/gpu_tenant_contention_ratio?{MINUTE}", 503)


async def test_answers_over_different_windows_and_combinations_are_not_mixed_up(
    ask: Asker, node: Node
) -> None:
    gpus = [fleet.gpu(0), fleet.gpu(1)]
    held = [fleet.tenant(f"GPU-n1-{index}", "a") for index in (0, 1)]
    layout = node.lay_out(gpus, held)
    node.run(layout, 90, 80.0)
    node.run(layout, 15, 20.0)
    answers = {
        "": "20",
        "combine%3Dsum": "40",
        "combine%3Dmax": "20",
        "window%3D1m": "65",
        "window%3D1m%2Ccombine%3Dsum": "130",
    }
    for _ in range(2):
        for asked, value in answers.items():
            assert await ask.values(f"{POD}?metricLabelSelector={asked}") == {"a": value}
