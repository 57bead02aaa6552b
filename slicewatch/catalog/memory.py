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
from slicewatch.catalog.readings.memory import Bar1Memory, Memory

MEMORY: Final = Probe(
    name="memory",
    reading=Memory,
    scopes=frozenset({Scope.GPU, Scope.MIG}),
    consistent=lambda r: r.consistent(),
)
BAR1: Final = Probe(
    name="bar1_memory",
    reading=Bar1Memory,
    scopes=frozenset({Scope.GPU, Scope.MIG}),
    interval_seconds=10,
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
        windowed=True,
        stability=Stability.STABLE,
        serve=Serve(combine=Combine.SUM, attribution=Attribution.DEVICE),
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
    MEMORY.gauge(
        "gpu_memory_free_bytes",
        help="Device memory that is neither allocated nor reserved.",
        unit=Unit.BYTES,
        limits=BYTES,
        value=lambda r: r.free_bytes,
    ),
    MEMORY.gauge(
        "gpu_memory_reserved_bytes",
        help="Device memory that the driver and the firmware keep for themselves.",
        unit=Unit.BYTES,
        limits=BYTES,
        value=lambda r: r.reserved_bytes,
    ),
    BAR1.gauge(
        "gpu_bar1_memory_used_bytes",
        help="Mapped part of the window through which device memory is reached over PCIe.",
        unit=Unit.BYTES,
        limits=BYTES,
        value=lambda r: r.used_bytes,
    ),
    BAR1.gauge(
        "gpu_bar1_memory_total_bytes",
        help="Size of the window through which device memory is reached over PCIe.",
        unit=Unit.BYTES,
        limits=BYTES,
        value=lambda r: r.total_bytes,
    ),
)
