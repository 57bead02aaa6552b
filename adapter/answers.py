"""Answers to queries: fresh values only, or a refusal that says what became of every object."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from adapter.api.paths import ALL
from adapter.api.status import not_available
from adapter.api.values import metric_list
from adapter.api.warning import listed, warning
from adapter.finding import Found, find
from adapter.offering import not_found
from adapter.outcome import Absence
from adapter.provider import Answer
from adapter.query import Query
from adapter.view import View

# An object's name, why it has no fresh value, and details.
Lacking = tuple[str, Absence, str]


def answer(view: View, query: Query) -> Answer:
    """Return the list of fresh values.

    Raises:
        Refusal: a named object does not exist, or objects match and none has a fresh value.
    """
    now = view.monotonic()
    as_of = (view.revision, view.pods.revision)
    found = find(view, query)
    fresh = [one for one in found if one.expires_at > now]
    lacking = _lacking(view, found, now) if len(fresh) < len(found) else []
    if found and not fresh:
        return _none(query, lacking)
    return Answer(
        body=metric_list(query.path.version, [one.item for one in fresh]),
        expires_at=min((one.expires_at for one in fresh), default=math.inf),
        warning=_warning(query, len(found), lacking),
        read_at=min((one.read_at for one in fresh), default=math.nan),
        holds=lambda: as_of == (view.revision, view.pods.revision),
    )


def _lacking(view: View, found: Iterable[Found], now: float) -> list[Lacking]:
    """Return the objects without a fresh value, each with the reason and details; count them."""
    lacking = [
        (one.name, *missing)
        for one in found
        if (missing := one.missing(now, view.max_age_seconds)) is not None
    ]
    view.dropped.update(why for _, why, _ in lacking)
    return lacking


def _none(query: Query, lacking: Iterable[Lacking]) -> Answer:
    """Answer a query for which no object has a fresh value.

    Raises:
        Refusal: 503 if waiting may help, 404 if not.
    """
    kinds: Counter[Absence] = Counter()
    examples: dict[Absence, str] = {}
    for name, why, detail in lacking:
        kinds[why] += 1
        examples.setdefault(why, f"{name}: {detail}" if detail else name)
    passing = any(why.passing for why in kinds)
    if Absence.NOT_SELECTED in kinds and not passing:
        return Answer(body=metric_list(query.path.version, ()))
    message = _causes(query, kinds, examples)
    if passing:
        raise not_available(query.served.name, message)
    raise not_found(query.path, f": {message}")


def _causes(query: Query, kinds: Counter[Absence], examples: Mapping[Absence, str]) -> str:
    if query.path.name != ALL:
        why = next(iter(kinds))
        return f"{query.kind} {examples[why]}: no value, since {why}"
    causes = "; ".join(f"{n} since {why} ({examples[why]})" for why, n in kinds.most_common())
    return f"{kinds.total()} {query.kind} match, none has a fresh value: {causes}"


def _warning(query: Query, objects: int, lacking: Iterable[Lacking]) -> str:
    """Name the objects whose values are missing for a reason that may pass, and these reasons."""
    passing = [f"{name}, since {why}" for name, why, _ in lacking if why.passing]
    if not passing:
        return ""
    named = listed(passing, "; ")
    return warning(f"{len(passing)} of {objects} {query.kind} have no fresh value: {named}")
