"""The set-up of boards whose drivers answer in part, in the old way, or with an error."""

import pynvml
import pytest

from exporter.nvml.protocol import Failed, Lost, Unsupported, Value
from exporter.nvml.real.returns import Return
from slicewatch.catalog.memory import BAR1
from slicewatch.catalog.readings.state import (
    Fabric,
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
nodes: [{name: n, gpus: [{model: H100-80GB}, {model: H100-80GB, mig: [1g.10gb]}]}]
"""
WHOLE, PARTITIONED = range(2)
FABRIC_CALL = "nvmlDeviceGetGpuFabricInfoV"
COMPLETED = 3


def read(world, probe, gpu=WHOLE, number=0):
    session = world.session(gpu)
    return session.read(probe, session.devices().value[number])


def test_a_mode_that_is_refused_leaves_the_others(world):
    world.answer(WHOLE, lambda into: into.forget("nvmlDeviceGetEccMode"))
    world.fail(WHOLE, nvmlDeviceGetPersistenceMode=Return.UNKNOWN)
    assert read(world, MODES) == Value(Modes(None, 0, 0, None, None))


def test_in_mig_mode_the_board_is_not_asked_for_a_compute_mode(world):
    world.answer(PARTITIONED, lambda into: into.put("nvmlDeviceGetComputeMode", 2))
    assert read(world, COMPUTE_MODE, PARTITIONED) == Unsupported("mig_enabled")


def test_a_driver_without_architectures_still_tells_the_capability(world):
    world.answer(WHOLE, lambda into: into.forget("nvmlDeviceGetArchitecture"))
    assert read(world, GENERATION) == Value(Generation(None, 9, 0))


def test_a_version_that_is_no_text_is_left_out(world):
    world.answer(WHOLE, lambda into: into.put("nvmlDeviceGetInforomImageVersion", b"\xff\xfe\xff"))
    assert read(world, INFOROM) == Value(Inforom(None, "2.1", "7.16", None))


def test_a_board_without_an_inforom_does_not_support_it(world):
    def change(answers):
        answers.forget("nvmlDeviceGetInforomImageVersion")
        answers.forget("nvmlDeviceGetInforomVersion")
        answers.forget("nvmlDeviceValidateInforom")

    world.answer(WHOLE, change)
    assert read(world, INFOROM) == Unsupported("device")
    assert read(world, INFOROM_CHECK) == Unsupported("device")


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (Return.CORRUPTED_INFOROM, Value(InforomCheck(valid=False))),
        (Return.NO_PERMISSION, Unsupported("permission")),
        (Return.UNKNOWN, Failed("UNKNOWN")),
        (Return.GPU_IS_LOST, Lost("gpu_is_lost")),
    ],
)
def test_only_a_wrong_checksum_makes_an_inforom_invalid(world, code, outcome):
    world.fail(WHOLE, nvmlDeviceValidateInforom=code)
    assert read(world, INFOROM_CHECK) == outcome


def test_a_driver_with_the_older_fabric_structure_has_no_summary(world):
    def change(answers):
        answers.forget(FABRIC_CALL)
        info = pynvml.c_nvmlGpuFabricInfo_v2_t()
        info.state, info.healthMask = COMPLETED, 0b10101010
        answers.put_version(FABRIC_CALL, info)

    world.answer(WHOLE, change)
    assert read(world, FABRIC) == Value(Fabric(COMPLETED, 0, 0b10101010))
    assert read(world, FABRIC).value.healthy() == 1


def test_a_gpu_whose_system_has_no_fabric_does_not_support_it(world):
    def change(answers):
        answers.put_version(FABRIC_CALL, pynvml.c_nvmlGpuFabricInfo_v3_t())

    world.answer(WHOLE, change)
    assert read(world, FABRIC) == Unsupported("device")


def test_a_registration_that_ended_with_an_error_is_unhealthy(world):
    def change(answers):
        info = pynvml.c_nvmlGpuFabricInfo_v3_t()
        info.state, info.status, info.healthSummary = COMPLETED, Return.UNKNOWN, 1
        answers.put_version(FABRIC_CALL, info)

    world.answer(WHOLE, change)
    assert read(world, FABRIC).value.healthy() == 0


@pytest.mark.parametrize(
    ("code", "outcome"),
    [(Return.NOT_SUPPORTED, Unsupported("device")), (Return.UNKNOWN, Failed("UNKNOWN"))],
)
def test_a_board_without_a_window_says_so(world, code, outcome):
    """HAMi #1089: one failing memory call took every other metric with it."""
    world.fail(WHOLE, nvmlDeviceGetBAR1MemoryInfo=code)
    assert read(world, BAR1) == outcome
    assert isinstance(read(world, MODES), Value)
    assert isinstance(read(world, BAR1, PARTITIONED, 1), Value)
