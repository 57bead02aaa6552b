"""The shipped manifests of the health monitor agree with the program, and ask for little."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from health.actions.conditions import FORMER
from health.actions.events import COMPONENT
from health.book import ALLOW, CONFIG_MAP_NAME, FINDINGS, PAUSED, SLOTS
from health.checks.model import Condition
from health.names import CLEAR, CORDONED, HOLD, PREFIX, TAINT
from health.settings import HealthSettings
from slicewatch.service.settings import load
from testbed.health import shipped

POLICIES = ("node-policy.yaml", "budget-policy.yaml", "event-policy.yaml")

# What a monitor may do, apart from what the policies take away again. Who changes this has a
# reason: it is all that a stolen token is good for.
ALLOWED = {
    ("get", "nodes", "", ""), ("patch", "nodes", "", ""), ("patch", "nodes/status", "", ""),
    ("create", "events", "", ""), ("patch", "events", "", ""),
    ("get", "configmaps", shipped.NAMESPACE, CONFIG_MAP_NAME),
    ("patch", "configmaps", shipped.NAMESPACE, CONFIG_MAP_NAME),
    ("create", "configmaps", shipped.NAMESPACE, ""),
    ("get", "daemonsets", shipped.NAMESPACE, shipped.DAEMON_SET),
}  # fmt: skip


@pytest.fixture(name="pod")
def _pod() -> dict[str, Any]:
    made = shipped.one("daemon-set.yaml", "DaemonSet")
    return dict(made["spec"]["template"]["spec"])


def policy(name: str) -> dict[str, Any]:
    return dict(shipped.one(name, "ValidatingAdmissionPolicy")["spec"])


def tolerates(toleration: dict[str, str], taint: dict[str, str]) -> bool:
    """Tell as Kubernetes does whether a toleration matches a taint."""
    if toleration.get("effect", taint["effect"]) != taint["effect"]:
        return False
    if toleration.get("key", taint["key"]) != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return "key" in toleration and toleration.get("value", "") == taint.get("value", "")


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
@pytest.mark.parametrize(
    "key", [TAINT, "node.kubernetes.io/unschedulable", "nvidia.com/gpu", "example.com/dedicated"]
)
def test_the_monitor_stays_on_a_node_whatever_taint_it_has(
    pod: dict[str, Any], key: str, effect: str
) -> None:
    """GPU nodes had no agent for their taints, and were replaced (containers-roadmap #2567)."""
    taint = {"key": key, "value": "true", "effect": effect}
    assert any(tolerates(one, taint) for one in pod["tolerations"])


def test_the_names_are_those_that_clusters_have_already() -> None:
    made = shipped.one("daemon-set.yaml", "DaemonSet")
    assert made["metadata"]["name"] == shipped.DAEMON_SET == COMPONENT
    assert made["spec"]["template"]["spec"]["serviceAccountName"] == shipped.ACCOUNT
    assert {one["metadata"].get("namespace") for one in _all() if _has_namespace(one)} == {
        shipped.NAMESPACE
    }


def test_the_settings_are_the_defaults_to_the_letter(pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]
    variables = {one["name"]: one.get("value", "node-1") for one in container["env"]}
    assert variables.keys() == {
        "CHECK_INTERVAL", "MEMORY_ERROR_THRESHOLD", "TEMPERATURE_THRESHOLD", "AUTO_CORDON",
        "NODE_NAME",
    }  # fmt: skip
    settings = load(HealthSettings, [], variables)
    assert settings == HealthSettings(node_name="node-1")
    assert container["ports"][0]["containerPort"] == settings.listen.port
    (mount,) = container["volumeMounts"]
    assert Path(settings.evidence_socket).parent == Path(mount["mountPath"])
    assert settings.daemon_set == shipped.DAEMON_SET


def test_the_pod_has_no_privileges_and_sees_one_folder_of_the_node(pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostPID", "hostNetwork", "hostIPC"} & pod.keys()
    assert [volume["hostPath"]["path"] for volume in pod["volumes"]] == ["/run/slicewatch"]
    assert all(mount["readOnly"] for mount in container["volumeMounts"])


def test_the_roles_allow_what_is_used_and_nothing_more() -> None:
    found = {
        (verb, resource, role["metadata"].get("namespace", ""), name)
        for role in shipped.objects("rbac.yaml")
        for rule in role.get("rules", ())
        for verb in rule["verbs"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
    }
    assert found == ALLOWED


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_concerns_the_monitors_fails_closed_and_is_bound(name: str) -> None:
    spec = policy(name)
    (condition,) = spec["matchConditions"]
    assert condition["expression"] == f"request.userInfo.username == '{shipped.USER}'"
    assert spec["failurePolicy"] == "Fail"
    binding = shipped.one(name, "ValidatingAdmissionPolicyBinding")["spec"]
    made = shipped.one(name, "ValidatingAdmissionPolicy")["metadata"]
    assert binding == {"policyName": made["name"], "validationActions": ["Deny"]}
    assert all({"message", "messageExpression"} & one.keys() for one in spec["validations"])


def test_the_policies_know_the_names_that_the_program_writes() -> None:
    spec = policy("node-policy.yaml")
    (ours,) = (one for one in spec["variables"] if one["name"] == "ours")
    assert yaml.safe_load(ours["expression"]) == [*Condition, *FORMER]
    text = yaml.safe_dump(spec, width=1000)
    for name in (PREFIX, CORDONED, HOLD, CLEAR, TAINT):
        assert name in text
    budget = yaml.safe_dump(policy("budget-policy.yaml"), width=1000)
    assert f"'{SLOTS}', '{FINDINGS}'" in budget.replace("''", "'")
    assert CONFIG_MAP_NAME in budget
    assert not {PAUSED, ALLOW} & set(budget.split("'"))
    assert COMPONENT in yaml.safe_dump(policy("event-policy.yaml"))


def _all() -> list[dict[str, Any]]:
    return [
        one for file in sorted(shipped.FOLDER.glob("*.yaml")) for one in shipped.objects(file.name)
    ]


def _has_namespace(one: dict[str, Any]) -> bool:
    return one["kind"] in {"DaemonSet", "Role", "RoleBinding", "ServiceAccount"}
