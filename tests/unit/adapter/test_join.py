"""What an autoscaler gets for a pod, a node and a namespace, rule by rule."""

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.allocation import Allocation
from adapter.join import Join
from adapter.outcome import Absence, Outcome, Rule
from adapter.query import SERVED
from slicewatch.kube.objects import Pod
from slicewatch.wire.layout import Layout, Tenant
from slicewatch.wire.snapshot import Column, Snapshot
from testbed import fleet

UTILIZATION = SERVED["gpu_utilization"]
MEMORY = SERVED["gpu_memory_used_bytes"]
POWER = SERVED["gpu_power_usage_watts"]
BUSY = "gpu_tenant_busy_ratio"


def web(name: str, revision: str = "7d9") -> Pod:
    """Return a pod of Deployment web."""
    body = fleet.pod_json(
        name, labels={"pod-template-hash": revision}, owner=("ReplicaSet", f"web-{revision}")
    )
    return fleet.pod(body)


def other(name: str, **about: str) -> Pod:
    """Return a pod that nothing owns."""
    return fleet.pod(fleet.pod_json(name, **about))


def joined(layout: Layout, pods: Sequence[Pod], snapshot: Snapshot | None = None) -> Join:
    known = {pod.key: pod for pod in pods}
    return Join(Allocation(layout, known), snapshot or fleet.snapshot(layout))


def shared(
    pods: Sequence[Pod], busy: Column, *, util: float = 80.0, shares: str = "processes"
) -> Join:
    """Return one GPU that every pod holds, with each one's busy share."""
    layout = fleet.layout(
        [fleet.gpu(0)], [fleet.tenant("GPU-n1-0", p.metadata.name) for p in pods]
    )
    snapshot = fleet.snapshot(
        layout, {"gpu_utilization": [util]}, tenant_values={BUSY: busy}, shares=shares
    )
    return joined(layout, pods, snapshot)


def value(join: Join, name: str, metric: str = "gpu_utilization") -> float | None:
    return join.pod(("ml", name), SERVED[metric]).value


def rule(outcome: Outcome) -> Rule | None:
    return outcome.parts[0].rule


def test_a_pod_alone_on_a_device_gets_the_devices_value() -> None:
    join = shared([web("a")], [0.1], util=40.0)
    outcome = join.pod(("ml", "a"), UTILIZATION)
    assert outcome.value == 40.0
    assert rule(outcome) is Rule.ALONE


def test_pods_of_one_workload_that_have_a_device_to_themselves_get_its_value() -> None:
    join = shared([web("a"), web("b"), web("c")], [0.1, 0.6, 0.0], util=70.0)
    outcomes = [join.pod(("ml", n), UTILIZATION) for n in "abc"]
    assert [o.value for o in outcomes] == [70.0, 70.0, 70.0]
    assert rule(outcomes[0]) is Rule.WORKLOAD_ALONE


def test_the_two_revisions_of_a_rollout_are_one_workload() -> None:
    join = shared([web("old", "7d9"), web("new", "8e0")], [0.5, 0.2], util=70.0)
    assert rule(join.pod(("ml", "new"), UTILIZATION)) is Rule.WORKLOAD_ALONE


def test_saturated_strangers_get_a_full_device_each() -> None:
    join = shared([other(n) for n in "abcd"], [0.25] * 4, util=100.0)
    assert [value(join, n) for n in "abcd"] == [100.0] * 4


def test_an_idle_pod_beside_a_busy_stranger_is_idle() -> None:
    join = shared([web("idle"), other("busy")], [0.02, 0.98], util=100.0)
    assert value(join, "idle") == pytest.approx(4.0)
    assert value(join, "busy") == pytest.approx(100.0)


def test_what_others_leave_free_counts_as_available() -> None:
    # Of the device 0.9 is free of others: 0.45 used of it is half.
    join = shared([web("a"), other("b")], [0.45, 0.1])
    assert value(join, "a") == pytest.approx(50.0)
    assert value(join, "b") == pytest.approx(100 * 0.1 / 0.55)


def test_all_pods_of_a_workload_count_together() -> None:
    join = shared([web("a"), web("b"), other("c")], [0.3, 0.1, 0.5])
    # W 0.4, m 2 of n 3: max(2/3, 1 - 0.5).
    assert value(join, "a") == value(join, "b") == pytest.approx(60.0)


