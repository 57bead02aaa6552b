"""Heat beyond the temperature of the die, and the fans."""

from ctypes import c_int32, c_uint32

from simulator import thermal
from simulator.gpu import SimulatedGpu
from testbed.driver.answers import Answers, nvml


def answers(gpu: SimulatedGpu, into: Answers) -> None:
    """Put temperatures, thresholds and fan speeds, as boards of its generation state them."""
    limits, die = gpu.model.limits, gpu.temperature_celsius
    memory = thermal.memory_celsius(limits, die)
    if memory is not None:
        into.put_field(nvml.NVML_FI_DEV_MEMORY_TEMP, c_uint32(memory))
    if gpu.model.states_margins:
        _margins(gpu, into)
    else:
        _thresholds(gpu, into)
    fans = thermal.fan_percents(limits, die)
    if fans:
        into.put("nvmlDeviceGetNumFans", len(fans))
        into.put("nvmlDeviceGetFanSpeed", fans[0])
    for fan, percent in enumerate(fans):
        into.put("nvmlDeviceGetFanSpeed_v2", percent, key=(fan, 0))


def _margins(gpu: SimulatedGpu, into: Answers) -> None:
    margin = thermal.margin_celsius(gpu.model, gpu.temperature_celsius)
    into.put_version(
        "nvmlDeviceGetMarginTemperature",
        nvml.c_nvmlMarginTemperature_v1_t(
            version=nvml.nvmlMarginTemperature_v1, marginTemperature=margin
        ),
    )
    fields = (
        nvml.NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT,
        nvml.NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT,
        nvml.NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT,
        nvml.NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT,
    )
    stated = thermal.margin_thresholds(gpu.model.limits)
    for field, celsius in zip(fields, stated, strict=True):
        if celsius is not None:
            shown = gpu.sensors.shown(celsius)
            into.put_field(field, c_int32(shown) if shown < 0 else c_uint32(shown))


def _thresholds(gpu: SimulatedGpu, into: Answers) -> None:
    for kind, celsius in enumerate(thermal.thresholds(gpu.model.limits)):
        if celsius is not None:
            shown = gpu.sensors.shown(celsius)
            into.put("nvmlDeviceGetTemperatureThreshold", shown, key=(kind, 0))
