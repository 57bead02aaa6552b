"""Selectors of requests become conditions of PromQL, which choose series and nothing else."""

import pytest

from adapter.api.label_selectors import parse
from slicewatch.promrules.matchers import UnsupportedRequirementError, among, conditions


def texts(selector):
    return [each.text for each in conditions(parse(selector).requirements)]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", []),
        ("x=a", ['x="a"']),
        ("x in (a)", ['x="a"']),
        ("x=", ['x=""']),
        ("x!=a", ['x!="a"']),
        ("x in (a,b)", ['x=~"a|b"']),
        ("x notin (a,b)", ['x!~"a|b"']),
        ("x in (,b)", ['x=~"|b"']),
        ("x", ['x!=""']),
        ("!x", ['x=""']),
        ("z=1,a=2", ['a="2"', 'z="1"']),
        ("x in (a.b,c)", [r'x=~"a\\.b|c"']),
    ],
)
def test_a_requirement_is_a_condition(selector, expected):
    assert texts(selector) == expected


@pytest.mark.parametrize(
    ("key", "label"),
    [
        ("app.kubernetes.io/name", "app_kubernetes_io_name"),
        ("a-b", "a_b"),
        ("5g", "_5g"),
        ("under_score", "under_score"),
    ],
)
def test_a_key_of_kubernetes_is_the_label_that_prometheus_makes_of_it(key, label):
    """prometheus-adapter #456 and #630: keys with a prefix were answered by an opaque 500."""
    assert texts(f"{key}=x") == [f'{label}="x"']


@pytest.mark.parametrize("selector", ["x>5", "x<5"])
def test_a_comparison_of_numbers_is_refused_with_what_to_write(selector):
    with pytest.raises(UnsupportedRequirementError, match=r"x: > and < .* use =, in, notin or !="):
        texts(selector)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a"], 'pod="a"'),
        (["a", "b.c"], r'pod=~"a|b\\.c"'),
        (['a"} or up{x="'], r'pod="a\"} or up{x=\""'),
        (["a\nb"], r'pod="a\nb"'),
        (["a\\"], r'pod="a\\"'),
        ([], 'pod=~""'),
    ],
)
def test_values_cannot_leave_their_quotes(names, expected):
    assert among("pod", names).text == expected
