"""How warm the parts of a simulated board are, and how fast its fans turn. Pure.

All of it follows from the temperature of the die, so that it never contradicts it: the memory is
a little warmer, the fans are silent at the inlet's temperature and at full speed at the maximum.
"""

from typing import Final

from slicewatch.catalog.readings.clocks import ClockEvent
from slicewatch.hardware import BoardLimits, GpuModel

MEMORY_RISE_CELSIUS: Final = 6
INLET_CELSIUS: Final = 27


def least_celsius(limits: BoardLimits, slowdowns: frozenset[str]) -> int:
    """Return how warm the die is at least while these hold the clocks down."""
    if ClockEvent.HW_THERMAL_SLOWDOWN in slowdowns:
        return limits.slowdown_celsius
    return limits.gpu_max_celsius if ClockEvent.SW_THERMAL_SLOWDOWN in slowdowns else 0


def memory_celsius(limits: BoardLimits, die_celsius: int) -> int | None:
    """Return the temperature of the memory; None where it is not measured."""
    return None if limits.memory_max_celsius is None else die_celsius + MEMORY_RISE_CELSIUS


def margin_celsius(model: GpuModel, die_celsius: int) -> int | None:
    """Return how far the die is from its maximum; None on boards that state no margins."""
    return model.limits.gpu_max_celsius - die_celsius if model.states_margins else None


def thresholds(limits: BoardLimits) -> tuple[int, int, int | None, int]:
    """Return when the board turns off, slows down, finds its memory too warm, and the die."""
    return (
        limits.shutdown_celsius,
        limits.slowdown_celsius,
        limits.memory_max_celsius,
        limits.gpu_max_celsius,
    )


def margin_thresholds(limits: BoardLimits) -> tuple[int, int, int | None, int]:
    """Return the same as margins: of the memory its own, of the die that to its maximum."""
    most = limits.gpu_max_celsius
    memory = None if limits.memory_max_celsius is None else 0
    return (most - limits.shutdown_celsius, most - limits.slowdown_celsius, memory, 0)


def fan_percents(limits: BoardLimits, die_celsius: int) -> tuple[int, ...]:
    """Return the speed of each fan; beyond the maximum of the die, it is above 100."""
    span = limits.gpu_max_celsius - INLET_CELSIUS
    percent = max(0, round(100 * (die_celsius - INLET_CELSIUS) / span))
    return (percent,) * limits.fans
