"""How the adapter and who lives on it stand, to be compared before and after something happens."""

import base64
from dataclasses import dataclass
from typing import Any, Final, Self

from testbed.chain import manifests
from testbed.chain.chain import quantity
from testbed.cluster.cluster import Cluster
from testbed.cluster.waiting import ClusterError

Json = dict[str, Any]

_WITHIN: Final = f"--namespace={manifests.WORKLOADS}"
_FAILURES: Final = ("FailedGet", "FailedCompute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What must not change while something else does.

    Attributes:
        available: since when each APIService has been available.
        active: since when the autoscaler has been able to read its metrics.
        generation: of the Deployment; it changes whenever anybody scales it.
        failed: synchronisations of autoscalers that failed.
    """

    available: tuple[str, ...]
    active: str
    generation: int
    failed: int

    @classmethod
    def of(cls, cluster: Cluster, name: str) -> Self:
        """Return the standing of a Deployment with an HPA of the same name.

        Raises:
            ClusterError: an API is not available, or the autoscaler cannot read its metrics.
        """
        events = cluster.get("events", _WITHIN, "--field-selector=type=Warning")["items"]
        failed = [event for event in events if event["reason"].startswith(_FAILURES)]
        return cls(
            available=tuple(_since(one["status"], "Available") for one in _api_services(cluster)),
            active=_since(hpa_status(cluster, name), "ScalingActive"),
            generation=cluster.get("deployment", name, _WITHIN)["metadata"]["generation"],
            failed=sum(event.get("count") or 1 for event in failed),
        )


def hpa_status(cluster: Cluster, name: str) -> Json:
    """Return the status of an HPA; empty before its first synchronisation."""
    return dict(cluster.get("hpa", name, _WITHIN).get("status", {}))


def values_read(status: Json) -> list[float]:
    """Return what the controller has read, of those metrics that it could read."""
    metrics = status.get("currentMetrics") or []
    parts = [part for one in metrics for kind, part in one.items() if kind != "type"]
    read = [part["current"] for part in parts]
    return [quantity(one.get("averageValue") or one["value"]) for one in read]


def trusted(cluster: Cluster) -> set[bytes]:
    """Return the authorities by which kube-apiserver verifies the adapter; empty for any."""
    specs = [one["spec"] for one in _api_services(cluster)]
    return {
        b"" if spec.get("insecureSkipTLSVerify") else base64.b64decode(spec["caBundle"])
        for spec in specs
    }


def _api_services(cluster: Cluster) -> list[Json]:
    names = [f"{version}.{group}" for group, version, _ in manifests.API_VERSIONS]
    return [cluster.get("apiservice", name) for name in names]


def _since(status: Json, kind: str) -> str:
    condition = next((c for c in status.get("conditions", []) if c["type"] == kind), None)
    if condition is None or condition["status"] != "True":
        raise ClusterError(f"{kind} is not true: {condition}")
    return str(condition["lastTransitionTime"])
