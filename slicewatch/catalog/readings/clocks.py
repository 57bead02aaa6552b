"""Clock rates, and what holds them down."""

from enum import StrEnum
from typing import Final

import msgspec


class Clock(msgspec.Struct, frozen=True, gc=False):
    """Current frequency of one clock domain."""

    megahertz: int


class MaxClocks(msgspec.Struct, frozen=True, gc=False):
    """Highest frequency of each clock domain; None for one that the board does not state."""

    graphics_megahertz: int | None
    sm_megahertz: int | None
    memory_megahertz: int | None
    video_megahertz: int | None


class PerformanceState(msgspec.Struct, frozen=True, gc=False):
    """P-state: 0 is the fastest, 15 the slowest, 32 unknown."""

    number: int


class ClockEvent(StrEnum):
    """Why clocks are below their highest; the value is a label."""

    IDLE = "idle"
    APPLICATIONS_CLOCKS = "applications_clocks"
    SW_POWER_CAP = "sw_power_cap"
    HW_SLOWDOWN = "hw_slowdown"
    SYNC_BOOST = "sync_boost"
    SW_THERMAL_SLOWDOWN = "sw_thermal_slowdown"
    HW_THERMAL_SLOWDOWN = "hw_thermal_slowdown"
    HW_POWER_BRAKE = "hw_power_brake"
    DISPLAY_CLOCKS = "display_clocks"
    BOARD_LIMIT = "board_limit"
    RELIABILITY = "reliability"


# In the order of the bits of nvmlClocksEventReasons, from the lowest.
BITS: Final = {event: 1 << position for position, event in enumerate(ClockEvent)}


class ClockEvents(msgspec.Struct, frozen=True, gc=False):
    """Bit masks of the reasons that hold the clocks down, and of those that a board can have.

    ``supported_mask`` is None where only the former is told, as in virtual machines.
    """

    active_mask: int
    supported_mask: int | None

    def consistent(self) -> bool:
        """Tell whether the masks are no word for "not available" of either width."""
        words = {2**32 - 1, 2**64 - 1}
        return self.active_mask not in words and self.supported_mask not in words

    def active(self) -> dict[str, float]:
        """Return 1 per reason that is active, 0 per other one that the board can have."""
        known = self.active_mask | (self.supported_mask or 0)
        return {
            event: float(bool(self.active_mask & bit))
            for event, bit in BITS.items()
            if known & bit
        }


class ClockEventTimes(msgspec.Struct, frozen=True, gc=False):
    """How long each reason held the clocks down, by NVML's counters; None: not counted.

    The header does not say since when. In the field of a reason stands what was counted for it.
    """

    sw_power_cap_nanoseconds: int | None = None
    sync_boost_nanoseconds: int | None = None
    sw_thermal_slowdown_nanoseconds: int | None = None
    hw_thermal_slowdown_nanoseconds: int | None = None
    hw_power_brake_nanoseconds: int | None = None
    board_limit_nanoseconds: int | None = None
    reliability_nanoseconds: int | None = None
