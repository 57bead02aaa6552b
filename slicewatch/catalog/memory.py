"""Device memory, of whole GPUs and of MIG instances."""

from typing import Final

from slicewatch.catalog.model import (
    BYTES,
    PERCENT,
    Attribution,
    Combine,
    Probe,
    Scope,
    Serve,
    Stability,
    Unit,
)
from slicewatch.catalog.readings import Memory

MEMORY: Final = Probe(
    name="memory",
    reading=Memory,
    scopes=frozenset({Scope.GPU, Scope.MIG}),
    consistent=lambda r: r.consistent(),
)

METRICS: Final = (
    MEMORY.gauge(
        "gpu_memory_used_bytes",
        help="Allocated device memory, excluding what the driver reserves for itself.",
        unit=Unit.BYTES,
        limits=BYTES,
        value=lambda r: r.used_bytes,
        windowed=True,
        stability=Stability.STABLE,
        serve=Serve(combine=Combine.SUM, attribution=Attribution.OWN_PART),
    ),
    MEMORY.gauge(
        "gpu_memory_total_bytes",
        help="Total device memory, or the share assigned to the MIG instance.",
        unit=Unit.BYTES,
        limits=BYTES,
        value=lambda r: r.total_bytes,
        stability=Stability.STABLE,
    ),
    MEMORY.gauge(
        "gpu_memory_utilization",
        help="Allocated device memory as a percentage of the total.",
        unit=Unit.PERCENT,
        limits=PERCENT,
        value=lambda r: 100 * r.used_bytes / r.total_bytes,
        windowed=True,
        stability=Stability.STABLE,
        serve=Serve(combine=Combine.MEAN, attribution=Attribution.OWN_PART),
    ),
)
