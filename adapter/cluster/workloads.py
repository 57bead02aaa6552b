"""Which pods do the same work: what an autoscaler scales as one."""

from dataclasses import dataclass
from typing import Final

from slicewatch.kube.objects import Pod

# A controller that makes ReplicaSets, by the label with which it tells its revisions apart.
REVISION_LABELS: Final = {
    "pod-template-hash": "Deployment",
    "rollouts-pod-template-hash": "Rollout",
}


@dataclass(frozen=True, slots=True)
class Workload:
    """What owns a pod; a pod that nothing owns is a workload of its own."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def workload(pod: Pod) -> Workload:
    """Return the workload of a pod.

    The ReplicaSets of one Deployment are one workload, so that a rollout does not make its old
    and new pods strangers to each other: what is left of the ReplicaSet's name without the hash
    of the revision names the Deployment.
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
