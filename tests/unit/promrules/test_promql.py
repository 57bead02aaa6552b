"""What is read of PromQL: aggregations with their labels, windows."""

import pytest

from slicewatch.promrules.promql import aggregations, tokens, windows


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("sum(x) by (pod)", [("sum", ("pod",), False)]),
        ("sum by (pod, ns) (x)", [("sum", ("pod", "ns"), False)]),
        ("SUM BY (pod) (x)", [("sum", ("pod",), False)]),
        ("avg without (gpu) (x)", [("avg", ("gpu",), True)]),
        ("max(x)", [("max", None, False)]),
        ("topk(3, sum(x) by (a))", [("topk", None, False), ("sum", ("a",), False)]),
        ("sum_over_time(x[5m])", []),
        ('count{sum="avg(x)"}', []),
        ("sum(x # by (y)\n) by (pod)", [("sum", ("pod",), False)]),
        ("sum(((x))) by ()", [("sum", (), False)]),
    ],
)
def test_aggregations_are_found_with_their_labels(query, expected):
    found = aggregations(tokens(query))
    assert [(each.operator, each.labels, each.without) for each in found] == expected


def test_windows_are_found_with_the_function_around_them():
    query = 'sum(rate(a{b="[9m]"}[2m])) / max_over_time(avg_over_time(c[90s])[1h30m:1m])'
    found = [(window.function, window.seconds) for window in windows(tokens(query))]
    assert found == [("rate", 120), ("avg_over_time", 90), ("max_over_time", 5400)]
