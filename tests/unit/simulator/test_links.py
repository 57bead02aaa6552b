"""What goes over the links of a simulated GPU follows from its workloads, exactly."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.errors import ScenarioError
from simulator.fleet import Fleet
from simulator.scenario import (
    DriverGone,
    Garbage,
    NvlinkDown,
    NvlinkTrouble,
    PcieDegraded,
    PcieReplays,
    Seconds,
)
from slicewatch.catalog.readings.nvlink import NvlinkError
from slicewatch.hardware import MODELS

SCENARIO = """
nodes: [{name: n, gpus: [{model: H100-80GB}, {model: B200}, {model: L40S}]}]
workloads:
  - name: w
    load: {steps: [{at: 0s, level: 0.5}, {at: 7s, level: 1.0}, {at: 10s, level: 0.0}], repeat: 13s}
    mix: {nvlink_tx: 1GiB, nvlink_rx: 512MiB, pcie_rx: 2GB, pcie_tx: 1GB}
    pods:
      - {name: p, devices: [{node: n, gpu: 0}]}
      - {name: q, devices: [{node: n, gpu: 1}]}
      - {name: r, devices: [{node: n, gpu: 2}]}
"""
HOPPER, BLACKWELL, CARD = range(3)


@pytest.fixture
def fleet():
    return Fleet.load(SCENARIO)


def links(fleet, gpu=HOPPER):
    return fleet.node("n").gpus[gpu].links


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(0, 3000), min_size=1, max_size=6), st.sampled_from([HOPPER, BLACKWELL]))
def test_bytes_over_nvlink_are_the_load_times_what_it_moves(steps, gpu):
    fleet = Fleet.load(SCENARIO)
    uuid = fleet.node("n").gpus[gpu].uuid
    for step in steps:
        fleet.advance_to(fleet.now + step)
        busy = fleet.truth.busy_seconds(uuid, 0, fleet.now)
        traffic = links(fleet, gpu).nvlink_traffic()
        assert traffic.transmitted_bytes() == pytest.approx(busy * 2**30, rel=1e-9, abs=1024)
        assert traffic.received_bytes() == pytest.approx(busy * 2**29, rel=1e-9, abs=1024)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(0, 3000), min_size=2, max_size=6))
def test_no_counter_ever_falls_while_the_driver_stays(steps):
    fleet = Fleet.load(SCENARIO)
    fleet.inject(PcieReplays(node="n", gpu=HOPPER, every=Seconds(17)))
    seen = []
    for step in steps:
        fleet.advance_to(fleet.now + step)
        traffic = links(fleet).nvlink_traffic()
        seen.append((traffic.data_transmitted_kibibytes, links(fleet).pcie_replays().count))
    assert seen == sorted(seen)
    assert [count for _, count in seen][-1] == 1 + fleet.now // 17


def test_throughput_is_that_of_the_last_20_ms(fleet):
    assert links(fleet).pcie_throughput().received_kilobytes_per_second == 0
    fleet.advance_to(7.01)
    half = links(fleet).pcie_throughput()
    assert half.received_kilobytes_per_second == pytest.approx(1_500_000, abs=2)
    assert half.transmitted_kilobytes_per_second == pytest.approx(750_000, abs=2)


def test_only_a_card_that_idles_slows_its_link_down(fleet):
    fleet.advance_to(8)
    assert links(fleet, CARD).pcie_link().generation == 4
    fleet.advance_to(12)
    assert links(fleet, CARD).pcie_link().generation == 1
    assert links(fleet, HOPPER).pcie_link().generation == 5


def test_every_counter_starts_anew_with_the_driver(fleet):
    fleet.inject(PcieReplays(node="n", gpu=HOPPER, packets=9))
    trouble = NvlinkTrouble(node="n", gpu=HOPPER, link=1, error=NvlinkError.REPLAY, errors=4)
    fleet.inject(trouble)
    fleet.advance_to(1)
    assert (links(fleet).pcie_replays().count, links(fleet).nvlink_errors().links[1][0]) == (9, 4)
    fleet.inject(DriverGone(node="n", lasts=Seconds(2)))
    fleet.advance_to(3)
    assert (links(fleet).pcie_replays().count, links(fleet).nvlink_errors().links[1][0]) == (0, 0)
    assert links(fleet).nvlink_traffic().transmitted_bytes() == 0


def test_of_two_faults_the_narrower_link_holds(fleet):
    fleet.advance_to(1)
    fleet.inject(PcieDegraded(node="n", gpu=HOPPER, width=8))
    fleet.inject(PcieDegraded(node="n", gpu=HOPPER, width=4, generation=2, lasts=Seconds(5)))
    shown = links(fleet).pcie_link()
    assert (shown.generation, shown.width) == (2, 4)
    fleet.advance_to(6.5)
    shown = links(fleet).pcie_link()
    assert (shown.generation, shown.width, shown.max_width) == (5, 8, 16)


def test_nonsense_is_shown_in_every_part_that_is_a_number(fleet):
    fleet.inject(Garbage(node="n", gpu=HOPPER))
    assert set(links(fleet).nvlinks().states) == {2**64 - 1}
    assert links(fleet).pcie_link().width == 2**64 - 1
    assert not links(fleet).nvlink_traffic().consistent()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (PcieDegraded(node="n", gpu=HOPPER, width=32), r"fault\.width: must be 1 to 16"),
        (PcieDegraded(node="n", gpu=CARD, generation=5), r"fault\.generation: must be 1 to 4"),
        (PcieReplays(node="n", gpu=HOPPER, packets=0), r"fault\.packets: must be at least 1"),
        (PcieReplays(node="n", gpu=HOPPER, lasts=Seconds(1)), r"fault\.for: .* for an event"),
        (NvlinkDown(node="n", gpu=HOPPER, link=18), r"fault\.link: the GPU has 18 NVLinks"),
        (NvlinkDown(node="n", gpu=CARD, link=0), r"fault\.link: the GPU has 0 NVLinks"),
        (
            NvlinkTrouble(node="n", gpu=BLACKWELL, link=0, error=NvlinkError.CRC),
            r"fault\.error: that link does not count it",
        ),
        (
            NvlinkTrouble(node="n", gpu=HOPPER, link=0, error=NvlinkError.CRC, errors=0),
            r"fault\.errors: must be at least 1",
        ),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
def test_a_fault_that_the_board_cannot_have_is_refused(fleet, fault, reason):
    with pytest.raises(ScenarioError, match=reason):
        fleet.inject(fault)


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_a_board_has_nvlinks_and_their_generation_or_neither(model):
    assert bool(model.links.nvlinks) == bool(model.links.nvlink_generation)
    assert 3 <= model.links.pcie_generation <= 5
