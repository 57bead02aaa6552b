"""What exporters read of pods, nodes and namespaces, as a provider: from memory, at once."""

from collections.abc import Iterable

from adapter.answers import answer
from adapter.api.paths import Kind
from adapter.explain import explain
from adapter.provider import Answer, Offer, Question, Tree
from adapter.query import SERVED, check
from adapter.view import View


class Direct:
    """``CustomMetrics`` of the catalog and of dcgm-exporter's names, from the view of all nodes."""

    revision = 0

    def __init__(self, view: View) -> None:
        self._view = view

    def offers(self) -> Iterable[Offer]:
        """Return every served metric of every kind that has it."""
        for kind in Kind:
            for served in SERVED.values():
                if kind in served.kinds:
                    yield Offer(resource=kind.resource, metric=served.name)

    async def answer(self, question: Question) -> Answer:
        """Return the fresh values."""
        return answer(self._view, check(question))

    async def explain(self, question: Question) -> Tree:
        """Return every input of every selected object."""
        return explain(self._view, check(question))