def test_the_inputs_of_the_share_are_kept_for_explanations() -> None:
    join = shared([web("a"), other("b")], [0.25, 0.5])
    shares = join.pod(("ml", "a"), UTILIZATION).parts[0].shares
    assert shares is not None
    assert (shares.own, shares.total, shares.holders, shares.tenants) == (0.25, 0.75, 1, 2)


def test_processes_of_the_host_are_busy_but_hold_nothing() -> None:
    pods = [web("a"), other("b")]
    tenants = [fleet.tenant("GPU-n1-0", n) for n in "ab"]
    tenants.append(Tenant(device="GPU-n1-0", namespace="", pod="", container="", allocated=False))
    layout = fleet.layout([fleet.gpu(0)], tenants)
    snapshot = fleet.snapshot(layout, tenant_values={BUSY: [0.2, 0.2, 0.2]}, shares="processes")
    shares = joined(layout, pods, snapshot).pod(("ml", "a"), UTILIZATION).parts[0].shares
    assert shares is not None
    assert shares.total == pytest.approx(0.6)
    assert shares.tenants == 2


def test_a_container_with_two_replicas_of_a_device_is_one_tenant() -> None:
    tenants = [
        fleet.tenant("GPU-n1-0", "a", replica="0"),
        fleet.tenant("GPU-n1-0", "a", replica="1"),
        fleet.tenant("GPU-n1-0", "b", replica="2"),
    ]
    layout = fleet.layout([fleet.gpu(0)], tenants)
    snapshot = fleet.snapshot(layout, tenant_values={BUSY: [0.3, 0.3, 0.4]}, shares="processes")
    shares = joined(layout, [web("a"), other("b")], snapshot).pod(("ml", "a"), UTILIZATION)
    inputs = shares.parts[0].shares
    assert inputs is not None
    assert (inputs.own, inputs.tenants) == (0.3, 2)


@pytest.mark.parametrize(
    ("busy", "shares"), [([0.5, None], "processes"), ([0.5, 0.5], ""), ([None, None], "processes")]
)
def test_unknown_shares_give_the_devices_value_and_say_so(busy: Column, shares: str) -> None:
    join = shared([web("a"), other("b")], busy, util=66.0, shares=shares)
    outcome = join.pod(("ml", "a"), UTILIZATION)
    assert outcome.value == 66.0
    assert rule(outcome) is Rule.SHARES_UNKNOWN


def test_memory_of_a_shared_device_is_the_tenants_own_or_absent() -> None:
    pods = [web("a"), web("b")]
    layout = fleet.layout([fleet.gpu(0)], [fleet.tenant("GPU-n1-0", n) for n in "ab"])
    known = fleet.snapshot(layout, tenant_values={"gpu_tenant_memory_used_bytes": [5.0, None]})
    join = joined(layout, pods, known)
    assert join.pod(("ml", "a"), MEMORY).value == 5.0
    assert join.pod(("ml", "a"), MEMORY).parts[0].rule is Rule.TENANT
    assert join.pod(("ml", "b"), MEMORY).absence is Absence.NOT_ATTRIBUTABLE
    assert join.pod(("ml", "a"), POWER).absence is Absence.NOT_ATTRIBUTABLE


def test_memory_of_a_device_that_two_containers_of_a_pod_share_is_the_devices() -> None:
    tenants = [
        fleet.tenant("GPU-n1-0", "a", container="one"),
        fleet.tenant("GPU-n1-0", "a", container="two"),
    ]
    join = joined(fleet.layout([fleet.gpu(0)], tenants), [web("a")])
    assert join.pod(("ml", "a"), MEMORY).value == fleet.READINGS["gpu_memory_used_bytes"]


def test_several_devices_are_averaged_or_summed() -> None:
    layout = fleet.layout(
        [fleet.gpu(0), fleet.gpu(1)], [fleet.tenant(f"GPU-n1-{i}", "a") for i in (0, 1)]
    )
    snapshot = fleet.snapshot(
        layout, {"gpu_utilization": [20.0, 60.0], "gpu_power_usage_watts": [100.0, 300.0]},
        ages=[1.0, 4.0],
    )  # fmt: skip
    join = joined(layout, [web("a")], snapshot)
    outcome = join.pod(("ml", "a"), UTILIZATION)
    assert (outcome.value, outcome.age_seconds) == (40.0, 4.0)
    assert value(join, "a", "gpu_power_usage_watts") == 400.0


