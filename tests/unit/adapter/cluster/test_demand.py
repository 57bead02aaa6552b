"""Who requests what, who waits for it and why, and what could be taken from others."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from adapter.cluster.asks import Ask, Asks, Reason, ask_of
from adapter.cluster.demand import Demand, preemption
from slicewatch.kube.objects import Pod, PriorityClass
from slicewatch.service.exposition import Format

SHORT = (
    "0/3 nodes are available: 1 Insufficient nvidia.com/mig-1g.10gb, 2 node(s) had untolerated "
    "taint {gpu: true}. preemption: 0/3 nodes are available: 3 No preemption victims found for "
    "incoming pod."
)
GPU = "nvidia.com/gpu"


def unschedulable(message: str) -> dict[str, str]:
    return {"reason": "Unschedulable", "message": message}


def test_requests_are_summed_by_namespace_resource_phase_and_priority_class(cluster: Any) -> None:
    cluster.put(
        cluster.pod("a", {"gpu": 2}, node="n", priorityClassName="gpu-critical"),
        cluster.pod("b", {"gpu": 1}, node="n", priorityClassName="gpu-critical"),
        cluster.pod("c", {"gpu": 4}, priorityClassName="gpu-low"),
        cluster.pod("d", {"gpu": 1}, namespace="team-b", node="n"),
        cluster.pod("plain", node="n"),
        cluster.pod("ended", {"gpu": 1}, node="n", phase="Succeeded"),
    )
    assert cluster.series("gpu_pod_requests") == {
        ("ml", GPU, "Running", "gpu-critical"): 3,
        ("ml", GPU, "Pending", "gpu-low"): 4,
        ("team-b", GPU, "Running", ""): 1,
    }


def test_requests_move_with_the_phase_and_end_with_the_pod(cluster: Any) -> None:
    running, waiting = cluster.pod("a", {"gpu": 2}, node="n"), cluster.pod("b", {"gpu": 1})
    cluster.put(running, waiting, cluster.pod("c"))
    assert cluster.series("gpu_pod_requests") == {
        ("ml", GPU, "Running", ""): 2,
        ("ml", GPU, "Pending", ""): 1,
    }
    started = cluster.pod("b", {"gpu": 1}, node="n")
    cluster.put(started)
    cluster.monotonic.at += 1
    assert cluster.series("gpu_pod_requests") == {("ml", GPU, "Running", ""): 3}
    cluster.put(cluster.pod("a", {"gpu": 2}, node="n", phase="Succeeded"))
    cluster.remove(started)
    cluster.monotonic.at += 1
    assert cluster.series("gpu_pod_requests") == {}


def test_requests_are_exposed_as_the_catalog_declares_them(cluster: Any) -> None:
    cluster.put(cluster.pod("a", {"gpu": 2}, node="n"))
    text = cluster.page.render(Format.TEXT).decode()
    (family,) = (f for f in text_string_to_metric_families(text) if f.name == "gpu_pod_requests")
    assert family.type == "gauge"
    labels = {"namespace": "ml", "resource": GPU, "phase": "Running"}
    assert [(s.labels, s.value) for s in family.samples] == [(labels, 2.0)]


def test_a_pod_that_claims_devices_is_counted_although_not_what_it_gets(cluster: Any) -> None:
    """Of what kind the claimed devices are, and how many, a pod does not say."""
    cluster.put(cluster.pod("a", node="n", claims=2), cluster.pod("b", {"gpu": 1}, node="n"))
    assert cluster.series("gpu_cluster_claiming_pods") == {("ml", "Running", ""): 1}
    assert cluster.series("gpu_pod_requests") == {("ml", GPU, "Running", ""): 1}
    assert cluster.series("gpu_cluster_pending_pods") == {}


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (unschedulable(SHORT), Reason.INSUFFICIENT),
        (unschedulable("0/1 nodes are available: 1 Insufficient cpu."), Reason.UNSCHEDULABLE),
        (
            unschedulable("0/1 nodes are available: 1 Insufficient nvidia.com/mig-1g.10gb."),
            Reason.INSUFFICIENT,
        ),
        (
            unschedulable("0/1 nodes are available: 1 Insufficient nvidia.com/mig-1g.10gb.me."),
            Reason.UNSCHEDULABLE,
        ),
        ({"reason": "SchedulingGated", "message": "Scheduling is blocked"}, Reason.GATED),
        ({"reason": "SchedulerError", "message": "no answer"}, Reason.FAILED),
        ({"reason": "MyOwnScheduler"}, Reason.OTHER),
        (None, Reason.NOT_YET),
    ],
)
def test_why_a_pod_waits_is_what_the_scheduler_said_last(
    cluster: Any, condition: dict[str, str] | None, reason: Reason
) -> None:
    cluster.put(cluster.pod("a", {"mig-1g.10gb": 2}, condition=condition))
    key = ("ml", "nvidia.com/mig-1g.10gb", "", str(reason))
    assert cluster.series("gpu_cluster_pending_pods") == {key: 1}
    assert cluster.series("gpu_cluster_pending_devices") == {key: 2}


def test_only_the_resource_that_is_short_is_said_to_be(cluster: Any) -> None:
    cluster.put(cluster.pod("a", {"gpu": 1, "mig-1g.10gb": 1}, condition=unschedulable(SHORT)))
    assert cluster.series("gpu_cluster_pending_pods") == {
        ("ml", GPU, "", "Unschedulable"): 1,
        ("ml", "nvidia.com/mig-1g.10gb", "", "InsufficientDevices"): 1,
    }


def test_a_pod_that_has_a_node_and_is_starting_does_not_wait(cluster: Any) -> None:
    cluster.put(cluster.pod("a", {"gpu": 1}, node="n", phase="Pending"))
    assert cluster.series("gpu_cluster_pending_pods") == {}
    assert cluster.series("gpu_pod_requests") == {("ml", GPU, "Pending", ""): 1}


def test_the_longest_wait_is_that_of_the_oldest_pod_by_our_clock(cluster: Any) -> None:
    # The clock of the test is at 1,790,000,100 s.
    cluster.put(
        cluster.pod("old", {"gpu": 1}, created="2026-09-21T14:15:00Z"),
        cluster.pod("new", {"gpu": 1}, created="2026-09-21T14:15:30Z"),
        cluster.pod("ahead", {"gpu": 1}, namespace="team-b", created="2026-09-21T15:00:00Z"),
        cluster.pod("undated", {"gpu": 1}, namespace="team-c"),
    )
    assert cluster.series("gpu_cluster_longest_pending_seconds") == {
        ("ml", GPU): cluster.wall.at - 1_790_000_100.0,
        ("team-b", GPU): 0.0,
    }


def test_ages_grow_although_nothing_else_changes(cluster: Any) -> None:
    cluster.put(cluster.pod("old", {"gpu": 1}, created="2026-09-21T14:15:00Z"))
    before = cluster.series("gpu_cluster_longest_pending_seconds")["ml", GPU]
    cluster.pass_seconds(60.0)
    assert cluster.series("gpu_cluster_longest_pending_seconds")["ml", GPU] == before + 61.0


# The classes and workloads of the guide on priorities.
CLASSES = {"gpu-critical": 1_000_000, "gpu-high": 900_000, "gpu-low": 100_000}


def with_classes(cluster: Any, **policies: str) -> None:
    system = {"system-node-critical": 2_000_001_000}
    for name, value in (CLASSES | system).items():
        policy = policies.get(name.replace("-", "_"), "")
        body = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
        cluster.put(msgspec.convert(body, PriorityClass))


def test_the_preemptible_share_is_what_the_highest_class_could_take(cluster: Any) -> None:
    with_classes(cluster)
    cluster.put(
        cluster.pod("online", {"mig-3g.40gb": 1}, node="n", priority=1_000_000),
        cluster.pod("offline", {"gpu": 4}, node="n", priority=100_000),
        cluster.pod("batch", {"gpu": 2}, node="n", priority=1_000_000),
    )
    assert cluster.series("gpu_cluster_preemptible_ratio") == {
        (GPU,): pytest.approx(4 / 6),
        ("nvidia.com/mig-3g.40gb",): 0.0,
    }


def test_a_class_that_never_preempts_is_no_measure(cluster: Any) -> None:
    with_classes(cluster, gpu_critical="Never")
    cluster.put(cluster.pod("high", {"gpu": 1}, node="n", priority=900_000))
    assert cluster.series("gpu_cluster_preemptible_ratio") == {(GPU,): 0.0}


def test_without_classes_of_the_users_the_share_is_unknown(cluster: Any) -> None:
    cluster.put(cluster.pod("a", {"gpu": 1}, node="n"))
    assert cluster.series("gpu_cluster_preemptible_ratio") == {}
    assert cluster.series("gpu_cluster_preemption_exposed_devices") == {(GPU,): 0}


@pytest.mark.parametrize(
    ("waiting", "exposed"),
    [
        ({"priority": 1_000_000}, 4),
        ({"priority": 100_000}, 0),
        ({"priority": 1_000_000, "preemptionPolicy": "Never"}, 0),
        ({"priority": 1_000_000, "condition": {"reason": "SchedulingGated"}}, 0),
    ],
)
def test_devices_are_exposed_to_pods_that_wait_and_may_preempt(
    cluster: Any, waiting: dict[str, Any], exposed: int
) -> None:
    cluster.put(cluster.pod("offline", {"gpu": 4}, node="n", priority=100_000))
    cluster.put(cluster.pod("online", {"gpu": 2}, node="n", priority=1_000_000))
    cluster.put(cluster.pod("waits", {"gpu": 1}, **waiting))
    assert cluster.series("gpu_cluster_preemption_exposed_devices") == {(GPU,): exposed}


def test_who_waits_for_other_devices_exposes_none(cluster: Any) -> None:
    cluster.put(cluster.pod("offline", {"gpu": 4}, node="n", priority=100_000))
    cluster.put(cluster.pod("waits", {"mig-3g.40gb": 1}, priority=1_000_000))
    assert cluster.series("gpu_cluster_preemption_exposed_devices") == {(GPU,): 0}


PODS = st.builds(
    lambda name, node, phase, requested, priority, claims: {
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {
            "nodeName": node,
            "priority": priority,
            "resourceClaims": [{"name": "c"}] * claims,
            "containers": [{"name": "main", "resources": {"requests": {GPU: requested}}}],
        },
        "status": {"phase": phase},
    },
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["", "n"]),
    st.sampled_from(["Pending", "Running", "Failed"]),
    st.sampled_from(["0", "1", "3"]),
    st.sampled_from([0, 100, 200]),
    st.integers(0, 1),
).map(lambda body: msgspec.convert(body, Pod))


@given(st.lists(st.tuples(st.booleans(), PODS), max_size=25))
def test_sums_over_pods_are_those_of_a_count_from_scratch(changes: list[tuple[bool, Pod]]) -> None:
    kept, held = Demand(), {}
    asks = Asks(kept.changed)
    for gone, pod in changes:
        old = held.pop(pod.key, None)
        asks.changed(old, None if gone else pod)
        if not gone:
            held[pod.key] = pod
    again = Demand()
    afresh = Asks(again.changed)
    for pod in held.values():
        afresh.changed(None, pod)
    assert kept.requested() == again.requested()
    assert kept.held.sums == again.held.sums
    assert asks.waiting == afresh.waiting
    total = sum(kept.held.sums.values())
    found = preemption(kept.held.sums, asks.waiting.values(), [])
    assert 0 <= sum(found.exposed.values()) <= total


@given(PODS)
def test_a_change_that_is_not_about_devices_tells_nobody(pod: Pod) -> None:
    heard: list[tuple[Ask | None, Ask | None]] = []
    asks = Asks(lambda old, new: heard.append((old, new)))
    asks.changed(None, pod)
    before = len(heard)
    labelled = msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, labels={"seen": "true"})
    )
    asks.changed(pod, labelled)
    assert len(heard) == before == (ask_of(pod) is not None)
