"""What exporters read of pods, nodes and namespaces, as a provider: from memory, at once."""

from collections.abc import Iterable
from typing import Final

from adapter.answers import answer
from adapter.api.paths import Kind
from adapter.api.resources import NAMESPACES, NODES, PODS
from adapter.explain import explain
from adapter.provider import Answer, Offer, Question, Tree
from adapter.query import SERVED, Query, check
from adapter.view import View

RESOURCES: Final = {Kind.POD: PODS, Kind.NODE: NODES, Kind.NAMESPACE: NAMESPACES}


class Direct:
    """``CustomMetrics`` of the catalog, from the view of all nodes."""

    revision = 0

    def __init__(self, view: View) -> None:
        self._view = view

    def offers(self) -> Iterable[Offer]:
        """Return every served metric of every kind."""
        for resource in RESOURCES.values():
            for metric in SERVED:
                yield Offer(resource=resource, metric=metric)

    async def answer(self, question: Question) -> Answer:
        """Return the fresh values."""
        return answer(self._view, _query(question))

    async def explain(self, question: Question) -> Tree:
        """Return every input of every selected object."""
        return explain(self._view, _query(question))


def _query(question: Question) -> Query:
    return check(question.path, question.objects, question.series)
