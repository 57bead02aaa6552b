"""How something that ails a GPU shows in what the exporter says of it. Pure.

Each function returns one that takes a GPU as it would be said to be, and how long it has been ill,
and returns it as it is said to be.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from slicewatch.catalog.clocks import CLOCK_EVENT_TIMES, CLOCK_EVENTS
from slicewatch.catalog.model import Probe
from slicewatch.catalog.readings.clocks import BITS, ClockEvent, ClockEvents, ClockEventTimes
from slicewatch.wire.evidence import Failed, Gpu, Lost, Unsupported, Value

Shows = Callable[[Gpu, float], Gpu]

SUPPORTED_EVENTS: Final = 0x1FF


def value(reading: msgspec.Struct, age_seconds: float = 0.5) -> Value:
    """Return what a read that worked is on the wire."""
    return Value(reading=msgspec.Raw(msgspec.json.encode(reading)), age_seconds=age_seconds)


def nothing(gpu: Gpu, _: float) -> Gpu:
    """Show nothing."""
    return gpu


def all_of(*shows: Shows) -> Shows:
    """Show several things at once."""

    def shown(gpu: Gpu, seconds: float) -> Gpu:
        for one in shows:
            gpu = one(gpu, seconds)
        return gpu

    return shown


def reads(probe: Probe[Any], reading: msgspec.Struct) -> Shows:
    """Read this, however long it has been."""
    said = value(reading)
    return lambda gpu, _: with_readings(gpu, {probe.name: said})


def refuses(probe: Probe[Any]) -> Shows:
    """Do not support a read, as older drivers."""
    said = Unsupported(reason="driver")
    return lambda gpu, _: with_readings(gpu, {probe.name: said})


def every_read_fails(error: str) -> Shows:
    """Answer each read with the same error."""
    return lambda gpu, _: with_readings(
        gpu, dict.fromkeys(gpu.readings, Failed(error=error, age_seconds=0.5))
    )


def answers_nothing(why: str) -> Shows:
    """Answer no call, in NVML's own word."""

    def shown(gpu: Gpu, seconds: float) -> Gpu:
        lost = Lost(reason=why, age_seconds=min(seconds, 1.0))
        return msgspec.structs.replace(
            gpu, silent=why, silent_seconds=seconds, readings=dict.fromkeys(gpu.readings, lost)
        )

    return shown


def hangs(call: str) -> Shows:
    """Stay in a call for ever; what was read before grows old."""

    def shown(gpu: Gpu, seconds: float) -> Gpu:
        return msgspec.structs.replace(
            _aged(gpu, seconds), silent="hang", silent_seconds=seconds,
            call=call, call_seconds=seconds,
        )  # fmt: skip

    return shown


def is_slow(call: str, longest_seconds: float) -> Shows:
    """Be in a call whenever somebody looks, never in one for longer than that."""

    def shown(gpu: Gpu, seconds: float) -> Gpu:
        # Polls are a minute apart: they meet calls of any age.
        inside = seconds * 0.37 % longest_seconds
        return msgspec.structs.replace(_aged(gpu, inside), call=call, call_seconds=inside)

    return shown


def is_held_down(event: ClockEvent, share: float = 1.0) -> Shows:
    """Have clocks held down for a reason, for that share of the time."""
    bits = value(ClockEvents(active_mask=BITS[event], supported_mask=SUPPORTED_EVENTS))
    field = f"{event}_nanoseconds"

    def shown(gpu: Gpu, seconds: float) -> Gpu:
        counted = value(ClockEventTimes(**{field: int(seconds * share * 1e9)}))
        return with_readings(gpu, {CLOCK_EVENTS.name: bits, CLOCK_EVENT_TIMES.name: counted})

    return shown


def now_and_then(shows: Shows, *, every_seconds: float, for_seconds: float) -> Shows:
    """Show it for a while, and again after a while."""
    return lambda gpu, seconds: (
        shows(gpu, seconds) if seconds % every_seconds < for_seconds else gpu
    )


def with_readings(gpu: Gpu, changed: dict[str, Any]) -> Gpu:
    """Return a GPU of which something else was read."""
    return msgspec.structs.replace(gpu, readings={**gpu.readings, **changed})


def _aged(gpu: Gpu, seconds: float) -> Gpu:
    old = {
        name: Value(reading=said.reading, age_seconds=said.age_seconds + seconds)
        if isinstance(said, Value)
        else said
        for name, said in gpu.readings.items()
    }
    return msgspec.structs.replace(gpu, readings=old)
