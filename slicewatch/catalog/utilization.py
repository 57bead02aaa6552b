"""How busy a GPU is, and its clock rates."""

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

# NVML reports neither samples nor rates for a MIG instance, nor for a GPU in MIG mode.
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
        help="Percentage of the window in which at least one kernel ran on the device.",
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
        help="Time during which at least one kernel ran on the device, summed over NVML's samples.",
        unit=Unit.SECONDS,
        value=lambda r: r.busy_seconds(),
        publish=Publish.ACCUMULATED,
    ),
    SM_CLOCK.gauge(
        "gpu_sm_clock_mhz",
        help="Current clock of the streaming multiprocessors.",
        unit=Unit.MEGAHERTZ,
        limits=MEGAHERTZ,
        value=lambda r: r.megahertz,
        stability=Stability.STABLE,
    ),
    MEMORY_CLOCK.gauge(
        "gpu_mem_clock_mhz",
        help="Current clock of the device memory.",
        unit=Unit.MEGAHERTZ,
        limits=MEGAHERTZ,
        value=lambda r: r.megahertz,
        stability=Stability.STABLE,
    ),
)
