"""What readings of a board's set-up become: flags, labels, and nothing for what is not known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.catalog import CATALOG
from slicewatch.catalog.readings.state import (
    CONFIGURATION_SHIFT,
    FAULT_SHIFTS,
    HEALTHY,
    LIMITED_CAPACITY,
    UNHEALTHY,
    ComputeMode,
    Fabric,
    FabricFault,
    FabricState,
    Generation,
    Inforom,
    InforomCheck,
    Modes,
)
from slicewatch.catalog.state import HOUR_SECONDS, INFOROM_CHECK

SENTINELS = [2**32 - 1, 2**64 - 1, 0x7FFFFFF0, -1]
COMPLETED = 3


def value(name, reading):
    return CATALOG[name].value(reading)


def test_current_and_pending_modes_are_told_apart():
    modes = Modes(1, 0, 1, 1, 0)
    assert value("gpu_mig_mode", modes) == {"current": 0, "pending": 1}
    assert value("gpu_ecc_mode", modes) == {"current": 1, "pending": 0}
    assert value("gpu_persistence_mode", modes) == 1


def test_a_mode_that_the_board_does_not_have_is_absent():
    modes = Modes(None, None, None, 0, 0)
    assert modes.consistent()
    assert value("gpu_mig_mode", modes) == {"current": None, "pending": None}
    assert value("gpu_persistence_mode", modes) is None


@pytest.mark.parametrize("nonsense", [*SENTINELS, 2])
@pytest.mark.parametrize("place", range(5))
def test_a_mode_that_is_neither_on_nor_off_spoils_the_reading(place, nonsense):
    modes = [1] * 5
    modes[place] = nonsense
    assert not Modes(*modes).consistent()


@pytest.mark.parametrize(
    ("number", "name"),
    [(0, "default"), (1, "exclusive_thread"), (2, "prohibited"), (3, "exclusive_process")],
)
def test_a_compute_mode_is_named_as_nvidia_smi_names_it(number, name):
    assert value("gpu_compute_mode_info", ComputeMode(number)) == {name: 1}


@pytest.mark.parametrize("number", [4, *SENTINELS])
def test_an_unknown_compute_mode_has_no_series(number):
    assert value("gpu_compute_mode_info", ComputeMode(number)) is None


def test_a_generation_is_an_architecture_and_a_capability():
    assert value("gpu_architecture_info", Generation(9, 9, 0)) == {("hopper", "9.0"): 1}
    assert value("gpu_architecture_info", Generation(99, 15, 3)) == {("", "15.3"): 1}
    assert value("gpu_architecture_info", Generation(7, None, None)) == {("ampere", ""): 1}
    assert value("gpu_architecture_info", Generation(None, None, None)) is None


@pytest.mark.parametrize("nonsense", SENTINELS)
def test_a_capability_that_cannot_be_one_spoils_the_reading(nonsense):
    assert Generation(2**32 - 1, 9, 0).consistent()
    assert not Generation(9, nonsense, 0).consistent()
    assert not Generation(9, 9, nonsense).consistent()


def test_an_object_without_a_version_is_left_out():
    inforom = Inforom(image="G520.0200.00.05", oem="2.1", ecc="7.16", power=None)
    assert value("gpu_inforom_info", inforom) == {
        ("image", "G520.0200.00.05"): 1, ("oem", "2.1"): 1, ("ecc", "7.16"): 1,
    }  # fmt: skip
    assert value("gpu_inforom_info", Inforom("", None, None, None)) == {}


def test_the_check_of_the_inforom_is_rare_and_has_to_be_asked_for():
    """nvidia_gpu_exporter #332: the validation of the checksums is slow."""
    assert INFOROM_CHECK.optional
    assert INFOROM_CHECK.interval_seconds >= HOUR_SECONDS
    assert value("gpu_inforom_valid", InforomCheck(valid=False)) == 0
    assert value("gpu_inforom_valid", InforomCheck(valid=True)) == 1


@pytest.mark.parametrize(("number", "state"), list(enumerate(FabricState, start=1)))
def test_a_gpu_is_in_one_state_of_joining_the_fabric(number, state):
    fabric = Fabric(number, 0, 0)
    assert fabric.consistent()
    states = value("gpu_fabric_state", fabric)
    assert {name for name, flag in states.items() if flag} == {state}


@pytest.mark.parametrize("number", [0, 4, *SENTINELS])
def test_an_unknown_state_spoils_the_reading(number):
    assert not Fabric(number, 0, 0).consistent()


@pytest.mark.parametrize(("fault", "shift"), FAULT_SHIFTS.items())
@pytest.mark.parametrize(("bits", "wrong"), [(0, None), (1, 1), (2, 0), (3, None)])
def test_a_fault_is_true_false_or_not_known(fault, shift, bits, wrong):
    faults = value("gpu_fabric_fault", Fabric(COMPLETED, 0, bits << shift))
    assert faults[fault] == wrong
    assert {found for name, found in faults.items() if name != fault} == {None}


@pytest.mark.parametrize(("bits", "wrong"), [(0, None), (1, 0), (2, 1), (8, 1), (15, 1)])
def test_a_configuration_is_right_in_one_way_only(bits, wrong):
    fabric = Fabric(COMPLETED, 0, bits << CONFIGURATION_SHIFT)
    assert value("gpu_fabric_fault", fabric)[FabricFault.INCORRECT_CONFIGURATION] == wrong


@pytest.mark.parametrize(
    ("fabric", "healthy"),
    [
        (Fabric(COMPLETED, 0, 0b10101010, HEALTHY), 1),
        (Fabric(COMPLETED, 0, 0b10101010, UNHEALTHY), 0),
        (Fabric(COMPLETED, 0, 0b10101010, LIMITED_CAPACITY), 0),
        (Fabric(COMPLETED, 999, 0b10101010, HEALTHY), 0),
        (Fabric(COMPLETED, 0, 0b10101010), 1),
        (Fabric(COMPLETED, 0, 0b10101001), 0),
        (Fabric(COMPLETED, 0, 0b10101001, 0), 0),
        (Fabric(COMPLETED, 0, 0), None),
        (Fabric(COMPLETED, 0, 0b10101010, 255), 1),
        (Fabric(2, 0, 0b10101001, UNHEALTHY), None),
    ],
    ids=str,
)
def test_health_is_the_drivers_summary_or_else_that_nothing_is_wrong(fabric, healthy):
    assert value("gpu_fabric_healthy", fabric) == healthy


@given(st.integers(0, 2**32 - 1), st.integers(0, 255) | st.none())
def test_whatever_the_mask_says_flags_are_flags(mask, summary):
    fabric = Fabric(COMPLETED, 0, mask, summary)
    assert set(fabric.faults().values()) <= {None, 0, 1}
    assert fabric.healthy() in {None, 0, 1}
