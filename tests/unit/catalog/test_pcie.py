"""What readings of a PCIe link become."""

import pytest

from slicewatch.catalog import CATALOG
from slicewatch.catalog.pcie import THROUGHPUTS
from slicewatch.catalog.readings.pcie import PcieLink, PcieReplays, PcieThroughput

GENERATION = CATALOG["gpu_pcie_link_generation"]
WIDTH = CATALOG["gpu_pcie_link_width"]
REPLAYS = CATALOG["gpu_pcie_replays_total"]
THROUGHPUT = CATALOG["gpu_pcie_throughput_bytes_per_second"]
WORDS = [2**31 - 16, 2**32 - 1, 2**63 - 1, 2**64 - 1]


def test_what_is_negotiated_stands_beside_what_could_be():
    link = PcieLink(3, 4, 5, 8, 16)
    assert GENERATION.value(link) == {"current": 3, "max": 4, "gpu_max": 5}
    assert WIDTH.value(link) == {"current": 8, "max": 16}


def test_what_is_not_stated_is_absent():
    link = PcieLink(3, 4, None, None, None)
    assert GENERATION.value(link)["gpu_max"] is None
    assert set(WIDTH.value(link).values()) == {None}


@pytest.mark.parametrize("metric", [GENERATION, WIDTH], ids=lambda metric: metric.name)
@pytest.mark.parametrize("nonsense", [0, 255, *WORDS])
def test_a_link_that_cannot_be_is_out_of_range(metric, nonsense):
    values = metric.value(PcieLink(*[nonsense] * 5)).values()
    assert not any(map(metric.limits.hold, values))


@pytest.mark.parametrize("word", WORDS)
def test_a_word_for_not_available_is_no_number_of_replays(word):
    assert REPLAYS.limits.hold(REPLAYS.value(PcieReplays(0)))
    assert not REPLAYS.limits.hold(REPLAYS.value(PcieReplays(word)))


def test_throughput_is_in_bytes_and_told_apart_by_direction():
    reading = PcieThroughput(
        received_kilobytes_per_second=2_000, transmitted_kilobytes_per_second=3
    )
    assert THROUGHPUT.value(reading) == {"receive": 2e6, "transmit": 3e3}


@pytest.mark.parametrize("word", WORDS)
def test_no_link_carries_what_a_word_for_not_available_would_mean(word):
    values = THROUGHPUT.value(PcieThroughput(word, word)).values()
    assert not any(map(THROUGHPUT.limits.hold, values))


def test_what_blocks_for_20_ms_is_read_only_on_demand_and_seldom():
    assert THROUGHPUTS.optional
    assert THROUGHPUTS.interval_seconds >= 15
