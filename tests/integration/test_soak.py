"""A sample of ``make soak``: an exporter lives through pods, faults and new layouts, and keeps none."""

import asyncio

import pytest

from bench import soak

TICKS = 1500


@pytest.fixture(scope="module")
def outcome():
    return asyncio.run(soak.run(TICKS))


pytestmark = pytest.mark.timeout(400)


def test_nothing_is_kept_of_pods_and_layouts_that_are_gone(outcome):
    """Memory that grows until the process is killed: dcgm-exporter #536, #702, #292."""
    assert outcome.faults() == []


def test_a_lot_has_happened_meanwhile(outcome):
    assert outcome.pods == TICKS // soak.TICKS_OF_A_POD
    assert outcome.layouts > outcome.pods / 2
    assert outcome.most_series > outcome.series > 0


def test_what_is_kept_is_told():
    kept = soak.Outcome(
        ticks=1, pods=1, seconds=1.0, footprints=(), layouts=1, most_series=1, series=2,
        left_over=frozenset({'gpu_tenant_processes{pod="gone"}'}), missing=frozenset({"gpu_up"}),
        held_blocks=200, held_blocks_anew=100, threads_left=1,
    )  # fmt: skip
    blocks, left_over, missing, threads = kept.faults()
    assert blocks == "it holds 200 blocks, one started anew 100"
    assert left_over == '1 series are left over, such as gpu_tenant_processes{pod="gone"}'
    assert missing == "1 series are missing, such as gpu_up"
    assert threads == "1 threads are left"
