"""Answers to queries: fresh values only, or a refusal that says what became of every object."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from adapter.api.paths import ALL
from adapter.api.status import Reason, Refusal
from adapter.api.values import metric_list
from adapter.finding import Found, find
from adapter.offering import not_found
from adapter.outcome import Absence
from adapter.provider import Answer
from adapter.query import Query
from adapter.view import View

# A warning names no more objects than this.
MOST_NAMED = 5


def answer(view: View, query: Query) -> Answer:
    """Return the list of fresh values.

    Raises:
        Refusal: a named object does not exist, or objects match and none has a fresh value.
    """
    now = view.monotonic()
    as_of = (view.revision, view.pods.revision)
    found = find(view, query)
    fresh = [one for one in found if one.expires_at > now]
    if found and not fresh:
        return _none(view, query, found, now)
    return Answer(
        body=metric_list(query.path.version, [one.item for one in fresh]),
        expires_at=min((one.expires_at for one in fresh), default=math.inf),
        warning=_warning(view, query, found, now) if len(fresh) < len(found) else "",
        read_at=min((one.read_at for one in fresh), default=math.nan),
        holds=lambda: as_of == (view.revision, view.pods.revision),
    )


def _none(view: View, query: Query, found: Sequence[Found], now: float) -> Answer:
    """Answer a query for which no object has a fresh value.

    Raises:
        Refusal: 503 if waiting may help, 404 if not.
    """
    kinds: Counter[Absence] = Counter()
    examples: dict[Absence, str] = {}
    for one in found:
        if missing := one.missing(now, view.max_age_seconds):
            why, detail = missing
            kinds[why] += 1
            examples.setdefault(why, f"{one.name}: {detail}" if detail else one.name)
    passing = any(why.passing for why in kinds)
    if Absence.NOT_SELECTED in kinds and not passing:
        return Answer(body=metric_list(query.path.version, ()))
    message = _causes(query, kinds, examples)
    if passing:
        text = f"the metric {query.served.name} is not available now: {message}"
        raise Refusal(Reason.ServiceUnavailable, text)
    raise not_found(query.path, f": {message}")


def _causes(query: Query, kinds: Counter[Absence], examples: Mapping[Absence, str]) -> str:
    if query.path.name != ALL:
        why = next(iter(kinds))
        return f"{query.kind} {examples[why]}: no value, since {why}"
    causes = "; ".join(f"{n} since {why} ({examples[why]})" for why, n in kinds.most_common())
    return f"{kinds.total()} {query.kind} match, none has a fresh value: {causes}"


def _warning(view: View, query: Query, found: Sequence[Found], now: float) -> str:
    """Name the objects whose values are missing for a reason that may pass, and these reasons."""
    lacking: dict[str, Absence] = {}
    for one in found:
        missing = one.missing(now, view.max_age_seconds)
        if missing and missing[0].passing:
            lacking[one.name] = missing[0]
    if not lacking:
        return ""
    shown = [f"{name}, since {why}" for name, why in list(lacking.items())[:MOST_NAMED]]
    more = "; ..." if len(lacking) > MOST_NAMED else ""
    named = "; ".join(shown) + more
    return f'299 - "{len(lacking)} of {len(found)} {query.kind} have no fresh value: {named}"'
