"""Power, energy and temperature of a board. A MIG instance has none of its own."""

from typing import Final

from slicewatch.catalog.model import (
    CELSIUS,
    WATTS,
    Attribution,
    Combine,
    Label,
    Labelled,
    Probe,
    Scope,
    Serve,
    Stability,
    Unit,
)
from slicewatch.catalog.readings.power import (
    Energy,
    Power,
    PowerDraw,
    PowerLimits,
    Temperature,
)

BOARD: Final = frozenset({Scope.GPU})

POWER: Final = Probe(name="power", reading=Power, scopes=BOARD)
POWER_DRAW: Final = Probe(name="power_draw", reading=PowerDraw, scopes=BOARD)
POWER_LIMITS: Final = Probe(
    name="power_limits", reading=PowerLimits, scopes=BOARD, interval_seconds=60
)
ENERGY: Final = Probe(name="energy", reading=Energy, scopes=BOARD)
TEMPERATURE: Final = Probe(name="temperature", reading=Temperature, scopes=BOARD)


def _limits(reading: PowerLimits) -> Labelled:
    return {
        "enforced": _watts(reading.enforced_milliwatts),
        "management": _watts(reading.management_milliwatts),
        "default": _watts(reading.default_milliwatts),
        "min": _watts(reading.min_milliwatts),
        "max": _watts(reading.max_milliwatts),
    }


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


METRICS: Final = (
    POWER.gauge(
        "gpu_power_usage_watts",
        help="Power draw of the whole board: the mean of 1 s from GA10x on, momentary on older chips and GA100.",
        unit=Unit.WATTS,
        limits=WATTS,
        value=lambda r: r.draw_milliwatts / 1000,
        windowed=True,
        stability=Stability.STABLE,
        serve=Serve(combine=Combine.SUM, attribution=Attribution.OWN_PART),
    ),
    POWER_DRAW.gauge(
        "gpu_power_instant_watts",
        help="Power that the GPU draws at the moment of the read, on every chip.",
        unit=Unit.WATTS,
        limits=WATTS,
        value=lambda r: _watts(r.instant_milliwatts),
    ),
    POWER_DRAW.gauge(
        "gpu_power_average_watts",
        help="Mean power of the last second, absent on GA100 and on chips older than Ampere.",
        unit=Unit.WATTS,
        limits=WATTS,
        value=lambda r: _watts(r.average_milliwatts),
    ),
    POWER_LIMITS.gauge(
        "gpu_power_limit_watts",
        help="Power limit: enforced is the least of all that are set, management the one that was set through NVML.",
        unit=Unit.WATTS,
        limits=WATTS,
        labels=(Label.LIMIT,),
        value=_limits,
    ),
    ENERGY.counter(
        "gpu_energy_joules_total",
        help="Energy used by the board since the driver was loaded.",
        unit=Unit.JOULES,
        value=lambda r: r.used_millijoules / 1000,
    ),
    TEMPERATURE.gauge(
        "gpu_temperature_celsius",
        help="Temperature of the GPU die.",
        unit=Unit.CELSIUS,
        limits=CELSIUS,
        value=lambda r: r.celsius,
        stability=Stability.STABLE,
    ),
)
