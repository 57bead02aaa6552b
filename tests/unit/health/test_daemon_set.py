"""The DaemonSet as it is shipped: the monitor stays where a node fails, and starts as configured."""

import pytest

from health.names import TAINT
from health.settings import HealthSettings
from slicewatch.service.settings import load
from testbed.health import shipped

POD = shipped.one("daemon-set.yaml", "DaemonSet")["spec"]["template"]["spec"]
CONTAINER = POD["containers"][0]


def tolerates(tolerations, taint):
    """Tell whether one of them matches a taint, by Kubernetes' rules."""
    return any(
        one.get("effect", "") in {"", taint["effect"]}
        and one.get("tolerationSeconds") is None
        and (
            (one.get("operator") == "Exists" and one.get("key", taint["key"]) == taint["key"])
            or (one.get("key") == taint["key"] and one.get("value", "") == taint.get("value", ""))
        )
        for one in tolerations
    )


@pytest.mark.parametrize(
    ("key", "effect"),
    [
        (TAINT, "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("nvidia.com/gpu", "NoSchedule"),
        ("repair.example.com/gpu", "NoExecute"),
    ],
)
def test_no_taint_keeps_it_from_the_node_that_it_has_to_watch(key, effect):
    """GPU nodes had no agent for their taints, and were replaced (containers-roadmap #2567)."""
    assert tolerates(POD["tolerations"], {"key": key, "value": "any", "effect": effect})
    assert not tolerates([], {"key": key, "effect": effect})
    assert not tolerates(
        [{"key": "another", "operator": "Exists"}], {"key": key, "effect": effect}
    )


def test_its_environment_is_what_the_monitor_reads():
    values = {one["name"]: one.get("value", "node-1") for one in CONTAINER["env"]}
    assert load(HealthSettings, [], values) == HealthSettings(node_name="node-1")


def test_the_evidence_socket_is_in_the_folder_that_is_mounted():
    mounted = [one["mountPath"] for one in CONTAINER["volumeMounts"]]
    assert HealthSettings(node_name="n").evidence_socket.rpartition("/")[0] in mounted
