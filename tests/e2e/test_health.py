"""Nodes leave and enter service on a real Kubernetes: the real node's GPUs fail, and played ones'.

Each test leaves every node in service, or the next one does not begin.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from health.book import CONFIG_MAP_NAME
from health.checks.model import Condition
from health.names import CORDONED, HOLD, PREFIX, STATE
from simulator.scenario import Lost, RecoveryNeeded, ResetRequired
from slicewatch.catalog.readings.errors import Recovery
from testbed import binaries, require
from testbed.binaries import Unavailable
from testbed.cluster.cluster import Cluster
from testbed.cluster.waiting import ClusterError
from testbed.health import shipped
from testbed.health.audit import AuditLog
from testbed.health.monitored import NODES, PLAYED, REAL, SPEED, TRAINER, MonitoredCluster

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SECONDS = 120.0
HEARTBEATS_PER_HOUR = 12
HOUR_SECONDS = 3600.0
BUDGET = ("configmap", CONFIG_MAP_NAME, f"--namespace={shipped.NAMESPACE}")
FIRST, SECOND, THIRD = PLAYED


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    return AuditLog(tmp_path_factory.mktemp("audit"))


@pytest.fixture(scope="module")
def fleet(audit: AuditLog) -> Iterator[MonitoredCluster]:
    try:
        Cluster.prepare()
        binaries.binary("kwok")
    except Unavailable as missing:
        require.skip_or_fail(str(missing))
    with (
        Cluster.start(apiserver_flags=audit.flags) as cluster,
        MonitoredCluster(cluster) as fleet,
    ):
        yield fleet


@pytest.fixture(autouse=True)
def _in_service(fleet: MonitoredCluster) -> Iterator[None]:
    """Begin and end with all nodes in service and nothing of a human on them."""
    until(fleet, "all nodes in service", lambda: all(in_service(fleet, name) for name in NODES))
    yield
    for name in NODES:
        fleet.gpus[name].clear()
        fleet.annotate(name, hold=None, clear="true" if name == REAL else None)


def until(fleet: MonitoredCluster, what: str, holds: Callable[[], Any]) -> None:
    fleet.cluster.until(holds, what=what, seconds=SECONDS, log=f"monitor-{FIRST}")


def annotations(node: dict[str, Any]) -> dict[str, str]:
    return {
        key.removeprefix(PREFIX): value
        for key, value in node["metadata"].get("annotations", {}).items()
        if key.startswith(PREFIX)
    }


def is_cordoned(node: dict[str, Any]) -> bool:
    return bool(node["spec"].get("unschedulable"))


def is_ours(fleet: MonitoredCluster, name: str) -> bool:
    """Tell whether the monitor has taken a node out of service, all of it."""
    node = fleet.node(name)
    assert is_cordoned(node) or CORDONED not in node["metadata"].get("annotations", {}), node
    return is_cordoned(node) and "cordoned" in annotations(node) and says(fleet, name, "True")


def in_service(fleet: MonitoredCluster, name: str) -> bool:
    node = fleet.node(name)
    said = says(fleet, name, "False") and annotations(node).keys() == {"state"}
    return said and not is_cordoned(node) and name not in slots(fleet)


def says(fleet: MonitoredCluster, name: str, status: str) -> bool:
    return fleet.condition(name, Condition.UNHEALTHY).get("status") == status


def slots(fleet: MonitoredCluster) -> dict[str, Any]:
    try:
        return dict(json.loads(fleet.cluster.get(*BUDGET)["data"].get("slots", "{}")))
    except ClusterError:
        return {}


def polls(fleet: MonitoredCluster, audit: AuditLog, name: str, count: int) -> None:
    """Wait until a monitor has looked at its node so many times more."""

    def seen() -> int:
        asked = audit.requests(name)
        return sum(one.what == f"get nodes {name}" for one in asked)

    wanted = seen() + count
    until(fleet, f"{count} polls of {name}", lambda: seen() >= wanted)


def test_a_healthy_node_costs_no_more_writes_than_its_heartbeats(
    fleet: MonitoredCluster, audit: AuditLog
) -> None:
    begin = time.time()

    def writes() -> list[float]:
        asked = audit.requests(FIRST)
        return [one.at for one in asked if one.writes and one.at > begin]

    until(fleet, "six heartbeats", lambda: len(writes()) >= 6)
    times = writes()
    hours = (times[-1] - times[0]) * SPEED / HOUR_SECONDS
    print(f"\n{len(times) - 1} writes in {hours:.2f} hours of the monitor's clock")
    # A request takes its own time, which the fast clock makes long: a tenth is that.
    assert (len(times) - 1) / hours <= HEARTBEATS_PER_HOUR * 1.1
    assert {one.what for one in audit.requests(FIRST) if one.writes and one.at > begin} == {
        f"patch nodes/status {FIRST}"
    }


def test_a_lost_gpu_takes_its_node_out_of_service_and_everybody_can_read_why(
    fleet: MonitoredCluster,
) -> None:
    fleet.gpus[REAL].inject(Lost(node=REAL, gpu=1))
    until(fleet, "the real node out of service", lambda: is_ours(fleet, REAL))
    until(fleet, "its events", lambda: {"GPULost", "GPUNodeCordoned"} <= {*fleet.reasons(REAL)})

    node = fleet.cluster.kubectl("describe", "node", REAL)
    print(f"\n{node}")
    assert re.search(r"Unschedulable: +true", node)
    assert re.search(r"GPUUnhealthy +True .* GPULost +1 of 2 GPUs healthy: GPU 1: ", node)
    assert re.search(r"Warning +GPUNodeCordoned .* gpu-health-monitor +cordoned: the GPU is", node)
    pod = fleet.cluster.kubectl("describe", "pod", TRAINER)
    print(pod)
    assert re.search(rf"Warning +GPULost .* GPU 1 \(GPU-.*\) of node {REAL}: the GPU is lost", pod)
    assert fleet.cluster.get("pod", TRAINER)["status"]["phase"] == "Running"
    # The controller of nodes has made a taint of the cordon; the monitor's pod stays beside it.
    taints = {taint["key"] for taint in fleet.node(REAL)["spec"]["taints"]}
    assert "node.kubernetes.io/unschedulable" in taints
    assert fleet.pod_of(REAL)["status"]["phase"] == "Running"

    fleet.gpus[REAL].clear()
    fleet.annotate(REAL, clear="true")
    until(fleet, "the real node in service", lambda: in_service(fleet, REAL))
    assert "GPUNodeUncordoned" in fleet.reasons(REAL)


def test_a_node_that_recovers_is_released_without_anybody(fleet: MonitoredCluster) -> None:
    fleet.gpus[FIRST].inject(Lost(node=FIRST, gpu=0))
    until(fleet, "the node out of service", lambda: is_ours(fleet, FIRST))
    assert FIRST in slots(fleet)
    fleet.gpus[FIRST].clear()
    until(fleet, "the node in service", lambda: in_service(fleet, FIRST))


def test_a_node_that_a_human_has_cordoned_stays_cordoned(
    fleet: MonitoredCluster, audit: AuditLog
) -> None:
    fleet.cluster.kubectl("cordon", SECOND)
    fleet.gpus[SECOND].inject(Lost(node=SECOND, gpu=0))
    until(fleet, "the fault to be said", lambda: says(fleet, SECOND, "True"))
    fleet.gpus[SECOND].clear()
    until(fleet, "its end to be said", lambda: says(fleet, SECOND, "False"))
    polls(fleet, audit, SECOND, 10)
    node = fleet.node(SECOND)
    assert is_cordoned(node)
    assert annotations(node).keys() == {"state"}
    fleet.cluster.kubectl("uncordon", SECOND)


def test_a_node_that_a_human_has_uncordoned_stays_in_service_until_it_fails_anew(
    fleet: MonitoredCluster, audit: AuditLog
) -> None:
    fault = fleet.gpus[SECOND].inject(Lost(node=SECOND, gpu=0))
    until(fleet, "the node out of service", lambda: is_ours(fleet, SECOND))
    fleet.cluster.kubectl("uncordon", SECOND)
    polls(fleet, audit, SECOND, 10)
    node = fleet.node(SECOND)
    assert not is_cordoned(node)
    assert annotations(node).keys() == {"state"}
    assert says(fleet, SECOND, "True")
    assert SECOND not in slots(fleet)
    fleet.gpus[SECOND].clear(fault)
    until(fleet, "the end to be said", lambda: says(fleet, SECOND, "False"))
    fleet.gpus[SECOND].inject(Lost(node=SECOND, gpu=0))
    until(fleet, "the node out of service again", lambda: is_ours(fleet, SECOND))


def test_a_node_that_a_human_holds_is_left_as_it_is(
    fleet: MonitoredCluster, audit: AuditLog
) -> None:
    fleet.annotate(THIRD, hold="true")
    fleet.gpus[THIRD].inject(Lost(node=THIRD, gpu=0))
    until(fleet, "the fault to be said", lambda: says(fleet, THIRD, "True"))
    polls(fleet, audit, THIRD, 5)
    assert not is_cordoned(fleet.node(THIRD))
    fleet.annotate(THIRD, hold=None)
    until(fleet, "the node out of service", lambda: is_ours(fleet, THIRD))
    fleet.annotate(THIRD, hold="true")
    fleet.gpus[THIRD].clear()
    until(fleet, "the end to be said", lambda: says(fleet, THIRD, "False"))
    polls(fleet, audit, THIRD, 5)
    assert is_cordoned(fleet.node(THIRD))
    fleet.annotate(THIRD, hold=None)


def test_what_fails_while_the_api_server_is_away_is_found_when_it_is_back(
    fleet: MonitoredCluster,
) -> None:
    fleet.gpus[FIRST].inject(Lost(node=FIRST, gpu=0))
    until(fleet, "the node out of service", lambda: is_ours(fleet, FIRST))
    fleet.cluster.kill_api_server()
    fleet.gpus[FIRST].clear()
    fleet.gpus[SECOND].inject(Lost(node=SECOND, gpu=0))
    log = fleet.monitors[SECOND].log
    fleet.cluster.until(
        lambda: "turn not finished" in log.read_text(), what="a turn without the API server"
    )
    fleet.cluster.start_api_server()
    until(fleet, "the second node out of service", lambda: is_ours(fleet, SECOND))
    until(fleet, "the first node in service", lambda: in_service(fleet, FIRST))
    for name in PLAYED:
        fleet.monitors[name].require_alive()


def test_a_monitor_that_is_killed_goes_on_from_what_the_node_says(
    fleet: MonitoredCluster, audit: AuditLog
) -> None:
    fleet.gpus[FIRST].inject(Lost(node=FIRST, gpu=0))
    until(fleet, "the node out of service", lambda: is_ours(fleet, FIRST))
    since = fleet.condition(FIRST, Condition.UNHEALTHY)["lastTransitionTime"]
    mark = annotations(fleet.node(FIRST))["cordoned"]
    fleet.monitors[FIRST].kill()
    fleet.monitors[FIRST].wait()
    fleet.start_monitor(FIRST)
    polls(fleet, audit, FIRST, 10)
    assert is_ours(fleet, FIRST)
    assert annotations(fleet.node(FIRST))["cordoned"] == mark
    assert fleet.condition(FIRST, Condition.UNHEALTHY)["lastTransitionTime"] == since
    fleet.monitors[FIRST].kill()
    fleet.monitors[FIRST].wait()
    fleet.gpus[FIRST].clear()
    fleet.start_monitor(FIRST)
    until(fleet, "the node in service", lambda: in_service(fleet, FIRST))


def test_one_node_too_many_waits_until_the_budget_has_room(fleet: MonitoredCluster) -> None:
    """Different faults: the same on three nodes at once is held for another reason."""
    fleet.gpus[FIRST].inject(Lost(node=FIRST, gpu=0))
    fleet.gpus[SECOND].inject(ResetRequired(node=SECOND, gpu=0))
    fleet.gpus[THIRD].inject(RecoveryNeeded(node=THIRD, gpu=0, action=Recovery.GPU_RESET))
    until(fleet, "three nodes out of service", lambda: all(is_ours(fleet, n) for n in PLAYED))
    fleet.gpus[REAL].inject(RecoveryNeeded(node=REAL, gpu=0, action=Recovery.NODE_REBOOT))
    until(fleet, "the fault to be said", lambda: says(fleet, REAL, "True"))
    until(fleet, "the wait to be said", lambda: "GPUNodeCordonHeld" in fleet.reasons(REAL))
    assert not is_cordoned(fleet.node(REAL))
    assert "of at most 3 nodes" in fleet.cluster.kubectl("describe", "node", REAL)
    assert slots(fleet).keys() == set(PLAYED)

    fleet.gpus[FIRST].clear()
    until(fleet, "the real node out of service", lambda: is_ours(fleet, REAL))
    assert slots(fleet).keys() == {REAL, SECOND, THIRD}
    assert in_service(fleet, FIRST)


def test_the_same_on_three_nodes_at_once_is_held_until_a_human_allows_it(
    fleet: MonitoredCluster,
) -> None:
    for name in PLAYED:
        fleet.gpus[name].inject(ResetRequired(node=name, gpu=1))
    until(fleet, "all faults to be said", lambda: all(says(fleet, n, "True") for n in PLAYED))
    until(fleet, "a burst to be said", lambda: any(_is_burst(fleet, name) for name in PLAYED))
    assert sum(is_cordoned(fleet.node(name)) for name in PLAYED) < len(PLAYED)
    _switch(fleet, allow="reset_required")
    until(fleet, "all out of service", lambda: all(is_ours(fleet, name) for name in PLAYED))
    _switch(fleet, allow=None)


def test_while_cordons_are_paused_nodes_are_released_but_not_taken(
    fleet: MonitoredCluster, audit: AuditLog
) -> None:
    fleet.gpus[FIRST].inject(Lost(node=FIRST, gpu=0))
    until(fleet, "the first node out of service", lambda: is_ours(fleet, FIRST))
    _switch(fleet, paused="true", **{"paused-reason": "roll-out of a driver"})
    fleet.gpus[FIRST].clear()
    fleet.gpus[SECOND].inject(Lost(node=SECOND, gpu=0))
    until(fleet, "the first node in service", lambda: in_service(fleet, FIRST))
    until(fleet, "the fault to be said", lambda: says(fleet, SECOND, "True"))
    polls(fleet, audit, SECOND, 5)
    assert not is_cordoned(fleet.node(SECOND))
    assert "roll-out of a driver" in fleet.cluster.kubectl("describe", "node", SECOND)
    _switch(fleet, paused=None, **{"paused-reason": None})
    until(fleet, "the second node out of service", lambda: is_ours(fleet, SECOND))


def _switch(fleet: MonitoredCluster, **data: str | None) -> None:
    """Change what is for people in the budget."""
    patch = json.dumps({"data": data})
    fleet.cluster.kubectl("patch", *BUDGET, "--type=merge", f"--patch={patch}")


def _is_burst(fleet: MonitoredCluster, name: str) -> bool:
    return "nodes found reset_required within" in fleet.cluster.kubectl("describe", "node", name)


def test_the_token_in_the_monitors_pod_opens_its_own_node_only(fleet: MonitoredCluster) -> None:
    container = fleet.pod_of(REAL)["status"]["containerStatuses"][0]["containerID"]
    pid = fleet.cluster.container_pids()[container.removeprefix("containerd://")]
    mounted = "var/run/secrets/kubernetes.io/serviceaccount/token"
    token = fleet.cluster.run("cat", f"/proc/{pid}/root/{mounted}").strip()
    patch = json.dumps({"metadata": {"annotations": {STATE: "{}"}}})

    def attempt(name: str, what: str = patch) -> str:
        command = fleet.cluster.kubectl_command("patch", "node", name, f"--patch={what}")
        own = [one for one in command if not one.startswith("--kubeconfig=")]
        own += [f"--server={fleet.cluster.server}", f"--token={token}"]
        own += [f"--certificate-authority={fleet.cluster.pki.ca}", "--dry-run=server"]
        try:
            return fleet.cluster.run(*own, "--kubeconfig=/dev/null")
        except ClusterError as error:
            return str(error)

    assert "patched" in attempt(REAL)
    assert f"of node {REAL} may not write to node {FIRST}" in attempt(FIRST)
    assert "annotations only" in attempt(REAL, '{"metadata":{"labels":{"a":"b"}}}')
    assert "are for people" in attempt(
        REAL, json.dumps({"metadata": {"annotations": {HOLD: "true"}}})
    )


def test_the_policies_are_sound_for_the_api_server(fleet: MonitoredCluster) -> None:
    def checked() -> list[dict[str, Any]]:
        found = fleet.cluster.get("validatingadmissionpolicies")["items"]
        seen = [one for one in found if "typeChecking" in one.get("status", {})]
        return seen if len(seen) == 3 else []

    fleet.cluster.until(checked, what="the policies to be checked")
    warnings = {
        one["metadata"]["name"]: one["status"]["typeChecking"].get("expressionWarnings", [])
        for one in checked()
    }
    assert not any(warnings.values()), warnings


def test_no_monitor_was_ever_refused_anything(fleet: MonitoredCluster, audit: AuditLog) -> None:
    """To be the last: over all that the tests above have made them do."""
    asked = audit.requests()
    assert {one.monitor for one in asked} == {*NODES}
    # One that was started anew may for a moment refuse to read, for it does not know the roles yet.
    assert [one for one in asked if one.writes and one.status in {401, 403, 422}] == []
    shown = {re.sub(r" \S+$", "", one.what) for one in asked}
    assert shown <= {
        "get nodes", "patch nodes", "patch nodes/status", "get configmaps", "patch configmaps",
        "create configmaps", "get daemonsets", "create events", "patch events",
    }  # fmt: skip
