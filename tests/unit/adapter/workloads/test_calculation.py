"""Values made of series and of growth; idle is told from broken."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.sources.workloads.calculation import outcome, quantile
from adapter.sources.workloads.declaration import Idle, Type, WorkloadMetric
from adapter.sources.workloads.growth import Growth
from adapter.sources.workloads.outcome import Absence
from adapter.sources.workloads.page import Reading
from slicewatch.catalog.model import Combine

A, B = (("e", "a"),), (("e", "b"),)
AVERAGE = Reading(series={(): {"sum": 9.0, "count": 9.0}}, announced=True)


def metric(kind, **more):
    return WorkloadMetric(name="m", series="s", type=kind, **more)


def gauges(*values):
    return Reading(
        series={(("n", str(n)),): {"": v} for n, v in enumerate(values)}, announced=True
    )


def grown(seconds=10.0, **parts):
    return Growth(seconds=seconds, amounts={((), part): n for part, n in parts.items()})


@pytest.mark.parametrize(
    ("combine", "value"), [(Combine.SUM, 9.0), (Combine.MEAN, 3.0), (Combine.MAX, 5.0)]
)
def test_several_gauges_are_combined_as_declared(combine, value):
    made = outcome(metric(Type.GAUGE, combine=combine), gauges(1.0, 3.0, 5.0), None)
    assert (made.value, made.window_seconds, made.series) == (value, 0.0, 3)


def test_several_gauges_are_never_combined_in_a_way_that_nobody_declared():
    assert outcome(metric(Type.GAUGE), gauges(7.0), None).value == 7.0
    made = outcome(metric(Type.GAUGE), gauges(1.0, 2.0), None)
    assert (made.value, made.absence) == (None, Absence.SEVERAL)
    assert "set combine to sum, avg or max" in made.detail


def test_a_rate_is_growth_per_second():
    growth = Growth(seconds=10.0, amounts={(A, ""): 20.0, (B, ""): 50.0})
    reading = Reading(series={A: {"": 1.0}, B: {"": 1.0}}, announced=True)
    made = outcome(metric(Type.RATE, combine=Combine.MAX), reading, growth)
    assert (made.value, made.window_seconds) == (5.0, 10.0)
    assert outcome(metric(Type.RATE, combine=Combine.SUM), reading, growth).value == 7.0


def test_a_rate_of_a_counter_that_stands_still_is_zero():
    made = outcome(
        metric(Type.RATE, combine=Combine.SUM),
        gauges(5.0),
        Growth(seconds=5.0, amounts={((), ""): 0.0}),
    )
    assert made.value == 0.0


def test_an_average_is_of_the_requests_in_the_window_and_is_scaled():
    growth = grown(sum=1.5, count=6.0)
    assert outcome(metric(Type.AVERAGE, scale=1000.0), AVERAGE, growth).value == 250.0


def test_growth_needs_two_pages():
    assert outcome(metric(Type.AVERAGE), AVERAGE, None).absence is Absence.ONE_PAGE


@pytest.mark.parametrize("kind", [Type.AVERAGE, Type.QUANTILE])
def test_without_requests_there_is_no_latency_unless_idle_is_declared_to_be_zero(kind):
    """prometheus-adapter #280: NaN of an idle workload is 0 only where its user says so."""
    reading = (
        AVERAGE if kind is Type.AVERAGE else Reading(series={(): {"inf": 4.0}}, announced=True)
    )
    growth = grown(sum=0.0, count=0.0) if kind is Type.AVERAGE else grown(inf=0.0)
    assert outcome(metric(kind), reading, growth).absence is Absence.IDLE
    zero = outcome(metric(kind, idle=Idle.ZERO), reading, growth)
    assert (zero.value, zero.window_seconds) == (0.0, 10.0)


