"""The index of pods, and what pods ask for."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.api.label_selectors import parse
from adapter.cluster.pods import Pods
from adapter.cluster.requests import may_hold_gpu, of_pod
from slicewatch.kube.objects import Pod
from slicewatch.kube.workloads import workload
from testbed import fleet


def names(pods: Pods, selector: str, namespace: str = "ml") -> list[str]:
    return [p.metadata.name for p in pods.select(namespace, parse(selector))]


def made(name: str, **about: Any) -> Pod:
    return fleet.pod(fleet.pod_json(name, **about))


def test_pods_are_found_by_namespace_label_node_and_name() -> None:
    pods = Pods()
    for pod in (
        made("b", labels={"app": "web", "tier": "x"}),
        made("a", labels={"app": "web"}, node="n2"),
        made("c", labels={"app": "job"}),
        made("d", labels={"app": "web"}, namespace="other"),
    ):
        pods.changed(None, pod)
    assert names(pods, "app=web") == ["a", "b"]
    assert names(pods, "app=web,tier!=x") == ["a"]
    assert names(pods, "app in (job,web)") == ["a", "b", "c"]
    assert names(pods, "") == ["a", "b", "c"]
    assert names(pods, "app=none") == []
    assert names(pods, "app=web", "nowhere") == []
    assert set(pods.on_node("n2")) == {("ml", "a")}
    assert pods.get("ml", "d") is None


def test_a_kept_selection_ends_with_the_next_change_of_its_namespace() -> None:
    pods = Pods()
    old = made("a", labels={"app": "web"})
    pods.changed(None, old)
    first = pods.select("ml", parse("app=web"))
    pods.changed(None, made("x", namespace="other", labels={"app": "web"}))
    assert pods.select("ml", parse("app=web")) is first
    pods.changed(old, made("a", labels={"app": "job"}))
    assert names(pods, "app=web") == []
    assert names(pods, "app=job") == ["a"]


def test_a_change_counts_on_the_nodes_it_touches_only() -> None:
    pods = Pods()
    pods.changed(None, made("a", node="n1"))
    before = pods.node_revision("n1")
    pods.changed(None, made("b", node="n2"))
    pods.changed(None, made("waits", node=""))
    assert pods.node_revision("n1") == before
    pods.changed(made("a", node="n1"), None)
    assert pods.node_revision("n1") != before
    assert pods.on_node("n1") == {}
    pods.changed(None, made("a", node="n1"))
    assert pods.node_revision("n1") > before


POD_CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["web", "job", None]),
        st.sampled_from(["n1", "n2", ""]),
    ),
    max_size=20,
)


@given(POD_CHANGES)
def test_the_index_answers_as_a_search_of_all_pods_would(
    changes: list[tuple[str, str | None, str]],
) -> None:
    pods, held = Pods(), {}
    for name, app, node in changes:
        new = None if app is None else made(name, labels={"app": app}, node=node)
        old = held.pop(name, None)
        if old is None and new is None:
            continue
        pods.changed(old, new)
        if new is not None:
            held[name] = new
        for app_name in ("web", "job"):
            expected = sorted(n for n, p in held.items() if p.metadata.labels["app"] == app_name)
            assert names(pods, f"app={app_name}") == expected
        for where in ("n1", "n2"):
            on_node = {p.key for p in held.values() if p.spec.node_name == where}
            assert set(pods.on_node(where)) == on_node
    assert [p.metadata.name for p in pods.select("ml", parse(""))] == sorted(held)
    for pod in held.values():
        pods.changed(pod, None)
    left = {n: index for n, index in vars(pods).items() if n not in {"revision", "_selections"}}
    assert not any(left.values())


@pytest.mark.parametrize(
    ("owner", "labels", "expected"),
    [
        (None, {}, "Pod ml/a"),
        (("ReplicaSet", "web-7d9"), {"pod-template-hash": "7d9"}, "Deployment ml/web"),
        (("ReplicaSet", "web-7d9"), {}, "ReplicaSet ml/web-7d9"),
        (("ReplicaSet", "own"), {"pod-template-hash": "7d9"}, "ReplicaSet ml/own"),
        (("ReplicaSet", "r-5f"), {"rollouts-pod-template-hash": "5f"}, "Rollout ml/r"),
        (("StatefulSet", "db"), {}, "StatefulSet ml/db"),
        (("Job", "train-1"), {}, "Job ml/train-1"),
    ],
)
def test_a_pod_belongs_to_what_is_scaled(
    owner: tuple[str, str] | None, labels: dict[str, str], expected: str
) -> None:
    found = workload(made("a", owner=owner, labels=labels))
    assert f"{found.kind} {found.namespace}/{found.name}" == expected


def requesting(*containers: dict[str, str], sidecar: str = "", before: str = "") -> Pod:
    body = fleet.pod_json("a", gpus=0)
    body["spec"]["containers"] = [
        {"name": f"c{i}", "resources": {"requests": r}} for i, r in enumerate(containers)
    ]
    init: list[dict[str, Any]] = []
    if sidecar:
        resources = {"requests": {"nvidia.com/gpu": sidecar}}
        init.append({"name": "side", "restartPolicy": "Always", "resources": resources})
    if before:
        init.append({"name": "init", "resources": {"requests": {"nvidia.com/gpu": before}}})
    body["spec"]["initContainers"] = init
    return fleet.pod(body)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (requesting({"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": "1"}), {"nvidia.com/gpu": 3}),
        (requesting({"cpu": "1"}), {}),
        (
            requesting({"nvidia.com/gpu": "1", "nvidia.com/mig-1g.18gb": "2"}),
            {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.18gb": 2},
        ),
        (requesting({"nvidia.com/gpu": "1"}, before="4"), {"nvidia.com/gpu": 4}),
        (requesting({"nvidia.com/gpu": "2"}, sidecar="1"), {"nvidia.com/gpu": 3}),
        (requesting({"nvidia.com/gpu": "1"}, sidecar="1", before="2"), {"nvidia.com/gpu": 3}),
    ],
)
def test_a_pod_asks_for_what_the_scheduler_reserves(pod: Pod, expected: dict[str, int]) -> None:
    assert of_pod(pod) == expected


@pytest.mark.parametrize(
    ("pod", "may"),
    [
        (made("a", gpus=1), True),
        (requesting({"nvidia.com/mig-1g.18gb": "1"}), True),
        (requesting({}, before="1"), True),
        (made("a", gpus=0, claims=["gpu"]), True),
        (requesting({"nvidia.com/gpu": "0"}), False),
        (requesting({"example.com/nvidia.com": "1"}), False),
        (made("a", gpus=0), False),
    ],
    ids=["gpu", "mig", "init", "claim", "zero", "other", "none"],
)
def test_a_pod_may_hold_a_gpu_by_request_or_by_claim(pod: Pod, may: bool) -> None:
    assert may_hold_gpu(pod) is may
