"""What a model has because of its generation and its kind.

Sources: compute capabilities from the tables of the CUDA programming guide; row remapping since
Ampere and page retirement before it from NVIDIA's guide to GPU memory error management; BAR1
sizes from published output of ``nvidia-smi -q`` on the boards; that GeForce boards come with ECC
off from the same.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from slicewatch.hardware.model import MEBIBYTE, Architecture, GpuModel, MigProfile

# Of the models in ``gpus``: an architecture has several.
CUDA_CAPABILITIES: Final[Mapping[Architecture, tuple[int, int]]] = MappingProxyType({
    Architecture.VOLTA: (7, 0),
    Architecture.TURING: (7, 5),
    Architecture.AMPERE: (8, 0),
    Architecture.ADA: (8, 9),
    Architecture.HOPPER: (9, 0),
    Architecture.BLACKWELL: (10, 0),
})  # fmt: skip
_SMALL_WINDOW: Final = frozenset({"T4", "RTX4090"})
_SMALL_WINDOW_BYTES: Final = 256 * MEBIBYTE


def comes_with_ecc(model: GpuModel) -> bool:
    """Tell whether ECC is on unless somebody turned it off."""
    return "GeForce" not in model.nvml_name


def retires_pages(model: GpuModel) -> bool:
    """Tell whether memory that fails is taken out by pages; newer models remap rows."""
    return model.architecture in {Architecture.VOLTA, Architecture.TURING}


def joins_fabric(model: GpuModel) -> bool:
    """Tell whether the GPU registers with a fabric manager, as those in NVSwitch systems do."""
    return model.architecture in {Architecture.HOPPER, Architecture.BLACKWELL}


def bar1_bytes(model: GpuModel, profile: MigProfile | None = None) -> int:
    """Return the size of the BAR1 window, of the board or of a MIG instance on it.

    Boards for servers have a window of the power of two that holds their memory, an instance has
    its memory slices' share without 1 MiB; others have 256 MiB.
    """
    if model.name in _SMALL_WINDOW:
        return _SMALL_WINDOW_BYTES
    whole: int = 1 << (model.memory_bytes - 1).bit_length()
    if profile is None:
        return whole
    return whole * profile.memory_slices // model.memory_slices - MEBIBYTE
