"""From GPM's numbers to values: units, absence, and what cannot be."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.catalog import CATALOG
from slicewatch.catalog.gpm import ASKED, ENGINES, GPM, GPM_DETAILS, PIPES
from slicewatch.catalog.readings.gpm import Gpm, GpmMetric
from slicewatch.catalog.readings.utilization import EngineRate, Utilization

RATIOS = {
    "gpu_gpm_graphics_ratio": GpmMetric.GRAPHICS,
    "gpu_gpm_sm_ratio": GpmMetric.SM,
    "gpu_gpm_sm_occupancy_ratio": GpmMetric.OCCUPANCY,
    "gpu_gpm_tensor_ratio": GpmMetric.TENSOR,
    "gpu_gpm_dram_ratio": GpmMetric.DRAM,
}
by_ratio = pytest.mark.parametrize(("name", "metric"), RATIOS.items())


@by_ratio
@given(percent=st.floats(0, 100))
def test_a_percentage_becomes_a_ratio(name, metric, percent):
    value = CATALOG[name].value(Gpm({metric: percent}))
    assert value == percent / 100
    assert CATALOG[name].limits.hold(value)


@by_ratio
def test_what_the_driver_does_not_answer_is_absent_and_not_0(name, metric):
    """DCGM #303."""
    others = {other: 50.0 for other in GpmMetric if other is not metric}
    assert CATALOG[name].value(Gpm(others)) is None
    assert CATALOG[name].value(Gpm({metric: 0.0})) == 0


@by_ratio
@pytest.mark.parametrize("nonsense", [math.nan, -1.0, 100.2, 4294967295.0, 140737488355328.0])
def test_what_is_no_percentage_is_rejected(name, metric, nonsense):
    """gpu-monitoring-tools #152: the last one is DCGM's blank for floats."""
    value = CATALOG[name].value(Gpm({metric: nonsense}))
    assert not CATALOG[name].limits.hold(value)


@by_ratio
def test_what_rounding_lifts_above_100_percent_is_1(name, metric):
    assert CATALOG[name].value(Gpm({metric: 100.000_1})) == 1


def test_pipes_and_engines_are_named_and_keep_apart():
    reading = Gpm({GpmMetric.FP64: 25.0, GpmMetric.NVDEC_3: 75.0})
    pipes = CATALOG["gpu_gpm_pipe_ratio"].value(reading)
    assert {name: value for name, value in pipes.items() if value is not None} == {"fp64": 0.25}
    assert {"int", "hmma", "imma", "fp32"} <= pipes.keys() == PIPES.keys()
    engines = CATALOG["gpu_gpm_engine_ratio"].value(reading)
    assert {n: value for n, value in engines.items() if value is not None} == {"nvdec3": 0.75}
    assert len(ENGINES) == 8 + 8 + 2


def test_traffic_is_in_bytes_and_each_way_has_its_own():
    values = {
        GpmMetric.PCIE_TRANSMIT: 1.0,
        GpmMetric.PCIE_RECEIVE: 2.0,
        GpmMetric.NVLINK_TRANSMIT: 3.0,
    }
    reading = Gpm(values)
    pcie = CATALOG["gpu_gpm_pcie_bytes_per_second"].value(reading)
    assert pcie == {"transmit": 2**20, "receive": 2**21}
    nvlink = CATALOG["gpu_gpm_nvlink_bytes_per_second"].value(reading)
    assert nvlink == {"transmit": 3 * 2**20, "receive": None}


def test_what_is_wide_is_read_only_for_those_who_ask():
    assert not GPM.optional
    assert GPM_DETAILS.optional
    assert not set(ASKED[GPM.name]) & set(ASKED[GPM_DETAILS.name])
    assert set(ASKED[GPM.name]) | set(ASKED[GPM_DETAILS.name]) == set(GpmMetric)


@given(st.integers(1, 600_000_000), st.floats(0, 100))
def test_a_percentage_from_counters_counts_for_all_of_its_period(length, percent):
    reading = Utilization(((length + 7, percent),), 7, longest_period_us=600_000_000)
    assert reading.consistent()
    assert reading.percent() == pytest.approx(percent)
    assert CATALOG["gpu_utilization"].limits.hold(reading.percent())
    assert reading.covered_seconds() == length / 1e6
    assert reading.busy_seconds() == pytest.approx(length * percent / 1e8)


def test_a_percentage_that_is_none_makes_the_reading_inconsistent():
    assert not Utilization(((2, math.nan),), 1).consistent()


ENGINE_NAMES = ("memory_interface", "encoder", "decoder", "jpeg", "ofa")


@pytest.mark.parametrize("name", ENGINE_NAMES)
@pytest.mark.parametrize("percent", [0, 37, 100])
def test_the_rate_of_an_engine_is_a_percentage(name, percent):
    metric = CATALOG[f"gpu_{name}_utilization"]
    assert metric.value(EngineRate(percent)) == percent
    assert metric.limits.hold(metric.value(EngineRate(percent)))


@pytest.mark.parametrize("name", ENGINE_NAMES)
@pytest.mark.parametrize("percent", [101, 2147483632, 4294967295, 9223372036854775792])
def test_blanks_and_words_for_not_available_are_rejected(name, percent):
    """gpu-monitoring-tools #152, DCGM #83."""
    metric = CATALOG[f"gpu_{name}_utilization"]
    assert not metric.limits.hold(metric.value(EngineRate(percent)))


def test_the_help_says_that_traffic_is_not_fullness():
    """dcgm-exporter #345: it was taken for how full the memory is."""
    assert "not how full" in CATALOG["gpu_memory_interface_utilization"].help
