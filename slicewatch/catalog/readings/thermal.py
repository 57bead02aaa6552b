"""Heat beyond the temperature of the die: memory, margins, thresholds, fans.

Boards before Ada, and newer ones under older drivers, state thresholds as temperatures. Else they
are stated as margins (T.Limit): how far the die is from its maximum, below 0 for what lies beyond.
"""

import msgspec


class MemoryTemperature(msgspec.Struct, frozen=True, gc=False):
    """Temperature of the device memory."""

    celsius: int | None


class TemperatureMargin(msgspec.Struct, frozen=True, gc=False):
    """How far the GPU is from slowing down; below 0 once it is beyond."""

    celsius: int


class Thresholds(msgspec.Struct, frozen=True, gc=False):
    """What happens at which temperature, or margin; None for what a board does not state."""

    shutdown_celsius: int | None
    slowdown_celsius: int | None
    memory_max_celsius: int | None
    gpu_max_celsius: int | None


class Fans(msgspec.Struct, frozen=True, gc=False):
    """Intended speed of each fan by its index, as a percentage of the loudest that is tolerated.

    None for a fan that does not answer.
    """

    percents: tuple[int | None, ...]
