"""What NVML's return codes mean."""

import pynvml
import pytest

from exporter.nvml.protocol import Failed, Lost, Unsupported
from exporter.nvml.real.returns import Return, outcome_of, unavailable


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (Return.GPU_IS_LOST, Lost("gpu_is_lost")),
        (Return.RESET_REQUIRED, Lost("reset_required")),
        (Return.GPU_NOT_FOUND, Lost("gpu_not_found")),
        (Return.UNINITIALIZED, Failed("UNINITIALIZED", reinitialise=True)),
        (Return.DRIVER_NOT_LOADED, Failed("DRIVER_NOT_LOADED", reinitialise=True)),
        (Return.LIB_RM_VERSION_MISMATCH, Failed("LIB_RM_VERSION_MISMATCH", reinitialise=True)),
        (Return.NOT_SUPPORTED, Unsupported("device")),
        (Return.FUNCTION_NOT_FOUND, Unsupported("driver")),
        (Return.ARGUMENT_VERSION_MISMATCH, Unsupported("driver")),
        (Return.NO_PERMISSION, Unsupported("permission")),
        (Return.UNKNOWN, Failed("UNKNOWN")),
        (Return.TIMEOUT, Failed("TIMEOUT")),
        (Return.IRQ_ISSUE, Failed("IRQ_ISSUE")),
        (4711, Failed("CODE_4711")),
        (0, Failed("CODE_0")),
    ],
)
def test_a_code_has_one_meaning(code, outcome):
    assert outcome_of(code) == outcome


@pytest.mark.parametrize("code", Return)
def test_only_a_lost_driver_asks_for_a_new_start(code):
    outcome = outcome_of(code)
    gone = code.name in {"UNINITIALIZED", "DRIVER_NOT_LOADED", "LIB_RM_VERSION_MISMATCH"}
    assert (isinstance(outcome, Failed) and outcome.reinitialise) == gone


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (Return.LIBRARY_NOT_FOUND, "no_library"),
        (Return.DRIVER_NOT_LOADED, "no_driver"),
        (Return.UNINITIALIZED, "no_driver"),
        (Return.LIB_RM_VERSION_MISMATCH, "version_mismatch"),
        (Return.NO_PERMISSION, "permission"),
        (Return.UNKNOWN, "unknown"),
        (Return.FUNCTION_NOT_FOUND, "unknown"),
        (4711, "unknown"),
    ],
)
def test_a_start_that_fails_has_a_word_and_a_sentence(code, reason):
    error = unavailable(code)
    assert error.reason == reason
    assert len(str(error).split()) > 3


def test_the_names_are_those_of_the_binding():
    names = {
        name.removeprefix("NVML_ERROR_"): value
        for name, value in vars(pynvml).items()
        if name.startswith("NVML_ERROR_")
    }
    assert {code.name: code.value for code in Return} == names
