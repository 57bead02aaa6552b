"""GPU models and MIG profiles, as data that needs no driver.

What varies between two boards of one model, or with the driver, does not belong here.
"""

from slicewatch.hardware.gpus import BY_NVML_NAME, MODELS, memory_slices, model_named
from slicewatch.hardware.layout import PlacedInstance, gpu_instance_id, placements_for, room_for
from slicewatch.hardware.limits import BoardLimits
from slicewatch.hardware.model import (
    Architecture,
    GpuModel,
    HardwareError,
    MigProfile,
    Placement,
)

__all__ = [
    "BY_NVML_NAME",
    "MODELS",
    "Architecture",
    "BoardLimits",
    "GpuModel",
    "HardwareError",
    "MigProfile",
    "PlacedInstance",
    "Placement",
    "gpu_instance_id",
    "memory_slices",
    "model_named",
    "placements_for",
    "room_for",
]
