"""The pods of this node: their labels, their workload, and whether they have ended."""

from collections.abc import Collection
from typing import Final

import msgspec

from exporter.tenants.protocol import PodFacts, PodName, Versioned
from slicewatch.kube.objects import PodIdentity
from slicewatch.kube.workloads import workload

# The kubelet lists a pod for some seconds after it was deleted; so many at a time are enough for
# a node that deletes all of its pods at once.
KEPT_DELETED: Final = 512


class PodFeed:
    """Keeps facts about pods up to date; ``changed`` is the listener of a cache of this node's.

    A deleted pod is kept as a finished one for a while: the API server's word that it is gone
    counts, while its silence about a pod does not.

    Args:
        facts: where to put them.
        labels: exact names of the labels to take.
        workloads: whether to take the owning workload.
    """

    def __init__(
        self,
        facts: Versioned[PodName, PodFacts],
        *,
        labels: Collection[str] = (),
        workloads: bool = False,
    ) -> None:
        self._facts = facts
        self._labels = labels
        self._workloads = workloads
        self._pods: dict[PodName, PodFacts] = {}
        self._deleted: dict[PodName, None] = {}

    def changed(self, old: PodIdentity | None, new: PodIdentity | None) -> None:
        """Apply one change; None is absence."""
        if new is not None:
            name = PodName(*new.key)
            self._deleted.pop(name, None)
            self._pods[name] = self._known(new)
        elif old is not None:
            self._bury(PodName(*old.key))
        self._facts.replace(self._pods)

    def _known(self, pod: PodIdentity) -> PodFacts:
        labels = pod.metadata.labels
        facts = PodFacts(
            uid=pod.metadata.uid,
            labels={name: labels[name] for name in self._labels if name in labels},
            finished=pod.finished,
        )
        if not self._workloads:
            return facts
        owner = workload(pod)
        return msgspec.structs.replace(facts, workload_kind=owner.kind, workload=owner.name)

    def _bury(self, name: PodName) -> None:
        self._pods[name] = msgspec.structs.replace(self._pods[name], finished=True)
        self._deleted[name] = None
        if len(self._deleted) > KEPT_DELETED:
            oldest = next(iter(self._deleted))
            del self._deleted[oldest], self._pods[oldest]
