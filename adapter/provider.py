"""The seam behind the protocol: who knows a metric, for which objects, and what it answers.

A provider is asked only for what it says that it serves. It answers from memory, or asks its
backend; either way it raises ``Refusal`` with a reason that people can act on, and nothing else.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from adapter.api.label_selectors import Selector
from adapter.api.paths import ExternalPath, MetricPath
from adapter.api.resources import Resource
from slicewatch.catalog.model import Combine

Tree = dict[str, Any]
"""An explanation, to be written as JSON."""


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A list of values, encoded.

    Attributes:
        expires_at: when the first of them becomes too old, on the monotonic clock.
        warning: which values are missing for now, for the ``Warning`` header.
        read_at: of its oldest value, in seconds since the epoch; NaN if it has none.
        holds: tells whether the same question would be answered the same still.
    """

    body: bytes
    expires_at: float = math.inf
    warning: str = ""
    read_at: float = math.nan
    holds: Callable[[], bool] = _never


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A metric of objects.

    Attributes:
        objects: the label selector: which of the objects, where the path names none.
        series: the metric label selector: which of their series. Items echo it, with the keys
            that it reserves.
        combine: how several series of an object are to become one value; None: as declared.
        window_seconds: time that a value is to be a mean over; None: as declared.
    """

    path: MetricPath
    objects: Selector
    series: Selector
    combine: Combine | None = None
    window_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalQuestion:
    """A metric that belongs to no object. ``series`` is the label selector of the request."""

    path: ExternalPath
    series: Selector


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A metric that objects of a kind have."""

    resource: Resource
    metric: str


class CustomMetrics(Protocol):
    """Who knows metrics of objects."""

    @property
    def revision(self) -> int:
        """Return a number that changes whenever the offers do."""
        ...

    def offers(self) -> Iterable[Offer]:
        """Return what can be asked for. Whether there are values now does not matter."""
        ...

    async def answer(self, question: Question) -> Answer:
        """Return the values of objects.

        Raises:
            Refusal: there are none, or not now.
        """
        ...

    async def explain(self, question: Question) -> Tree:
        """Return how the answer comes about; raises as ``answer`` does."""
        ...


class ExternalMetrics(Protocol):
    """Who knows metrics that belong to no object. Names have no case: clients lower it."""

    @property
    def revision(self) -> int:
        """Return a number that changes whenever the names do."""
        ...

    def names(self) -> Iterable[str]:
        """Return what can be asked for, as it is written in answers."""
        ...

    async def answer_external(self, question: ExternalQuestion) -> Answer:
        """Return the values of the series that a selector chooses.

        Raises:
            Refusal: there are none, or not now.
        """
        ...

    async def explain_external(self, question: ExternalQuestion) -> Tree:
        """Return how the answer comes about; raises as ``answer_external`` does."""
        ...
