"""The models that this project knows, by name.

Sources: SM counts, power limits and clocks from NVIDIA's data sheets and architecture papers;
memory as ``nvidia-smi`` shows it on the board.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from slicewatch.hardware import limits, links, profiles
from slicewatch.hardware.model import MEBIBYTE, Architecture, GpuModel, HardwareError
from slicewatch.suggestion import choices

ALL: Final = (
    GpuModel(
        name="V100-32GB", nvml_name="Tesla V100-SXM2-32GB",
        architecture=Architecture.VOLTA, sm_count=80,
        memory_bytes=32768 * MEBIBYTE, reserved_bytes=270 * MEBIBYTE,
        idle_power_watts=42, max_power_watts=300,
        idle_sm_clock_mhz=135, max_sm_clock_mhz=1530, max_memory_clock_mhz=877,
        limits=limits.V100_32GB, links=links.V100_SXM2,
    ),
    GpuModel(
        name="T4", nvml_name="Tesla T4",
        architecture=Architecture.TURING, sm_count=40,
        memory_bytes=15360 * MEBIBYTE, reserved_bytes=450 * MEBIBYTE,
        idle_power_watts=10, max_power_watts=70,
        idle_sm_clock_mhz=300, max_sm_clock_mhz=1590, max_memory_clock_mhz=5001,
        limits=limits.T4, links=links.T4,
    ),
    GpuModel(
        name="A30", nvml_name="NVIDIA A30",
        architecture=Architecture.AMPERE, sm_count=56,
        memory_bytes=24576 * MEBIBYTE, reserved_bytes=512 * MEBIBYTE,
        idle_power_watts=30, max_power_watts=165,
        idle_sm_clock_mhz=210, max_sm_clock_mhz=1440, max_memory_clock_mhz=1215,
        limits=limits.A30, links=links.A30,
        compute_slices=4, memory_slices=4, mig_profiles=profiles.A30,
    ),
    GpuModel(
        name="A100-40GB", nvml_name="NVIDIA A100-SXM4-40GB",
        architecture=Architecture.AMPERE, sm_count=108,
        memory_bytes=40960 * MEBIBYTE, reserved_bytes=570 * MEBIBYTE,
        idle_power_watts=55, max_power_watts=400,
        idle_sm_clock_mhz=210, max_sm_clock_mhz=1410, max_memory_clock_mhz=1215,
        limits=limits.A100, links=links.A100_SXM4,
        compute_slices=7, memory_slices=8, mig_profiles=profiles.A100_40GB,
    ),
    GpuModel(
        name="A100-80GB", nvml_name="NVIDIA A100-SXM4-80GB",
        architecture=Architecture.AMPERE, sm_count=108,
        memory_bytes=81920 * MEBIBYTE, reserved_bytes=620 * MEBIBYTE,
        idle_power_watts=62, max_power_watts=400,
        idle_sm_clock_mhz=210, max_sm_clock_mhz=1410, max_memory_clock_mhz=1593,
        limits=limits.A100, links=links.A100_SXM4,
        compute_slices=7, memory_slices=8, mig_profiles=profiles.A100_80GB,
    ),
    GpuModel(
        name="L40S", nvml_name="NVIDIA L40S",
        architecture=Architecture.ADA, sm_count=142,
        memory_bytes=46068 * MEBIBYTE, reserved_bytes=600 * MEBIBYTE,
        idle_power_watts=35, max_power_watts=350,
        idle_sm_clock_mhz=210, max_sm_clock_mhz=2520, max_memory_clock_mhz=9001,
        limits=limits.L40S, links=links.L40S,
    ),
    GpuModel(
        name="RTX4090", nvml_name="NVIDIA GeForce RTX 4090",
        architecture=Architecture.ADA, sm_count=128,
        memory_bytes=24564 * MEBIBYTE, reserved_bytes=360 * MEBIBYTE,
        idle_power_watts=20, max_power_watts=450,
        idle_sm_clock_mhz=210, max_sm_clock_mhz=3105, max_memory_clock_mhz=10501,
        limits=limits.RTX4090, links=links.RTX4090,
    ),
    GpuModel(
        name="H100-80GB", nvml_name="NVIDIA H100 80GB HBM3",
        architecture=Architecture.HOPPER, sm_count=132,
        memory_bytes=81559 * MEBIBYTE, reserved_bytes=560 * MEBIBYTE,
        idle_power_watts=70, max_power_watts=700,
        idle_sm_clock_mhz=345, max_sm_clock_mhz=1980, max_memory_clock_mhz=2619,
        limits=limits.H100, links=links.H100_SXM5,
        compute_slices=7, memory_slices=8, mig_profiles=profiles.H100_80GB,
    ),
    GpuModel(
        name="H200-141GB", nvml_name="NVIDIA H200",
        architecture=Architecture.HOPPER, sm_count=132,
        memory_bytes=143771 * MEBIBYTE, reserved_bytes=600 * MEBIBYTE,
        idle_power_watts=78, max_power_watts=700,
        idle_sm_clock_mhz=345, max_sm_clock_mhz=1980, max_memory_clock_mhz=3201,
        limits=limits.H200, links=links.H200,
        compute_slices=7, memory_slices=8, mig_profiles=profiles.H200_141GB,
    ),
    GpuModel(
        name="B200", nvml_name="NVIDIA B200",
        architecture=Architecture.BLACKWELL, sm_count=148,
        memory_bytes=183359 * MEBIBYTE, reserved_bytes=700 * MEBIBYTE,
        idle_power_watts=140, max_power_watts=1000,
        idle_sm_clock_mhz=120, max_sm_clock_mhz=1965, max_memory_clock_mhz=3996,
        limits=limits.B200, links=links.B200,
        compute_slices=7, memory_slices=8, mig_profiles=profiles.B200,
    ),
)  # fmt: skip

MODELS: Final[Mapping[str, GpuModel]] = MappingProxyType({model.name: model for model in ALL})

BY_NVML_NAME: Final[Mapping[str, GpuModel]] = MappingProxyType(
    {model.nvml_name: model for model in ALL}
)

_MEMORY_SLICES: Final[Mapping[str, int]] = MappingProxyType(
    {model.name.partition("-")[0]: model.memory_slices for model in ALL if model.memory_slices}
)


def memory_slices(nvml_name: str) -> int | None:
    """Return how many memory slices MIG cuts a GPU into; None if that is not known.

    That depends on the chip alone: an ``NVIDIA A100 80GB PCIe`` has as many as the A100 that is
    listed here, whatever its memory and form factor.
    """
    words = nvml_name.replace("-", " ").split()
    return next((_MEMORY_SLICES[word] for word in words if word in _MEMORY_SLICES), None)


def model_named(name: str) -> GpuModel:
    """Return the model of that name.

    Raises:
        HardwareError: there is none; names the closest match.
    """
    try:
        return MODELS[name]
    except KeyError:
        raise HardwareError(f"no GPU model {name!r}{choices(name, MODELS)}") from None
