"""The library of an old driver: what R510 and later brought is not there to be called."""

import ctypes

import pytest

from testbed import require
from testbed.binaries import Unavailable
from testbed.driver import build


@pytest.fixture(scope="module")
def old():
    try:
        return ctypes.CDLL(str(build.library(old_driver=True)))
    except Unavailable as why:
        require.skip_or_fail(str(why))


@pytest.mark.parametrize(
    "name",
    [
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetProcessesUtilizationInfo",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetGpuFabricInfoV",
        "nvmlDeviceGetSramEccErrorStatus",
        "nvmlDeviceGetVgpuSchedulerLog_v2",
        "nvmlDeviceGetJpgUtilization",
        "nvmlGpmSampleGet",
    ],
)
def test_what_came_later_is_missing(old, name):
    """nvitop #79: a program meets drivers that lack the calls it was written for."""
    assert not hasattr(old, name)


@pytest.mark.parametrize(
    "name",
    [
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetTemperature",
        "nvmlDeviceGetCurrentClocksThrottleReasons",
        "nvmlDeviceGetProcessUtilization",
        "nvmlDeviceGetRemappedRows",
        "nvmlDeviceGetFieldValues",
    ],
)
def test_what_there_was_before_is_there(old, name):
    assert hasattr(old, name)