def test_one_silent_device_leaves_the_pod_without_a_value() -> None:
    layout = fleet.layout(
        [fleet.gpu(0), fleet.gpu(1)], [fleet.tenant(f"GPU-n1-{i}", "a") for i in (0, 1)]
    )
    snapshot = fleet.snapshot(layout, {"gpu_utilization": [90.0, None]})
    outcome = joined(layout, [web("a")], snapshot).pod(("ml", "a"), UTILIZATION)
    assert outcome.value is None
    assert outcome.absence is Absence.NO_VALUE
    assert "GPU-n1-1" in outcome.detail


def test_a_lost_device_has_no_value_though_its_window_still_has_one() -> None:
    layout = fleet.layout([fleet.gpu(0)], [fleet.tenant("GPU-n1-0", "a")])
    snapshot = fleet.snapshot(layout, up=[False])
    outcome = joined(layout, [web("a")], snapshot).pod(("ml", "a"), UTILIZATION)
    assert outcome.absence is Absence.DOWN


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("gpu_utilization", 100.1),
        ("gpu_utilization", -1.0),
        ("gpu_memory_utilization", 250.0),
        ("gpu_memory_used_bytes", 1.7e308),
        ("gpu_power_usage_watts", 1e25),
    ],
)
@pytest.mark.parametrize("pods", ["a", "ab"], ids=["alone", "shared"])
def test_what_no_device_can_read_is_absent_with_the_value_as_the_reason(
    metric: str, value: float, pods: str
) -> None:
    layout = fleet.layout([fleet.gpu(0)], [fleet.tenant("GPU-n1-0", n) for n in pods])
    tenants = {BUSY: [0.1] * len(pods), "gpu_tenant_memory_used_bytes": [5.0] * len(pods)}
    snapshot = fleet.snapshot(layout, {metric: [value]}, tenant_values=tenants, shares="processes")
    join = joined(layout, [other(n) for n in pods], snapshot)
    for outcome in (join.pod(("ml", "a"), SERVED[metric]), join.node(SERVED[metric])):
        assert outcome.value is None
        assert outcome.absence is Absence.IMPOSSIBLE
        assert f"{value:g}" in outcome.detail


def test_a_mean_that_rounding_took_past_a_limit_is_possible() -> None:
    join = shared([web("a")], [0.1], util=100.00000000000003)
    assert value(join, "a") == pytest.approx(100.0)


@pytest.mark.parametrize("busy", [-0.5, 7.0, 1e300])
def test_a_share_that_cannot_be_makes_all_shares_unknown(busy: float) -> None:
    join = shared([web("a"), other("b")], [busy, 0.5], util=66.0)
    outcome = join.pod(("ml", "b"), UTILIZATION)
    assert outcome.value == 66.0
    assert rule(outcome) is Rule.SHARES_UNKNOWN


def test_a_tenants_part_that_cannot_be_is_unknown() -> None:
    layout = fleet.layout([fleet.gpu(0)], [fleet.tenant("GPU-n1-0", n) for n in "ab"])
    parts = {"gpu_tenant_memory_used_bytes": [-5.0, 1e300]}
    join = joined(layout, [web("a"), web("b")], fleet.snapshot(layout, tenant_values=parts))
    for name in "ab":
        assert join.pod(("ml", name), MEMORY).absence is Absence.NOT_ATTRIBUTABLE


def test_thousands_of_tenants_are_assigned_in_a_time_that_grows_with_their_number() -> None:
    tenants = [fleet.tenant("GPU-n1-0", f"p{n}") for n in range(17_000)]
    hosts = [
        Tenant(device="GPU-n1-0", namespace="", pod="", container="", allocated=False)
    ] * 17_000
    layout = fleet.layout([fleet.gpu(0)], [*tenants, *hosts])
    began = time.process_time()
    allocation = Allocation(layout, {})
    assert time.process_time() - began < 0.5
    assert len(allocation.holders[0]) == len(allocation.guests[0]) == 17_000


def test_the_pods_of_a_crowded_device_are_served_without_counting_the_crowd_for_each() -> None:
    pods = [web(f"p{n}") for n in range(250)]
    tenants = [fleet.tenant("GPU-n1-0", f"p{n}") for n in range(10_000)]
    layout = fleet.layout([fleet.gpu(0)], tenants)
    snapshot = fleet.snapshot(layout, tenant_values={BUSY: [2**-14] * 10_000}, shares="processes")
    join = joined(layout, pods, snapshot)
    began = time.process_time()
    shares = [join.pod(pod.key, UTILIZATION).parts[0].shares for pod in pods]
    assert time.process_time() - began < 0.5
    inputs = shares[0]
    assert inputs is not None
    assert (inputs.own, inputs.holders, inputs.tenants) == (250 * 2**-14, 250, 10_000)
    assert inputs.total == 10_000 * 2**-14