@pytest.mark.parametrize("kind", list(Type))
def test_a_family_without_samples_is_idle_and_one_that_is_not_there_is_missing(kind):
    there, missing = Reading(announced=True), Reading()
    assert outcome(metric(kind, idle=Idle.ZERO), there, None).value == 0.0
    assert outcome(metric(kind), there, None).absence is Absence.IDLE
    assert outcome(metric(kind, idle=Idle.ZERO), missing, None).absence is Absence.NO_SERIES


@pytest.mark.parametrize(
    ("kind", "parts", "lacking"),
    [
        (Type.AVERAGE, {"count": 1.0}, "there is no s_sum of {'e': 'a'}"),
        (Type.AVERAGE, {"sum": 1.0}, "there is no s_count of {'e': 'a'}"),
        (Type.QUANTILE, {"1.0": 1.0}, "there is no s_bucket{le=\"+Inf\"} of {'e': 'a'}"),
    ],
)
def test_a_series_that_lacks_a_part_is_broken_not_idle(kind, parts, lacking):
    reading = Reading(series={A: parts}, announced=True)
    made = outcome(metric(kind, idle=Idle.ZERO), reading, grown())
    assert (made.absence, made.detail) == (Absence.WRONG, lacking)


def test_a_reading_with_a_fault_has_no_value():
    made = outcome(metric(Type.GAUGE, idle=Idle.ZERO), Reading(fault="line 3"), None)
    assert (made.absence, made.detail) == (Absence.WRONG, "line 3")


@pytest.mark.parametrize(("value", "served"), [(-1.5, 0.0), (5.0, 5.0), (1e9, 100.0)])
def test_values_outside_of_the_clamp_are_served_as_its_end(value, served):
    """prometheus-adapter PR #431, kubernetes #126892: a user can keep values in bounds."""
    made = outcome(metric(Type.GAUGE, low=0.0, high=100.0), gauges(value), None)
    assert made.value == served


def test_a_value_that_overflows_is_absent():
    assert outcome(metric(Type.GAUGE, scale=1e300), gauges(1e300), None).absence is Absence.WRONG


@pytest.mark.parametrize(
    ("q", "buckets", "value"),
    [
        # As Prometheus computes them.
        (0.5, {1.0: 1, 2.0: 3, math.inf: 4}, 1.5),
        (1.0, {1.0: 1, 2.0: 4, math.inf: 4}, 2.0),
        (0.9, {1.0: 1, 2.0: 3, math.inf: 10}, 2.0),
        (0.25, {1.0: 4, 2.0: 4, math.inf: 4}, 0.25),
        (0.5, {-2.0: 4, math.inf: 4}, -2.0),
        (0.5, {0.1: 0, 0.2: 0, 0.4: 10, math.inf: 10}, 0.3),
        # Read one after another while requests went on.
        (1.0, {1.0: 3, 2.0: 2, math.inf: 3}, 1.0),
    ],
)
def test_a_quantile_is_interpolated_in_its_bucket(q, buckets, value):
    assert quantile(q, buckets) == pytest.approx(value)


@pytest.mark.parametrize("buckets", [{}, {1.0: 4}, {math.inf: 4}, {1.0: 0, math.inf: 0}])
def test_there_is_no_quantile_of_nothing(buckets):
    assert quantile(0.5, buckets) is None


@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=50),
    st.lists(st.floats(0.1, 9), min_size=1, max_size=6, unique=True),
    st.floats(0, 1), st.floats(0, 1),
)  # fmt: skip
def test_quantiles_grow_with_q_and_lie_in_the_bucket_of_the_true_one(values, bounds, q, r):
    buckets = {b: float(sum(v <= b for v in values)) for b in [*bounds, math.inf]}
    low, high = sorted((q, r))
    assert quantile(low, buckets) <= quantile(high, buckets) + 1e-9
    true = sorted(values)[max(0, math.ceil(q * len(values)) - 1)]
    ends = [0.0, *sorted(bounds)]
    below = max(e for e in ends if e < true or e == 0.0)
    above = min((e for e in ends[1:] if e >= true), default=ends[-1])
    assert below - 1e-9 <= quantile(q, buckets) <= above + 1e-9
