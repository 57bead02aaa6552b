"""What pods request from the scheduler: GPU resources, by namespace and phase.

Counted from the pods' specifications, so that a pod that is waiting for a GPU counts too.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from adapter.cluster.resources import PREFIX, counts
from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Label
from slicewatch.kube.objects import Container, Pod
from slicewatch.service.exposition import Family, Format, Page, constant_text, labels_text

METRIC: Final = CATALOG["gpu_pod_requests"]

_Series = tuple[str, str, str]


def may_hold_gpu(pod: Pod) -> bool:
    """Tell whether a pod requests a GPU, or claims devices, of which GPUs may be some."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return bool(pod.spec.resource_claims) or any(
        resource.startswith(PREFIX) and quantity != "0"
        for container in containers
        for resource, quantity in container.resources.requests.items()
    )


def of_pod(pod: Pod) -> dict[str, int]:
    """Return how many devices of each resource a pod requests.

    Counts as the scheduler does: containers and sidecars run together; a plain init container
    runs before the containers, alongside the sidecars started before it.
    """
    together: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            together.update(_requests(container))
        else:
            peak |= together + _requests(container)
    for container in pod.spec.containers:
        together.update(_requests(container))
    return dict(peak | together)


def _requests(container: Container) -> Counter[str]:
    return Counter(counts(container.resources.requests))


class Requests:
    """Sums over all pods; ``changed`` is the listener of a cache of pods."""

    def __init__(self) -> None:
        self._sums: Counter[_Series] = Counter()

    def changed(self, old: Pod | None, new: Pod | None) -> None:
        """Apply one change; None is absence. Finished pods no longer request anything."""
        self._sums.subtract(_series(old))
        self._sums.update(_series(new))
        for series in {*_series(old)}:
            if not self._sums[series]:
                del self._sums[series]

    def sums(self) -> dict[_Series, int]:
        """Return devices by namespace, resource and phase."""
        return dict(self._sums)

    def render(self, form: Format) -> bytes:
        """Return the family as an exposition, without an end marker."""
        return _page(sorted(self._sums.items()), form)


def _series(pod: Pod | None) -> dict[_Series, int]:
    if pod is None or pod.finished:
        return {}
    phase = pod.status.phase or "Unknown"
    return {
        (pod.metadata.namespace, resource, phase): count
        for resource, count in of_pod(pod).items()
        if count
    }


def _page(sums: Iterable[tuple[_Series, int]], form: Format) -> bytes:
    names = (Label.NAMESPACE, Label.RESOURCE, Label.PHASE)
    rows = [(labels_text(zip(names, series, strict=True)), float(n)) for series, n in sums]
    family = Family(METRIC, [labels for labels, _ in rows])
    page = Page(families=(), constant=constant_text([(family, [value for _, value in rows])]))
    return page.render({}, form).encode()
