"""What a health monitor's token opens at a real API server: its own node, and of it what is ours."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from health.actions.conditions import Conditions
from health.actions.cordon import Cordon
from health.actions.events import Events, of_node
from health.book import CONFIG_MAP_NAME
from health.budget import Claim, Policy
from health.checks.model import CheckId, Condition
from health.decision import NodeCondition
from health.ledger import Ledger, Place
from health.names import CLEAR, CORDONED, HOLD, STATE, TAINT
from slicewatch.kube.client import ApiServer
from slicewatch.kube.errors import KubeError, NotFoundError
from slicewatch.kube.events import EVENT
from slicewatch.kube.nodes import WHOLE_NODE, WholeNode
from slicewatch.kube.objects import CONFIG_MAP, Selection
from testbed import binaries
from testbed.api_server import ApiServerProcesses
from testbed.health import shipped
from testbed.health.bare_nodes import OTHERS_TAINT, BareNodes
from testbed.require import skip_or_fail

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(420)]

SECONDS = 30.0
# On a busy machine the API server takes up a new policy late.
POLICY_SECONDS = 120.0
OURS = {"key": TAINT, "effect": "NoSchedule"}
MARK = "gpu_lost/GPU-1/1"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareNodes]:
    try:
        for name in ("etcd", "kube-apiserver", "kubectl"):
            binaries.binary(name)
    except binaries.Unavailable as missing:
        skip_or_fail(str(missing))
    folder = tmp_path_factory.mktemp("health-policy")
    with ApiServerProcesses(folder) as server:
        nodes = BareNodes(server, folder)
        nodes.apply_rights()
        # All that the policies refuse, roles would allow: so it is the policies that refuse.
        nodes.kubectl(
            "create", "clusterrole", "anything", "--verb=*",
            "--resource=nodes,nodes/status,configmaps,events",
        )  # fmt: skip
        for account in (shipped.ACCOUNT, "other"):
            nodes.kubectl(
                "create", "clusterrolebinding", f"{account}-anything", "--clusterrole=anything",
                f"--serviceaccount={shipped.NAMESPACE}:{account}",
            )  # fmt: skip
        nodes.kubectl("create", "serviceaccount", "other", f"--namespace={shipped.NAMESPACE}")
        asyncio.run(_await_policies(nodes))
        yield nodes


async def _await_policies(nodes: BareNodes) -> None:
    """Return once each policy refuses something: it takes the API server a few seconds."""
    node = (await nodes.add_node()).metadata.name
    async with nodes.client(await nodes.monitor(node)) as monitor:
        for attempt in (
            lambda: monitor.patch(WHOLE_NODE, node, {"metadata": {"labels": {"a": "b"}}}),
            lambda: monitor.create(CONFIG_MAP, {"metadata": {"generateName": "x-"}}, "default"),
            lambda: monitor.create(EVENT, event("another", "x"), "default"),
        ):
            deadline = time.monotonic() + POLICY_SECONDS
            while await refused(attempt()) is None:
                assert time.monotonic() < deadline, "a policy takes no effect"
                await asyncio.sleep(0.1)


async def refused(request: Any) -> str | None:
    """Return with which words a request is refused; None where it is not."""
    try:
        await request
    except KubeError as error:
        if error.code not in {403, 422}:
            raise
        return error.said
    return None


@dataclass(frozen=True)
class Scene:
    """A monitored node, its monitor's client, and the administrator's."""

    node: WholeNode
    monitor: ApiServer
    admin: ApiServer
    nodes: BareNodes

    @property
    def name(self) -> str:
        return self.node.metadata.name

    async def now(self) -> WholeNode:
        return await self.admin.get(WHOLE_NODE, self.name)

    async def raw(self) -> dict[str, Any]:
        return await self.admin.read(WHOLE_NODE.path(name=self.name), dict[str, Any])


@pytest.fixture
async def scene(nodes: BareNodes) -> AsyncIterator[Scene]:
    node = await nodes.add_node()
    async with AsyncExitStack() as stack:
        monitor = await stack.enter_async_context(
            nodes.client(await nodes.monitor(node.metadata.name))
        )
        admin = await stack.enter_async_context(nodes.client())
        yield Scene(node, monitor, admin, nodes)


def annotations(**values: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": values}}


def event(node: str, name: str, **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": node, "apiVersion": "v1"},
        "reason": "GPULost",
        "source": {"component": "gpu-health-monitor", "host": node},
        "reportingComponent": "gpu-health-monitor",
        "reportingInstance": node,
        **more,
    }


async def test_all_that_a_monitor_does_with_its_node_passes(scene: Scene) -> None:
    cordon = Cordon(scene.monitor, taint=True)
    node = await cordon.remember(scene.node, "{}")
    node = await cordon.cordon(node, '{"a":1}', MARK)
    assert (node.spec.unschedulable, node.annotations[CORDONED]) == (True, MARK)
    assert node.spec.taints == (OTHERS_TAINT, OURS)
    node = await cordon.uncordon(node, '{"a":2}')
    assert not node.spec.unschedulable
    assert node.spec.taints == (OTHERS_TAINT,)
    node = await cordon.cordon(node, '{"a":3}', MARK)
    node = await scene.admin.patch(WHOLE_NODE, scene.name, {"spec": {"unschedulable": None}})
    node = await cordon.give_up(node, '{"a":4}')
    assert node.annotations == {"example.com/owner": "platform", STATE: '{"a":4}'}
    await scene.admin.patch(WHOLE_NODE, scene.name, annotations(**{CLEAR: "true"}))
    node = await cordon.remember(await scene.now(), '{"a":5}', cleared=True)
    assert node.annotations == {"example.com/owner": "platform", STATE: '{"a":5}'}


async def test_all_conditions_of_the_monitor_pass_and_go_again(scene: Scene) -> None:
    before = (await scene.raw())["status"]["conditions"]
    said = NodeCondition(present=True, reason="GPULost", message="0 of 8 GPUs healthy")
    shown = Conditions(scene.monitor, scene.name)
    await shown.show(scene.node, dict.fromkeys(Condition, said), now=0.0, wall=time.time())
    conditions = (await scene.raw())["status"]["conditions"]
    assert {one["type"] for one in conditions} == {"Ready", "DiskPressure", *Condition}
    former = Conditions(scene.monitor, scene.name, former=list(Condition))
    await former.show(await scene.now(), {}, now=0.0, wall=time.time())
    assert (await scene.raw())["status"]["conditions"] == before


async def test_the_budget_and_the_events_of_a_monitor_pass(scene: Scene) -> None:
    place = Place(
        namespace=shipped.NAMESPACE, daemon_set=shipped.DAEMON_SET, node=scene.name,
        uid=scene.node.metadata.uid,
    )  # fmt: skip
    claim = Claim(node=scene.name, uid=scene.node.metadata.uid, found={CheckId("hot"): 1.0})
    ledger = Ledger(scene.monitor, place, Policy())
    await ledger.acquire(claim)
    kept = await scene.admin.get(CONFIG_MAP, CONFIG_MAP_NAME, shipped.NAMESPACE)
    assert scene.name in kept.data["slots"]
    await ledger.release()
    kept = await scene.admin.get(CONFIG_MAP, CONFIG_MAP_NAME, shipped.NAMESPACE)
    assert scene.name not in kept.data["slots"]

    events = Events(scene.monitor, scene.name)
    for now in (0.0, 1000.0):  # The second time it is the same event, which counts.
        events.say(of_node(scene.node), "GPULost", "lost", now=now, wall=now + 1e9)
        await events.flush(now)
    page = await scene.admin.list(EVENT, Selection(namespace="default"), limit=500)
    counts = [one.count for one in page.objects if one.involved_object.name == scene.name]
    assert counts == [2]


TOUCHED = {
    "a label": (
        {"metadata": {"labels": {"example.com/rack": "r8"}}}, "annotations only",
    ),
    "a label less": (
        {"metadata": {"labels": {"example.com/rack": None}}}, "annotations only",
    ),
    "a finalizer": ({"metadata": {"finalizers": ["example.com/x"]}}, "annotations only"),
    "an owner": (
        {"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1"}
        ]}},
        "annotations only",
    ),
    "an annotation of others": (annotations(**{"example.com/other": "x"}), "below health."),
    "an annotation of others changed": (annotations(**{"example.com/owner": "x"}), "below health."),
    "an annotation of others removed": (annotations(**{"example.com/owner": None}), "below health."),
    "all annotations": ({"metadata": {"annotations": None}}, "below health."),
    "a hold": (annotations(**{HOLD: "true"}), "are for people"),
    "a clear": (annotations(**{CLEAR: "true"}), "are for people"),
    "a taint of others": (
        {"spec": {"taints": [OTHERS_TAINT, {"key": "example.com/x", "effect": "NoSchedule"}]}},
        "gpu-unhealthy only",
    ),
    "a taint of others changed": (
        {"spec": {"taints": [{**OTHERS_TAINT, "value": "x"}]}}, "gpu-unhealthy only",
    ),
    "a taint of others removed": ({"spec": {"taints": [OURS]}}, "gpu-unhealthy only"),
    "all taints": ({"spec": {"taints": None}}, "gpu-unhealthy only"),
    "its taint to evict": (
        {"spec": {"taints": [OTHERS_TAINT, {**OURS, "effect": "NoExecute"}]}}, "NoSchedule",
    ),
    "a cordon without a mark": ({"spec": {"unschedulable": True}}, "carry its mark"),
    "a mark without a cordon": (annotations(**{CORDONED: MARK}), "in the write that makes it"),
}  # fmt: skip

STATUS_TOUCHED = {
    "the condition Ready": (
        {"conditions": [{"type": "Ready", "status": "False"}]}, "GPUUnhealthy",
    ),
    "a condition of nobody": (
        {"conditions": [{"type": "Melted", "status": "True"}]}, "GPUUnhealthy",
    ),
    "a condition less": (
        {"conditions": [{"type": "DiskPressure", "$patch": "delete"}]}, "GPUUnhealthy",
    ),
    "capacity": ({"capacity": {"nvidia.com/gpu": "0"}}, "status"),
    "capacity more": ({"capacity": {"example.com/x": "1"}}, "status"),
    "allocatable": ({"allocatable": {"nvidia.com/gpu": "0"}}, "status"),
    "addresses": ({"addresses": [{"type": "InternalIP", "address": "192.0.2.66"}]}, "status"),
    "volumes": ({"volumesInUse": ["kubernetes.io/x"]}, "status"),
    "the version of its kubelet": ({"nodeInfo": {"kubeletVersion": "v9"}}, "status"),
}  # fmt: skip


@pytest.mark.parametrize("what", TOUCHED)
async def test_of_its_own_node_a_monitor_cannot_touch(scene: Scene, what: str) -> None:
    before = await scene.raw()
    patch, why = TOUCHED[what]
    assert why in str(await refused(scene.monitor.patch(WHOLE_NODE, scene.name, patch)))
    assert await scene.raw() == before


@pytest.mark.parametrize("what", STATUS_TOUCHED)
async def test_of_its_own_nodes_status_a_monitor_cannot_touch(scene: Scene, what: str) -> None:
    before = await scene.raw()
    patch, why = STATUS_TOUCHED[what]
    request = scene.monitor.patch(
        WHOLE_NODE, scene.name, {"status": patch}, subresource="status", strategic=True
    )
    assert why in str(await refused(request))
    assert await scene.raw() == before


async def test_the_metadata_cannot_be_touched_by_way_of_the_status(scene: Scene) -> None:
    before = await scene.raw()
    for what in ("a label", "a label less", "an annotation of others removed", "a hold"):
        patch, why = TOUCHED[what]
        request = scene.monitor.patch(WHOLE_NODE, scene.name, patch, subresource="status")
        assert why in str(await refused(request))
    assert await scene.raw() == before


@pytest.mark.parametrize(("field", "value"), [("podCIDR", "10.9.0.0/24"), ("providerID", "x://y")])
async def test_a_field_of_the_spec_that_can_be_set_once_is_not_set(
    nodes: BareNodes, field: str, value: str
) -> None:
    name = f"bare-{field.lower()}"
    async with nodes.client() as admin:
        await admin.create(WHOLE_NODE, {"metadata": {"name": name}})
    async with nodes.client(await nodes.monitor(name)) as monitor:
        said = await refused(monitor.patch(WHOLE_NODE, name, {"spec": {field: value}}))
    assert "of a node's spec a health monitor writes unschedulable" in str(said)


async def test_another_node_is_refused_whatever_is_written(scene: Scene) -> None:
    other = (await scene.nodes.add_node()).metadata.name
    before = await scene.admin.read(WHOLE_NODE.path(name=other), dict[str, Any])
    cordon = annotations(**{CORDONED: MARK}) | {"spec": {"unschedulable": True}}
    said = {"status": {"conditions": [{"type": "GPUUnhealthy", "status": "True"}]}}
    for request in (
        scene.monitor.patch(WHOLE_NODE, other, cordon),
        scene.monitor.patch(WHOLE_NODE, other, annotations(**{STATE: "{}"})),
        scene.monitor.patch(WHOLE_NODE, other, said, subresource="status", strategic=True),
    ):
        why = f"the health monitor of node {scene.name} may not write to node {other}"
        assert why in str(await refused(request))
    assert await scene.admin.read(WHOLE_NODE.path(name=other), dict[str, Any]) == before


async def test_a_node_is_neither_created_nor_deleted(scene: Scene) -> None:
    path = WHOLE_NODE.path(name=scene.name)
    assert "neither creates nor deletes" in str(
        await refused(scene.monitor._exchange("DELETE", path))
    )
    new = scene.monitor.create(WHOLE_NODE, {"metadata": {"name": "made-up"}})
    assert "neither creates nor deletes" in str(await refused(new))


async def test_a_cordon_of_somebody_else_cannot_be_ended_nor_claimed(scene: Scene) -> None:
    await scene.admin.patch(WHOLE_NODE, scene.name, {"spec": {"unschedulable": True}})
    uncordon = {"spec": {"unschedulable": None}}
    assert "carry its mark" in str(
        await refused(scene.monitor.patch(WHOLE_NODE, scene.name, uncordon))
    )
    mark = annotations(**{CORDONED: MARK})
    assert "in the write that makes it" in str(
        await refused(scene.monitor.patch(WHOLE_NODE, scene.name, mark))
    )
    assert (await scene.now()).spec.unschedulable


async def test_what_people_hold_is_neither_cordoned_nor_uncordoned(scene: Scene) -> None:
    cordon = Cordon(scene.monitor, taint=False)
    held = await scene.admin.patch(WHOLE_NODE, scene.name, annotations(**{HOLD: " True"}))
    assert "asks to leave the node" in str(await refused(cordon.cordon(held, "", MARK)))
    free = await scene.admin.patch(WHOLE_NODE, scene.name, annotations(**{HOLD: None}))
    await cordon.cordon(free, "", MARK)
    held = await scene.admin.patch(WHOLE_NODE, scene.name, annotations(**{HOLD: "true"}))
    assert "asks to leave the node" in str(await refused(cordon.uncordon(held, "")))


async def test_a_token_of_no_node_opens_nothing(scene: Scene) -> None:
    file = await scene.nodes.token(shipped.ACCOUNT)
    async with scene.nodes.client(file) as monitor:
        for request in (
            monitor.patch(WHOLE_NODE, scene.name, annotations(**{STATE: "{}"})),
            monitor.create(CONFIG_MAP, {"metadata": {"name": CONFIG_MAP_NAME}}, "kube-system"),
        ):
            assert "the token names no node" in str(await refused(request))
        request = monitor.create(EVENT, event(scene.name, "x"), "default")
        assert "of itself and its own node only" in str(await refused(request))


async def test_other_accounts_are_not_concerned(scene: Scene) -> None:
    file = await scene.nodes.monitor(scene.name, "other")
    async with scene.nodes.client(file) as other:
        for what in ("a label", "all annotations", "all taints", "a hold"):
            await other.patch(WHOLE_NODE, scene.name, TOUCHED[what][0])
        for what in ("the condition Ready", "capacity"):
            await other.patch(
                WHOLE_NODE, scene.name, {"status": STATUS_TOUCHED[what][0]}, subresource="status",
                strategic=True,
            )  # fmt: skip
        await other.create(CONFIG_MAP, {"metadata": {"name": scene.name}}, "default")
        await other._exchange("DELETE", WHOLE_NODE.path(name=scene.name))
    with pytest.raises(NotFoundError):
        await scene.now()


@asynccontextmanager
async def budget(scene: Scene, **data: str) -> AsyncIterator[None]:
    """Have people's budget while the body runs."""
    path = CONFIG_MAP.path(shipped.NAMESPACE, CONFIG_MAP_NAME)
    body = {"metadata": {"name": CONFIG_MAP_NAME}, "data": data}
    with suppress(NotFoundError):
        await scene.admin._exchange("DELETE", path)
    await scene.admin.create(CONFIG_MAP, body, shipped.NAMESPACE)
    try:
        yield
    finally:
        await scene.admin._exchange("DELETE", path)


