"""Which pods a question is about, whoever answers it."""

from collections.abc import Sequence

from adapter.api.label_selectors import Selector
from adapter.api.paths import ALL, MetricPath
from adapter.cluster.pods import Pods
from adapter.offering import not_found
from slicewatch.kube.objects import Pod


def selected(pods: Pods, path: MetricPath, selector: Selector) -> Sequence[Pod]:
    """Return the pods that a selector chooses, or the one that a path names.

    Raises:
        Refusal: there is no pod of that name.
    """
    if path.name == ALL:
        return pods.select(path.namespace, selector)
    pod = pods.get(path.namespace, path.name)
    if pod is None:
        raise not_found(path, f"; there is no pod {path.name} in namespace {path.namespace}")
    return (pod,)
