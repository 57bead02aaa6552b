"""What an hour of a GPU costs where nobody says otherwise, by patterns of NVML's model names.

Rounded list prices of clouds for an hour on demand, in US dollars. Whoever pays others sets them.
A pattern fits all boards of a model, and nothing that only has its name in its own: a GH200, the
RTX 4090 of a laptop, or a vGPU such as ``NVIDIA L40S-12Q``, which is a part of a board.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

DOLLARS_PER_HOUR: Final[Mapping[str, float]] = MappingProxyType({
    "*A100*80GB*": 3.5,
    "NVIDIA H100 *": 4.5,
    "NVIDIA H200": 6.0,
    "NVIDIA H200 *": 6.0,
    "NVIDIA L40S": 1.5,
    "NVIDIA GeForce RTX 4090": 0.8,
})  # fmt: skip
