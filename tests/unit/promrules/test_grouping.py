"""A query is grouped only where that gives each object the same value."""

import pytest

from slicewatch.promrules.grouping import QUERY_FIELDS, why_not_grouped
from slicewatch.promrules.template import Template

M = "<<.Series>>{<<.LabelMatchers>>}"
G = "by (<<.GroupBy>>)"


@pytest.mark.parametrize(
    "text",
    [
        f"avg({M}) {G}",
        f"sum {G} (rate({M}[2m]))",
        f"sum(rate(<<.Series>>{{<<.LabelMatchers>>,job!='x'}}[2m])) {G}",
        f"histogram_quantile(0.9, sum(rate({M}[2m])) by (le, <<.GroupBy>>))",
        f"sum({M}) {G} / sum(b{{<<.LabelMatchers>>}}) {G}",
        f"sum({M}) {G} / on (<<.GroupBy>>) sum(b{{<<.LabelMatchers>>}}) {G}",
        f"sum({M}) {G} or vector(0)",
        f"max(x{{ns='<<index .LabelValuesByName \"namespace\">>',<<.LabelMatchers>>}}) {G}",
        f"max({M}) {G} * 100",
        "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<range .GroupBySlice>><<.>><<end>>)",
    ],
)
def test_a_query_that_keeps_every_object_apart_is_grouped(text):
    assert why_not_grouped(Template(text, QUERY_FIELDS), ["pod"]) == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (M, "not of the form"),
        (f"avg({M})", "does not keep"),
        (f"avg({M}) by (pod)", "does not keep"),
        (f"avg({M}) without (gpu)", "does not keep"),
        (f"sum(sum({M})) {G}", "does not keep"),
        (f"sum({M}) {G} / sum({M})", "does not keep"),
        (f"topk(1, sum({M}) {G}) {G}", "topk"),
        (f"sum({M}) {G} / scalar(sum({M}) {G})", "scalar"),
        (f"absent(sum({M}) {G})", "absent"),
        (f"sum({M}) {G} / on () sum({M}) {G}", "on matches"),
        (f"sum({M}) {G} / ignoring (gpu) sum({M}) {G}", "ignoring matches"),
        (f'max(x{{p=~"<<index .LabelValuesByName `pod`>>",<<.LabelMatchers>>}}) {G}', "another"),
        (f'max(x{{p=~"<<.LabelValuesByName.pod>>",<<.LabelMatchers>>}}) {G}', "another"),
        (f"max({M}) {G} <<range .LabelValuesByName>><<.>><<end>>", "another"),
        (f"<<if .Series>>max({M}) {G}<<end>>", "depends on the request"),
        (f"max(up) {G}", "not of the form"),
        (f"label_replace(max({M}) {G}, 'pod', '$1', 'x', '.*')", "label_replace"),
    ],
)
def test_any_other_query_lists_its_objects_and_says_why(text, why):
    assert why in why_not_grouped(Template(text, QUERY_FIELDS), ["pod"])
