"""What an hour of a GPU costs where nobody says otherwise, by patterns of NVML's model names.

Rounded list prices of clouds for an hour on demand, in US dollars. Whoever pays others sets them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

DOLLARS_PER_HOUR: Final[Mapping[str, float]] = MappingProxyType({
    "*A100*80GB*": 3.5,
    "*H100*": 4.5,
    "*H200*": 6.0,
    "*L40S*": 1.5,
    "*RTX 4090*": 0.8,
})  # fmt: skip
