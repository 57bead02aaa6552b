"""How a board is set up, through both implementations of the Nvml seam."""

import pytest

from exporter.nvml.protocol import Unsupported, Value
from simulator import scenario
from slicewatch.catalog.readings.state import (
    ComputeMode,
    FabricFault,
    FabricState,
    Generation,
    Inforom,
    InforomCheck,
    Modes,
)
from slicewatch.catalog.state import (
    COMPUTE_MODE,
    FABRIC,
    GENERATION,
    INFOROM,
    INFOROM_CHECK,
    MODES,
)

SCENARIO = """
nodes:
  - name: n
    gpus:
      - {model: H100-80GB}
      - {model: H100-80GB, mig: [1g.10gb]}
      - {model: RTX4090}
      - {model: A100-80GB}
"""
WHOLE, PARTITIONED, DESKTOP, AMPERE = range(4)


def read(world, probe, gpu, number=0):
    session = world.session(gpu)
    return session.read(probe, session.devices().value[number])


def test_modes_are_on_off_or_not_there(world):
    assert read(world, MODES, WHOLE) == Value(Modes(1, 0, 0, 1, 1))
    assert read(world, MODES, PARTITIONED) == Value(Modes(1, 1, 1, 1, 1))
    assert read(world, MODES, DESKTOP) == Value(Modes(1, None, None, 0, 0))


def test_a_mig_mode_that_waits_for_a_reset_is_pending(world):
    world.inject(scenario.MigPending(node="n", gpu=WHOLE))
    modes = read(world, MODES, WHOLE).value
    assert (modes.mig_current, modes.mig_pending) == (0, 1)


def test_in_mig_mode_the_compute_mode_is_that_of_the_instances(world):
    assert read(world, COMPUTE_MODE, WHOLE) == Value(ComputeMode(0))
    assert read(world, COMPUTE_MODE, PARTITIONED, 1) == Value(ComputeMode(0))
    assert read(world, COMPUTE_MODE, PARTITIONED) == Unsupported("mig_enabled")


def test_the_generation_is_that_of_the_model(world):
    assert read(world, GENERATION, WHOLE) == Value(Generation(9, 9, 0))
    assert read(world, GENERATION, DESKTOP) == Value(Generation(8, 8, 9))


def test_an_object_that_the_inforom_lacks_has_no_version(world):
    assert read(world, INFOROM, WHOLE) == Value(Inforom("SIM0.0200.00.01", "2.1", "7.16", None))
    assert read(world, INFOROM, DESKTOP) == Value(Inforom("SIM0.0200.00.01", "2.1", None, None))


def test_a_sound_inforom_is_valid(world):
    assert read(world, INFOROM_CHECK, WHOLE) == Value(InforomCheck(valid=True))


def test_a_corrupted_inforom_is_a_reading_and_no_failure(world):
    injection = world.inject(scenario.InforomCorrupted(node="n", gpu=WHOLE))
    assert read(world, INFOROM_CHECK, WHOLE) == Value(InforomCheck(valid=False))
    assert read(world, INFOROM_CHECK, AMPERE) == Value(InforomCheck(valid=True))
    world.clear(injection)
    assert read(world, INFOROM_CHECK, WHOLE) == Value(InforomCheck(valid=True))


def test_a_gpu_that_joined_the_fabric_is_healthy(world):
    fabric = read(world, FABRIC, WHOLE).value
    assert fabric.healthy() == 1
    assert fabric.states()["completed"] == 1
    assert set(fabric.faults().values()) == {0}


def test_a_gpu_that_has_no_fabric_says_so(world):
    assert read(world, FABRIC, AMPERE) == Unsupported("device")
    assert read(world, FABRIC, PARTITIONED, 1) == Unsupported("mig_instance")


@pytest.mark.parametrize("fault", FabricFault)
def test_each_fault_of_the_fabric_is_told_apart(world, fault):
    world.inject(scenario.FabricTrouble(node="n", gpu=WHOLE, fault=fault))
    fabric = read(world, FABRIC, WHOLE).value
    assert fabric.healthy() == 0
    assert {name for name, wrong in fabric.faults().items() if wrong} == {fault}


def test_health_is_unknown_until_the_gpu_joined(world):
    world.inject(scenario.FabricTrouble(node="n", gpu=WHOLE, state=FabricState.IN_PROGRESS))
    fabric = read(world, FABRIC, WHOLE).value
    assert fabric.states() == {"not_started": 0, "in_progress": 1, "completed": 0}
    assert fabric.healthy() is None
