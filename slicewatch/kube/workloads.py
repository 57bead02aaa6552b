"""Which pods do the same work: what an autoscaler scales as one."""

from dataclasses import dataclass
from typing import Final

from slicewatch.kube.objects import PodIdentity

# Controllers that create ReplicaSets, by the label that tells their revisions apart.
REVISION_LABELS: Final = {
    "pod-template-hash": "Deployment",
    "rollouts-pod-template-hash": "Rollout",
}


@dataclass(frozen=True, slots=True)
class Workload:
    """What owns a pod; a pod without an owner is a workload of its own."""

    namespace: str
    kind: str
    name: str


def workload(pod: PodIdentity) -> Workload:
    """Return the workload of a pod.

    All ReplicaSets of a Deployment are one workload, so that a rollout does not turn its old and
    new pods into strangers: the ReplicaSet's name without the revision hash is the Deployment's.
    """
    meta = pod.metadata
    owner = next((o for o in meta.owner_references if o.controller), None)
    if owner is None:
        return Workload(meta.namespace, "Pod", meta.name)
    if owner.kind == "ReplicaSet":
        for label, kind in REVISION_LABELS.items():
            revision = meta.labels.get(label)
            if revision and owner.name.endswith(f"-{revision}"):
                return Workload(meta.namespace, kind, owner.name.removesuffix(f"-{revision}"))
    return Workload(meta.namespace, owner.kind, owner.name)