def test_what_a_device_cannot_report_is_absent_with_its_reason() -> None:
    layout = fleet.layout(
        [fleet.mig(0, 1)], [fleet.tenant("MIG-n1-0-1", "a")],
        support={"gpu_utilization": ("not on MIG before Hopper",)},
    )  # fmt: skip
    snapshot = fleet.snapshot(layout, {"gpu_utilization": [None]})
    outcome = joined(layout, [web("a")], snapshot).pod(("ml", "a"), UTILIZATION)
    assert outcome.absence is Absence.UNSUPPORTED
    assert "before Hopper" in outcome.detail


@pytest.mark.parametrize(
    ("pod", "tenant"),
    [
        (other("a", phase="Succeeded"), fleet.tenant("GPU-n1-0", "a")),
        (other("a", phase="Failed"), fleet.tenant("GPU-n1-0", "a")),
        (other("a"), fleet.tenant("GPU-n1-0", "a", uid="uid-of-the-pod-before")),
    ],
    ids=["succeeded", "failed", "replaced"],
)
def test_a_pod_that_has_ended_holds_nothing_and_shares_with_nobody(
    pod: Pod, tenant: Tenant
) -> None:
    layout = fleet.layout([fleet.gpu(0)], [tenant, fleet.tenant("GPU-n1-0", "b")])
    join = joined(layout, [pod, web("b")])
    assert join.pod(("ml", "a"), UTILIZATION).absence is Absence.NO_DEVICE
    assert rule(join.pod(("ml", "b"), UTILIZATION)) is Rule.ALONE


def test_a_tenant_whose_pod_is_unknown_is_a_stranger_and_gets_nothing() -> None:
    layout = fleet.layout([fleet.gpu(0)], [fleet.tenant("GPU-n1-0", n) for n in ("ghost", "b")])
    join = joined(layout, [web("b")])
    assert join.pod(("ml", "ghost"), UTILIZATION).absence is Absence.NO_DEVICE
    assert rule(join.pod(("ml", "b"), UTILIZATION)) is Rule.SHARES_UNKNOWN
    assert join.namespace("ml", MEMORY).absence is None


def test_without_tenants_pods_have_no_values() -> None:
    layout = fleet.layout([fleet.gpu(0)], tenants_known=False)
    join = joined(layout, [web("a")])
    assert join.pod(("ml", "a"), UTILIZATION).absence is Absence.TENANTS_UNKNOWN
    assert join.node(UTILIZATION).value == fleet.READINGS["gpu_utilization"]


RATIOS = st.floats(0, 1).map(lambda r: round(r, 4))


@st.composite
def loads(draw: st.DrawFn) -> tuple[list[Pod], list[float]]:
    """Draw pods of two workloads and strangers, with busy shares that sum to at most 1."""
    kinds = draw(st.lists(st.sampled_from(["web", "stranger"]), min_size=1, max_size=6))
    weights = draw(st.lists(RATIOS, min_size=len(kinds), max_size=len(kinds)))
    scale = draw(RATIOS) / max(sum(weights), 1.0)
    pods = [web(f"p{i}") if k == "web" else other(f"p{i}") for i, k in enumerate(kinds)]
    return pods, [w * scale for w in weights]


@given(loads())
def test_a_share_is_a_percentage_that_never_hides_use(
    load: tuple[list[Pod], list[float]],
) -> None:
    pods, busy = load
    total = 100 * sum(busy)
    join = shared(pods, list(busy), util=total)
    for pod, own in zip(pods, busy, strict=True):
        got = value(join, pod.metadata.name)
        assert got is not None
        assert 0 <= got <= 100.0 + 1e-9
        assert got >= 100 * own - 1e-6


@given(loads(), RATIOS)
def test_replicas_that_take_load_elsewhere_lower_the_value_in_proportion(
    load: tuple[list[Pod], list[float]], factor: float
) -> None:
    pods, busy = load
    before = shared(pods, list(busy))
    web_rows = [bool(p.metadata.owner_references) for p in pods]
    less = [b * factor if mine else b for b, mine in zip(busy, web_rows, strict=True)]
    after = shared(pods, less)
    for pod, mine in zip(pods, web_rows, strict=True):
        if mine and not all(web_rows):
            was, now = value(before, pod.metadata.name), value(after, pod.metadata.name)
            assert was is not None
            assert now == pytest.approx(was * factor, abs=1e-6)