BUDGET_TOUCHED = {
    "unpaused": ({"data": {"paused": "false"}}, "are for people"),
    "the reason removed": ({"data": {"paused-reason": None}}, "are for people"),
    "a burst let through": ({"data": {"allow": "all"}}, "are for people"),
    "emptied": ({"data": None}, "are for people"),
    "labelled": ({"metadata": {"labels": {"a": "b"}}}, "data only"),
    "annotated": ({"metadata": {"annotations": {"a": "b"}}}, "data only"),
    "immutable": ({"immutable": True}, "data only"),
    "binary": ({"binaryData": {"x": "eA=="}}, "data only"),
}


@pytest.mark.parametrize("what", BUDGET_TOUCHED)
async def test_of_the_budget_a_monitor_cannot_have(scene: Scene, what: str) -> None:
    async with budget(scene, paused="true", **{"paused-reason": "roll-out", "slots": "{}"}):
        patch, why = BUDGET_TOUCHED[what]
        request = scene.monitor.patch(
            CONFIG_MAP, CONFIG_MAP_NAME, patch, namespace=shipped.NAMESPACE
        )
        assert why in str(await refused(request))
        await scene.monitor.patch(
            CONFIG_MAP, CONFIG_MAP_NAME, {"data": {"slots": '{"a":{}}', "findings": "{}"}},
            namespace=shipped.NAMESPACE,
        )  # fmt: skip


