"""How busy a GPU is, and how fast it clocks."""

from typing import Final

from slicewatch.catalog.model import (
    MEGAHERTZ,
    PERCENT,
    Attribution,
    Combine,
    Probe,
    Publish,
    Scope,
    Serve,
    Stability,
    Unit,
)
from slicewatch.catalog.readings import Clock, Utilization

# NVML reports neither samples nor rates on a MIG instance, nor on a GPU while MIG is on.
UTILIZATION: Final = Probe(
    name="utilization",
    reading=Utilization,
    scopes=frozenset({Scope.GPU}),
    consistent=lambda r: r.consistent(),
)
SM_CLOCK: Final = Probe(name="sm_clock", reading=Clock, scopes=frozenset({Scope.GPU}))
MEMORY_CLOCK: Final = Probe(name="memory_clock", reading=Clock, scopes=frozenset({Scope.GPU}))

METRICS: Final = (
    UTILIZATION.gauge(
        "gpu_utilization",
        help="Share of the window in which at least one kernel ran on the device.",
        unit=Unit.PERCENT,
        limits=PERCENT,
        value=lambda r: r.percent(),
        weight=lambda r: r.covered_seconds() or None,
        publish=Publish.WINDOW_MEAN,
        stability=Stability.STABLE,
        serve=Serve(combine=Combine.MEAN, attribution=Attribution.WORKLOAD_SHARE),
    ),
    UTILIZATION.counter(
        "gpu_busy_seconds_total",
        help="Time in which at least one kernel ran on the device, summed over NVML's samples.",
        unit=Unit.SECONDS,
        value=lambda r: r.busy_seconds(),
        publish=Publish.ACCUMULATED,
    ),
    SM_CLOCK.gauge(
        "gpu_sm_clock_mhz",
        help="Present clock of the streaming multiprocessors.",
        unit=Unit.MEGAHERTZ,
        limits=MEGAHERTZ,
        value=lambda r: r.megahertz,
        stability=Stability.STABLE,
    ),
    MEMORY_CLOCK.gauge(
        "gpu_mem_clock_mhz",
        help="Present clock of the device memory.",
        unit=Unit.MEGAHERTZ,
        limits=MEGAHERTZ,
        value=lambda r: r.megahertz,
        stability=Stability.STABLE,
    ),
)
