"""Names of series become names of metrics, filters first."""

import pytest

from slicewatch.promrules.faults import FaultKind, RuleError
from slicewatch.promrules.naming import NameFilter, naming
from slicewatch.promrules.regex import compile_re2


def of(matches, as_="", *filters):
    made = [NameFilter(pattern=compile_re2(text), positive=positive) for positive, text in filters]
    return naming(compile_re2(matches or ".*"), as_, made)


@pytest.mark.parametrize(
    ("matches", "as_", "series", "metric"),
    [
        ("", "", "gpu", "gpu"),
        ("^container_(.*)_total$", "", "container_cpu_total", "cpu"),
        ("^container_(.*)_total$", "", "cpu_total", None),
        ("_total", "x", "cpu_total_x", "x"),  # unanchored
        ("^(.*)_(.*)$", "${2}_$1", "a_b_c", "c_a_b"),
        ("(x)?", "", "gpu", None),  # no name is no metric
    ],
)
def test_a_series_is_named(matches, as_, series, metric):
    assert of(matches, as_).metric(series) == metric


def test_filters_choose_by_expressions_that_match_anywhere():
    names = of("", "", (True, "^container_"), (False, "_seconds_total$"))
    series = ["container_cpu_total", "container_cpu_seconds_total", "other"]
    assert names.metrics(series) == {"container_cpu_total": "container_cpu_total"}


def test_of_two_series_for_one_metric_the_last_counts():
    assert of("^gpu", "gpu").metrics(["gpu_a", "gpu_b"]) == {"gpu": "gpu_b"}


@pytest.mark.parametrize(
    ("matches", "as_", "fixed"),
    [("", "x", "x"), ("", "", None), ("(a)", "$1", None), ("", "$$", "$")],
)
def test_it_is_known_whether_a_name_depends_on_the_series(matches, as_, fixed):
    assert of(matches, as_).fixed == fixed


@pytest.mark.parametrize(
    ("matches", "as_", "part"),
    [
        ("^(.*)_total$", "$1_per_second", "'${1}_per_second'"),
        ("^(.*)_total$", "$2", "no group"),
        ("^(.*)_(.*)$", "", "add as:"),
        ("x", "$what", "add the group"),
    ],
)
def test_a_name_that_would_lose_a_part_is_refused(matches, as_, part):
    with pytest.raises(RuleError) as caught:
        of(matches, as_)
    assert part in str(caught.value)
    assert caught.value.kind is FaultKind.NAME_REFERENCE