async def test_a_monitor_makes_no_other_config_map_and_no_switch(scene: Scene) -> None:
    for namespace, name, data in (
        (shipped.NAMESPACE, "other", {}),
        ("default", CONFIG_MAP_NAME, {}),
        (shipped.NAMESPACE, CONFIG_MAP_NAME, {"allow": "all"}),
    ):
        body = {"metadata": {"name": name}, "data": data}
        assert await refused(scene.monitor.create(CONFIG_MAP, body, namespace)) is not None
    async with budget(scene):
        path = CONFIG_MAP.path(shipped.NAMESPACE, CONFIG_MAP_NAME)
        assert "deletes no" in str(await refused(scene.monitor._exchange("DELETE", path)))


async def test_a_monitor_writes_no_event_of_or_about_others(scene: Scene) -> None:
    await scene.admin.create(
        EVENT, event(scene.name, "of-kubelet", reportingComponent="kubelet"), "default"
    )
    forged = scene.monitor.create(
        EVENT, event(scene.name, "forged", source={"component": "kubelet"}), "default"
    )
    about = {"kind": "Node", "name": "another", "apiVersion": "v1"}
    foreign = scene.monitor.create(
        EVENT, event(scene.name, "foreign", involvedObject=about), "default"
    )
    changed = scene.monitor.patch(EVENT, "of-kubelet", {"message": "x"}, namespace="default")
    for request, why in (
        (forged, "of itself"), (foreign, "no other node"), (changed, "of itself"),
    ):  # fmt: skip
        assert why in str(await refused(request))


