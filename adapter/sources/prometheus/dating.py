"""How old the samples behind a value are: the query that asks for it.

The samples of an instant vector carry the time of the query, whatever is behind them: a series
that nobody writes to any more goes on for five minutes unless its end was marked, which only
scraping does. ``timestamp()`` of the same series tells when each was really written. It costs a
second query beside the first, which looks at the same series and does less with them.
"""

from dataclasses import replace
from typing import Final

from slicewatch.promrules.grouping import QUERY_FIELDS
from slicewatch.promrules.rule import CustomRule, ExternalRule
from slicewatch.promrules.template import Template
from slicewatch.promrules.template_nodes import Field

# A value is as old as the oldest of what it is made of: a sum with a part from minutes ago is no
# sum of now.
_TIMES: Final = "min(timestamp(<<.Series>>{<<.LabelMatchers>>}))"
_OF_OBJECTS: Final = Template(f"{_TIMES} by (<<.GroupBy>>)", QUERY_FIELDS)
_OF_ALL: Final = Template(_TIMES, QUERY_FIELDS)
_DATED: Final = frozenset({"Series", "LabelMatchers"})


def times_of_objects(rule: CustomRule) -> CustomRule | None:
    """Return the rule for the times of another's samples; None if nothing says which these are.

    Where a query is written around other series than ``<<.Series>>``, their age says nothing.
    """
    return replace(rule, template=_OF_OBJECTS) if _is_dated(rule.template) else None


def times_of_all(rule: ExternalRule) -> ExternalRule | None:
    """Return the same for an external rule, whose series need not be those of the result."""
    return replace(rule, template=_OF_ALL) if _is_dated(rule.template) else None


def _is_dated(template: Template) -> bool:
    used = {each.name for each in template.expressions() if isinstance(each, Field)}
    return used >= _DATED
