"""Power, energy and temperature of a board. A MIG instance has none of its own."""

from typing import Final

from slicewatch.catalog.model import (
    CELSIUS,
    WATTS,
    Attribution,
    Combine,
    Probe,
    Scope,
    Serve,
    Stability,
    Unit,
)
from slicewatch.catalog.readings import Energy, Power, Temperature

POWER: Final = Probe(name="power", reading=Power, scopes=frozenset({Scope.GPU}))
ENERGY: Final = Probe(name="energy", reading=Energy, scopes=frozenset({Scope.GPU}))
TEMPERATURE: Final = Probe(name="temperature", reading=Temperature, scopes=frozenset({Scope.GPU}))

METRICS: Final = (
    POWER.gauge(
        "gpu_power_usage_watts",
        help="Power draw of the whole board.",
        unit=Unit.WATTS,
        limits=WATTS,
        value=lambda r: r.draw_milliwatts / 1000,
        windowed=True,
        stability=Stability.STABLE,
        serve=Serve(combine=Combine.SUM, attribution=Attribution.OWN_PART),
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
