"""Memory errors of the simulator: counted from the story, at any moment, in any order."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.clock import ManualClock
from simulator.errors import ScenarioError
from simulator.faults import Injection
from simulator.fleet import Fleet
from simulator.memory_errors import BANKS, SRAM_THRESHOLD
from simulator.reading import parse
from simulator.scenario import Ecc, Garbage, RecoveryNeeded, RowRemap, Seconds
from slicewatch.catalog.readings.errors import EccErrors, Recovery

SCENARIO = """
nodes: [{name: n, gpus: [{model: A100-80GB}, {model: T4}, {model: RTX4090}]}]
faults:
  - {kind: ecc, node: n, gpu: 0, at: 100s, every: 10s, bits: single, errors: 2}
  - {kind: ecc, node: n, gpu: 1, at: 50s, bits: double}
  - {kind: driver_gone, node: n, at: 205s, for: 1s}
"""


@pytest.fixture
def fleet():
    return Fleet.load(SCENARIO, clock=ManualClock())


def errors(fleet, gpu=0):
    return fleet.nodes[0].gpus[gpu].errors


@pytest.mark.parametrize(
    ("at", "volatile", "aggregate"),
    [(99.9, 0, 0), (100, 2, 2), (109.9, 2, 2), (200, 22, 22), (207, 0, 22), (210, 2, 24)],
)
def test_counters_are_what_happened_until_then(fleet, at, volatile, aggregate):
    fleet.advance_to(at)
    assert errors(fleet).ecc() == EccErrors(volatile, 0, aggregate, 0)


def test_counting_goes_over_years_at_once():
    fault = Ecc(node="n", gpu=0, bits="single", at=Seconds(100), every=Seconds(1e-3))
    assert Injection(fault, origin=0.0).begun(1e9) == pytest.approx(1e12, rel=1e-6)


def test_what_is_cleared_happens_no_more_but_stays_counted(fleet):
    fleet.advance_to(101)
    fleet.clear()
    fleet.advance_to(500)
    assert errors(fleet).ecc().corrected_aggregate == 2


@given(
    first=st.integers(0, 50),
    every=st.none() | st.floats(0.1, 20),
    cleared=st.none() | st.integers(0, 100),
    until=st.floats(0, 100),
)
def test_counting_agrees_with_the_occurrences(first, every, cleared, until):
    fault = Ecc(node="n", gpu=0, bits="single", at=Seconds(first), every=every and Seconds(every))
    injection = Injection(fault, origin=0.0)
    if cleared is not None:
        injection.clear(cleared)
    assert injection.begun(until) == len(list(injection.occurrences(0.0, until)))


def test_a_board_before_ampere_retires_a_page_for_each_uncorrected_error(fleet):
    fleet.advance_to(60)
    assert errors(fleet, 1).retired_pages().double_bit == 1
    assert errors(fleet, 1).remapped_rows() is None
    assert errors(fleet, 0).retired_pages() is None


def test_without_ecc_nothing_is_counted(fleet):
    desktop = errors(fleet, 2)
    assert (desktop.ecc(), desktop.by_location(), desktop.sram()) == (None, None, None)
    assert desktop.remapped_rows() is not None


def test_banks_lose_a_row_each_and_never_more_than_there_are(fleet):
    fleet.inject(RowRemap(node="n", gpu=0, rows=3, cause="correctable"))
    assert errors(fleet).remap_banks().high == 3
    fleet.inject(RowRemap(node="n", gpu=0, rows=BANKS))
    banks = errors(fleet).remap_banks()
    assert (banks.max, banks.high) == (0, BANKS)


@pytest.mark.parametrize(
    ("rows", "left"), [(1, "high"), (3, "high"), (4, "partial"), (7, "low"), (8, "none")]
)
def test_a_bank_has_so_many_spare_rows_left(fleet, rows, left):
    fleet.inject(RowRemap(node="n", gpu=0, rows=rows, bank="same"))
    banks = msgspec.structs.asdict(errors(fleet).remap_banks())
    assert {name: n for name, n in banks.items() if n} == {"max": BANKS - 1, left: 1}


def test_the_sram_is_given_up_after_so_many_uncorrected_errors(fleet):
    def fail(number):
        fleet.inject(Ecc(node="n", gpu=0, bits="double", location="sram", errors=number))
        return errors(fleet).sram().threshold_exceeded

    assert [fail(SRAM_THRESHOLD - 1), fail(1)] == [0, 1]


def test_the_latest_wish_for_an_action_counts(fleet):
    fleet.inject(RecoveryNeeded(node="n", gpu=0, action=Recovery.DRAIN_P2P))
    fleet.advance_to(1)
    latest = fleet.inject(RecoveryNeeded(node="n", gpu=0, action=Recovery.NODE_REBOOT))
    assert list(Recovery)[errors(fleet).recovery().number] == "node_reboot"
    fleet.clear(latest)
    assert list(Recovery)[errors(fleet).recovery().number] == "drain_p2p"


def test_nonsense_is_told_while_garbage_lasts(fleet):
    garbage = fleet.inject(Garbage(node="n", gpu=0))
    assert errors(fleet).ecc() == EccErrors(*[2**64 - 1] * 4)
    assert not errors(fleet).recovery().consistent()
    fleet.clear(garbage)
    assert errors(fleet).ecc() == EccErrors(0, 0, 0, 0)


@pytest.mark.parametrize(
    ("fault", "place"),
    [
        ("{kind: row_remap, node: n, gpu: 1}", "faults[0].gpu"),
        ("{kind: row_remap, node: n, gpu: 0, rows: 0}", "faults[0].rows"),
        ("{kind: row_remap, node: n, gpu: 0, every: 5s}", "faults[0].every"),
        ("{kind: ecc, node: n, gpu: 0, bits: single, errors: 0}", "faults[0].errors"),
        ("{kind: fabric, node: n, gpu: 0}", "faults[0].gpu"),
        ("{kind: recovery_action, node: n, gpu: 0, action: pray}", "faults[0].action"),
    ],
)
def test_a_fault_that_the_board_cannot_have_is_refused_where_it_stands(fault, place):
    nodes = "nodes: [{name: n, gpus: [{model: A100-80GB}, {model: T4}]}]"
    with pytest.raises(ScenarioError) as refusal:
        parse(f"{nodes}\nfaults: [{fault}]")
    assert str(refusal.value).startswith(place)
