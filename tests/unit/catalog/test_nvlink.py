"""What readings of NVLinks become: counters that never fall, and no number that is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.catalog import CATALOG
from slicewatch.catalog.nvlink import ERROR_COUNTS, STATES, TRAFFIC
from slicewatch.catalog.readings.nvlink import NvlinkError, NvlinkErrors, Nvlinks, NvlinkTraffic

LINKS = CATALOG["gpu_nvlink_links"]
ACTIVE = CATALOG["gpu_nvlink_active_links"]
UP = CATALOG["gpu_nvlink_up"]
SENT = CATALOG["gpu_nvlink_transmitted_bytes_total"]
CAME = CATALOG["gpu_nvlink_received_bytes_total"]
ERRORS = CATALOG["gpu_nvlink_errors_total"]
COUNTS = st.one_of(st.none(), st.integers(0, 2**40))


def test_links_are_counted_and_told_apart():
    links = Nvlinks((1, 0, 1))
    assert (LINKS.value(links), ACTIVE.value(links)) == (3, 2)
    assert UP.value(links) == {"0": 1, "1": 0, "2": 1}


def test_one_link_that_does_not_tell_hides_the_number_but_not_the_others():
    links = Nvlinks((1, None, 0))
    assert ACTIVE.value(links) is None
    assert UP.value(links) == {"0": 1, "1": None, "2": 0}


@pytest.mark.parametrize("nonsense", [2, 255, 2**32 - 1])
def test_a_state_that_is_none_is_rejected(nonsense):
    assert STATES.consistent(Nvlinks((0, 1, None)))
    assert not STATES.consistent(Nvlinks((1, nonsense)))


def test_payload_is_counted_in_kibibytes():
    traffic = NvlinkTraffic(3, 5, (None, None), (None, None))
    assert (SENT.value(traffic), CAME.value(traffic)) == (3072, 5120)


def test_since_nvlink_5_the_links_add_up():
    traffic = NvlinkTraffic(None, None, (10, 20), (1, 2))
    assert (SENT.value(traffic), CAME.value(traffic)) == (30, 3)


def test_a_board_that_counts_payload_is_never_shown_by_its_links():
    """The two differ: to fall back from one to the other would look like a reset."""
    traffic = NvlinkTraffic(None, 5, (10, 20), (1, 2))
    assert (SENT.value(traffic), CAME.value(traffic)) == (None, 5120)


def test_boards_that_count_nothing_have_no_traffic_and_not_zero():
    """DCGM #149: links showed zeros where their counters were not there."""
    assert SENT.value(NvlinkTraffic(None, None, (), ())) is None
    assert SENT.value(NvlinkTraffic(None, None, (None,), (None,))) is None


@given(st.lists(st.tuples(COUNTS, st.integers(0, 2**20)), min_size=1, max_size=18), st.data())
def test_a_sum_over_links_never_falls_whichever_of_them_answer(links, data):
    early = tuple(count for count, _ in links)
    late = tuple(
        None if count is None or data.draw(st.booleans()) else count + more
        for count, more in links
    )
    before, after = (SENT.value(NvlinkTraffic(None, None, one, one)) for one in (early, late))
    assert before is None or after is None or before <= after


@pytest.mark.parametrize("word", [2**32 - 1, 2**64 - 1])
def test_a_word_for_not_available_is_rejected_wherever_it_stands(word):
    assert TRAFFIC.consistent(NvlinkTraffic(1, 2, (3, None), (None, 4)))
    assert not TRAFFIC.consistent(NvlinkTraffic(word, 2, (), ()))
    assert not TRAFFIC.consistent(NvlinkTraffic(None, None, (1, word), (1, 1)))


def test_errors_have_a_series_for_each_link_and_kind_that_is_counted():
    nothing = (None,) * (len(NvlinkError) - 1)
    errors = NvlinkErrors(((7, *nothing), (0, *nothing)))
    known = {key: count for key, count in ERRORS.value(errors).items() if count is not None}
    assert known == {("0", "replay"): 7, ("1", "replay"): 0}


@pytest.mark.parametrize("word", [2**31 - 16, 2**32 - 1, 2**64 - 1])
def test_a_word_for_not_available_is_no_number_of_errors(word):
    assert not ERRORS.limits.hold(word)


def test_what_is_wide_is_shown_only_on_demand():
    assert UP.optional
    assert ERROR_COUNTS.optional
    assert not ACTIVE.optional