async def test_a_node_with_all_that_nodes_can_have_is_not_too_much_for_the_policy(
    scene: Scene,
) -> None:
    """A policy has a limit on what it may cost, and fails where it costs more."""
    names = [f"registry.example.com/team/image-{n}@sha256:{n:064}" for n in range(5)]
    many = {
        "images": [{"names": names, "sizeBytes": n} for n in range(50)],
        "volumesInUse": [f"kubernetes.io/csi/x^{n:064}" for n in range(200)],
        "conditions": [{"type": f"Type{n}", "status": "False"} for n in range(40)],
        "capacity": {f"example.com/resource-{n}": "1" for n in range(40)},
    }
    metadata = {
        "annotations": {f"example.com/a-{n}": "x" * 2000 for n in range(100)},
        "labels": {f"example.com/l-{n}": "x" * 60 for n in range(100)},
    }
    taints = [{"key": f"example.com/t-{n}", "effect": "NoSchedule"} for n in range(20)]
    await scene.admin.patch(
        WHOLE_NODE, scene.name, {"metadata": metadata, "spec": {"taints": taints}}
    )
    await scene.admin.patch(WHOLE_NODE, scene.name, {"status": many}, subresource="status")
    node = await Cordon(scene.monitor, taint=True).cordon(await scene.now(), "x" * 2000, MARK)
    said = NodeCondition(present=True, reason="GPULost", message="x" * 1024)
    wanted = dict.fromkeys(Condition, said)
    shown = Conditions(scene.monitor, scene.name)
    node = await shown.show(node, wanted, now=0.0, wall=time.time())
    assert node.condition(Condition.UNHEALTHY) is not None
