"""What memory readings become: bytes of each part, and nothing that contradicts itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.catalog import CATALOG
from slicewatch.catalog.readings.memory import Bar1Memory, Memory

SENTINELS = [2**64 - 1, 2**63 - 16]


@given(st.integers(0, 2**40), st.integers(0, 2**40), st.integers(0, 2**40))
def test_free_and_reserved_are_passed_on_as_they_are(free, used, reserved):
    reading = Memory(free + used + reserved, free, used, reserved)
    assert CATALOG["gpu_memory_free_bytes"].value(reading) == free
    assert CATALOG["gpu_memory_reserved_bytes"].value(reading) == reserved


def test_a_window_has_its_size_and_its_mapped_part():
    reading = Bar1Memory(2**37, 2**37 - 2**21, 2**21)
    assert reading.consistent()
    assert CATALOG["gpu_bar1_memory_used_bytes"].value(reading) == 2**21
    assert CATALOG["gpu_bar1_memory_total_bytes"].value(reading) == 2**37


@pytest.mark.parametrize(
    "window",
    [(0, 0, 0), (100, 60, 41), (100, -1, 50), (100, 50, -1), (100, 0, 2**64 - 1)],
    ids=str,
)
def test_a_window_whose_parts_do_not_fit_is_inconsistent(window):
    assert not Bar1Memory(*window).consistent()


@pytest.mark.parametrize("sentinel", SENTINELS)
@pytest.mark.parametrize(
    "name",
    [
        "gpu_memory_free_bytes",
        "gpu_memory_reserved_bytes",
        "gpu_bar1_memory_used_bytes",
        "gpu_bar1_memory_total_bytes",
    ],
)
def test_words_for_not_available_are_out_of_range(name, sentinel):
    assert not CATALOG[name].limits.hold(sentinel)
