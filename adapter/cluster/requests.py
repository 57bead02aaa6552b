"""What a pod requests from the scheduler, by its specification, whether it has it yet or not."""

from collections import Counter

from adapter.cluster.resources import PREFIX, counts
from slicewatch.kube.objects import Container, Pod


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
