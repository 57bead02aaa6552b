"""The pods of the cluster, found by namespace, label and node without scanning the others."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final, TypeVar

from adapter.api.label_selectors import LONGEST_KEPT, Selector
from slicewatch.kube.objects import Pod

KEPT_SELECTIONS: Final = 1024

_Pair = tuple[str, str]
K = TypeVar("K")
L = TypeVar("L")


class Pods:
    """An index that follows a cache of pods; ``changed`` is its listener.

    Attributes:
        revision: number of changes so far. The revision of a node or a namespace is that of its
            last change, or 0 while it has no pods.
    """

    def __init__(self) -> None:
        self.revision = 0
        self._namespaces: dict[str, dict[str, Pod]] = defaultdict(dict)
        self._labels: dict[str, dict[_Pair, dict[str, Pod]]] = defaultdict(dict)
        self._nodes: dict[str, dict[_Pair, Pod]] = defaultdict(dict)
        self._namespace_revisions: dict[str, int] = {}
        self._node_revisions: dict[str, int] = {}
        self._selections: dict[tuple[str, str], tuple[int, tuple[Pod, ...]]] = {}

    def changed(self, old: Pod | None, new: Pod | None) -> None:
        """Apply one change; None is absence."""
        self.revision += 1
        if old is not None:
            self._remove(old)
        if new is not None:
            self._add(new)
        for pod in filter(None, (old, new)):
            self._mark(self._namespace_revisions, self._namespaces, pod.metadata.namespace)
            self._mark(self._node_revisions, self._nodes, pod.spec.node_name)

    def get(self, namespace: str, name: str) -> Pod | None:
        """Return a pod, or None if there is none of that name."""
        return self._namespaces.get(namespace, {}).get(name)

    def on_node(self, node: str) -> Mapping[_Pair, Pod]:
        """Return the pods that are scheduled to a node, by namespace and name."""
        return self._nodes.get(node, {})

    def node_revision(self, node: str) -> int:
        """Return a number that differs whenever the pods of a node do."""
        return self._node_revisions.get(node, 0)

    @property
    def namespaces(self) -> Collection[str]:
        """The namespaces that have pods."""
        return self._namespaces.keys()

    def in_namespace(self, namespace: str) -> Mapping[str, Pod]:
        """Return the pods of a namespace by name."""
        return self._namespaces.get(namespace, {})

    def select(self, namespace: str, selector: Selector) -> tuple[Pod, ...]:
        """Return the pods of a namespace that a selector matches, sorted by name.

        The result is cached until a pod of the namespace changes, since autoscalers repeat the
        same questions; that of a very long selector is not.
        """
        revision = self._namespace_revisions.get(namespace, 0)
        kept = self._selections.get((namespace, selector.text))
        if kept is not None and kept[0] == revision:
            return kept[1]
        candidates = self._candidates(namespace, selector)
        chosen = tuple(
            pod for _, pod in sorted(candidates.items()) if selector.matches(pod.metadata.labels)
        )
        if len(selector.text) <= LONGEST_KEPT:
            if len(self._selections) >= KEPT_SELECTIONS:
                self._selections.clear()
            self._selections[namespace, selector.text] = (revision, chosen)
        return chosen

    def _candidates(self, namespace: str, selector: Selector) -> Mapping[str, Pod]:
        """Return the smallest indexed set of pods that contains all matches."""
        labels = self._labels.get(namespace, {})
        choices = [labels.get(pair, {}) for pair in selector.equalities]
        return min(choices, key=len, default=self.in_namespace(namespace))

    def _add(self, pod: Pod) -> None:
        namespace, name = pod.key
        self._namespaces[namespace][name] = pod
        for pair in pod.metadata.labels.items():
            self._labels[namespace].setdefault(pair, {})[name] = pod
        if pod.spec.node_name:
            self._nodes[pod.spec.node_name][pod.key] = pod

    def _remove(self, pod: Pod) -> None:
        namespace, name = pod.key
        _drop(self._namespaces, namespace, name)
        for pair in pod.metadata.labels.items():
            _drop(self._labels[namespace], pair, name)
        if not self._labels[namespace]:
            del self._labels[namespace]
        if pod.spec.node_name:
            _drop(self._nodes, pod.spec.node_name, pod.key)

    def _mark(self, revisions: dict[str, int], index: Mapping[str, object], changed: str) -> None:
        if changed in index:
            revisions[changed] = self.revision
        else:
            revisions.pop(changed, None)


def _drop(index: dict[K, dict[L, Pod]], key: K, name: L) -> None:
    held = index.get(key)
    if held is not None:
        held.pop(name, None)
        if not held:
            del index[key]
