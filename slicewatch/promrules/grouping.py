"""Whether a query may ask for all objects of a namespace at once, and pick from the answer.

prometheus-adapter lists the names of all pods in every query, which a thousand pods make too long
for a backend. A query whose every aggregation keeps the object's label gives each object the same
value without that list. Where this is not certain, the list stays.
"""

from collections.abc import Sequence
from typing import Final

from slicewatch.promrules.promql import Aggregation, Token, aggregations, closing, tokens
from slicewatch.promrules.template import Template
from slicewatch.promrules.template_nodes import Call, Field, If, Literal, TemplateError

SERIES: Final = "series_"
"""Stands for ``.Series`` in a skeleton."""
MATCHERS: Final = "matchers_"
"""Stands for ``.LabelMatchers`` in a skeleton."""
GROUP_BY: Final = "group_by_"
"""Stands for ``.GroupBy`` in a skeleton."""

QUERY_FIELDS: Final = ("Series", "LabelMatchers", "LabelValuesByName", "GroupBy", "GroupBySlice")

# What they return for an object depends on the others that are asked for, or loses its label.
_ACROSS_OBJECTS: Final = frozenset(
    {"absent", "absent_over_time", "bottomk", "count_values", "label_join", "label_replace",
     "limit_ratio", "limitk", "scalar", "topk"}
)  # fmt: skip
_MATCHING: Final = frozenset({"on", "ignoring", "group_left", "group_right"})


def skeleton(template: Template) -> tuple[Token, ...]:
    """Return the words of a query with the names above for what requests fill in.

    Raises:
        TemplateError: it cannot be rendered.
    """
    return tokens(
        template.render(
            {
                "Series": SERIES,
                "LabelMatchers": f'{MATCHERS}=""',
                "LabelValuesByName": {},
                "GroupBy": GROUP_BY,
                "GroupBySlice": [GROUP_BY],
            }
        )
    )


def why_not_grouped(template: Template, labels: Sequence[str]) -> str:
    """Return why the names of objects have to stand in a query; empty if they need not.

    Args:
        template: of the query.
        labels: those that may name the objects.
    """
    try:
        query = skeleton(template)
    except TemplateError as error:
        return str(error)
    words = [token.text.lower() for token in query if token.kind == "word"]
    found = aggregations(query)
    if any(isinstance(node, If) for node in template.nodes):
        return "its text depends on the request"
    if _uses_values(template, labels):
        return "it uses the names of the objects in another place"
    if MATCHERS not in words or not found:
        return "it is not of the form sum(...{<<.LabelMatchers>>}) by (<<.GroupBy>>)"
    if not all(_keeps_objects(aggregation) for aggregation in found):
        return "an aggregation does not keep <<.GroupBy>>"
    if used := sorted(_ACROSS_OBJECTS.intersection(words)):
        return f"{used[0]} looks at all objects together"
    return _why_not_matched(query)


def _keeps_objects(aggregation: Aggregation) -> bool:
    return not aggregation.without and aggregation.keeps(GROUP_BY)


def _uses_values(template: Template, labels: Sequence[str]) -> bool:
    """Tell whether values of labels are used that may name objects, or cannot be told."""
    expressions = list(template.expressions())
    uses = [e for e in expressions if isinstance(e, Field) and e.name == "LabelValuesByName"]
    keys = [e.key for e in uses if e.key is not None]
    for call in expressions:
        match call:
            case Call("index", (Field("LabelValuesByName", None), Literal(str() as key))):
                keys.append(key)
    return len(keys) != len(uses) or not set(keys).isdisjoint(labels)


def _why_not_matched(query: Sequence[Token]) -> str:
    """Return why the two sides of an operator may not meet object by object."""
    for at, token in enumerate(query):
        word = token.text.lower()
        close = closing(query, at + 1) if word in _MATCHING else None
        if close is None:
            continue
        names = {inside.text for inside in query[at + 2 : close]}
        if word != "on" or GROUP_BY not in names:
            return f"{word} matches series without the objects' label"
    return ""
