"""Kubernetes objects of load programs: pods whose containers keep their devices busy."""

from collections.abc import Mapping, Sequence
from typing import Any

from testbed.cluster import image
from testbed.load.processes import DEVICES, Demand

Manifest = dict[str, Any]


def container(
    name: str,
    demand: Demand,
    *,
    limits: Mapping[str, int] | None = None,
    claim: str = "",
    devices: Sequence[str] = (),
) -> Manifest:
    """Return a container that runs a load program.

    Args:
        name: of the container.
        demand: what the program keeps busy of each device.
        limits: devices by resource; their plugin tells the program what it was given.
        claim: one of the pod's resource claims, instead.
        devices: tells the program itself, where no plugin does: under a claim, which takes a
            newer runtime to do that, or for one that goes around the plugin.
    """
    resources: Manifest = {"limits": {name: str(n) for name, n in (limits or {}).items()}}
    if claim:
        resources["claims"] = [{"name": claim}]
    return {
        "name": name,
        "image": image.PAUSE,
        "imagePullPolicy": "Never",
        "args": demand.arguments(),
        "env": [{"name": DEVICES, "value": ",".join(devices)}] if devices else [],
        "resources": resources,
    }


def pod(
    namespace: str,
    name: str,
    *containers: Manifest,
    claims: Mapping[str, str] | None = None,
    restart: str = "Always",
) -> Manifest:
    """Return a pod that stops at once when told to.

    Args:
        namespace: of the pod.
        name: of the pod.
        containers: made by ``container``.
        claims: the template of each resource claim, by the name that containers use.
        restart: the restart policy.
    """
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "containers": list(containers),
            "resourceClaims": [
                {"name": claim, "resourceClaimTemplateName": template}
                for claim, template in (claims or {}).items()
            ],
            "restartPolicy": restart,
            "terminationGracePeriodSeconds": 1,
        },
    }
