"""Power, energy and temperature."""

from ctypes import c_int32, c_uint32, c_uint64

from simulator.gpu import SimulatedGpu
from testbed.driver.answers import Answers, nvml

# nvmlTemperatureSensors_t.
GPU_SENSOR = 0


def answers(gpu: SimulatedGpu, into: Answers) -> None:
    """Put what a GPU draws, has drawn, may draw, and how warm it is."""
    energy, celsius = gpu.energy_millijoules, gpu.temperature_celsius
    _power(gpu, into)
    into.put("nvmlDeviceGetTotalEnergyConsumption", c_uint64(energy))
    into.put_field(nvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, c_uint64(energy))
    into.put("nvmlDeviceGetTemperature", celsius, key=(GPU_SENSOR, 0))
    into.put_version(
        "nvmlDeviceGetTemperatureV",
        nvml.c_nvmlTemperature_v1_t(
            version=nvml.nvmlTemperature_v1,
            sensorType=GPU_SENSOR,
            temperature=c_int32(celsius).value,
        ),
        second=GPU_SENSOR,
    )


def _power(gpu: SimulatedGpu, into: Answers) -> None:
    sensors = gpu.sensors
    least, most = sensors.power_bounds_milliwatts
    into.put("nvmlDeviceGetPowerUsage", sensors.power_milliwatts)
    into.put_field(nvml.NVML_FI_DEV_POWER_INSTANT, c_uint32(sensors.power_instant_milliwatts))
    average = sensors.power_average_milliwatts
    if average is not None:
        into.put_field(nvml.NVML_FI_DEV_POWER_AVERAGE, c_uint32(average))
    for limit in ("EnforcedPower", "PowerManagement", "PowerManagementDefault"):
        into.put(f"nvmlDeviceGet{limit}Limit", most)
    into.put("nvmlDeviceGetPowerManagementLimitConstraints", least, most)
