"""A catalog with a broken declaration cannot be built."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.catalog import CATALOG
from slicewatch.catalog.index import Catalog, CatalogError
from slicewatch.catalog.model import (
    Attribution,
    Combine,
    Kind,
    Label,
    Limits,
    Serve,
    Unit,
)

GAUGE = CATALOG["gpu_temperature_celsius"]
COUNTER = CATALOG["gpu_energy_joules_total"]
INFO = CATALOG["gpu_info"]
HISTOGRAM = CATALOG["slicewatch_tick_duration_seconds"]
SERVED = Serve(combine=Combine.MEAN, attribution=Attribution.OWN_PART)

BROKEN = {
    "a counter without _total": (COUNTER, {"name": "gpu_energy_joules"}, "ends in _total"),
    "a gauge with _total": (GAUGE, {"name": "gpu_celsius_total"}, "ends in _total"),
    "an info family without _info": (INFO, {"name": "gpu_facts"}, "ends in _info"),
    "a gauge with _info": (GAUGE, {"name": "gpu_info", "unit": Unit.NONE}, "ends in _info"),
    "a unit that the name lacks": (GAUGE, {"name": "gpu_heat"}, "unit comes last"),
    "a unit before the last word": (GAUGE, {"name": "gpu_celsius_now"}, "unit comes last"),
    "a unit glued to a word": (GAUGE, {"name": "gpucelsius"}, "unit comes last"),
    "another unit in the name": (GAUGE, {"name": "gpu_heat_watts"}, "unit comes last"),
    "a name with a unit and none": (GAUGE, {"unit": Unit.NONE}, "has that unit"),
    "a user's name with another unit": (GAUGE, {"unit": Unit.WATTS}, "has that unit"),
    "capitals in a name": (GAUGE, {"name": "gpu_Die_celsius"}, "lower-case words"),
    "a hyphen in a name": (GAUGE, {"name": "gpu-die_celsius"}, "lower-case words"),
    "a help without a full stop": (GAUGE, {"help": "Heat"}, "one sentence"),
    "a help of two sentences": (GAUGE, {"help": "Heat. Of the die."}, "one sentence"),
    "an empty help": (GAUGE, {"help": "."}, "one sentence"),
    "a help of two lines": (GAUGE, {"help": "Heat\nof the die."}, "one sentence"),
    "a label twice": (GAUGE, {"labels": (Label.GPU, Label.GPU)}, "no label comes twice"),
    "limits upside down": (GAUGE, {"limits": Limits(low=1, high=0)}, "finite range"),
    "limits without an end": (GAUGE, {"limits": Limits(low=0, high=math.inf)}, "finite range"),
    "limits of NaN": (GAUGE, {"limits": Limits(low=math.nan, high=1)}, "finite range"),
    "a counter below 0": (COUNTER, {"limits": Limits(low=-1, high=1)}, "never below 0"),
    "a histogram without buckets": (HISTOGRAM, {"buckets": ()}, "has buckets"),
    "a gauge with buckets": (GAUGE, {"buckets": (1.0,)}, "has buckets"),
    "buckets that fall": (HISTOGRAM, {"buckets": (2.0, 1.0)}, "buckets rise"),
    "a bucket twice": (HISTOGRAM, {"buckets": (1.0, 1.0)}, "buckets rise"),
    "serving without a window": (GAUGE, {"serve": SERVED}, "only windowed"),
}


@pytest.mark.parametrize(("metric", "change", "rule"), BROKEN.values(), ids=BROKEN)
def test_a_broken_declaration_is_refused_with_its_name_and_the_rule(metric, change, rule):
    broken = dataclasses.replace(metric, **change)
    with pytest.raises(CatalogError, match=rule) as refusal:
        Catalog((broken,))
    assert str(refusal.value).startswith(broken.name)


@pytest.mark.parametrize("metric", [GAUGE, COUNTER, INFO, HISTOGRAM], ids=lambda m: m.name)
def test_the_declarations_that_were_broken_above_are_sound_before(metric):
    assert list(Catalog((metric,))) == [metric]


def test_the_same_name_twice_is_refused():
    with pytest.raises(CatalogError, match="gpu_temperature_celsius is declared twice"):
        Catalog((GAUGE, COUNTER, GAUGE))


def test_a_plain_count_needs_no_unit_in_its_name():
    counted = dataclasses.replace(
        COUNTER, name="gpu_errors_total", unit=Unit.NONE, kind=Kind.COUNTER
    )
    assert "gpu_errors_total" in Catalog((counted,))


@pytest.mark.parametrize("metric", CATALOG.metrics, ids=lambda m: m.name)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_limits_hold_what_is_not_a_number(metric, value):
    assert not metric.limits.hold(value)


@given(st.floats(0, 1), st.floats(allow_nan=False))
def test_limits_hold_the_closed_range_and_nothing_else(low, value):
    limits = Limits(low=low, high=low + 1)
    assert limits.hold(low)
    assert limits.hold(low + 1)
    assert limits.hold(value) == (low <= value <= low + 1)
