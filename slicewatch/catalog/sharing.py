"""Who uses a shared device, how much, and how far they are in each other's way.

The numbers are explained in ``docs/concepts/contention.md`` and ``docs/concepts/attribution.md``.
"""

from typing import Final

from slicewatch.catalog.gpm import GPM
from slicewatch.catalog.model import (
    BYTES,
    COUNT,
    PERCENT,
    RATIO,
    Attribution,
    Combine,
    Derived,
    Object,
    Scope,
    Serve,
    Unit,
)
from slicewatch.catalog.processes import PROCESS_UTILIZATION, PROCESSES
from slicewatch.catalog.readings.sharing import DeviceUse, TenantUse

TENANT_USE: Final = Derived(
    name="tenant_use",
    reading=TenantUse,
    scopes=frozenset({Scope.TENANT}),
    reads=(PROCESSES, PROCESS_UTILIZATION),
)
DEVICE_USE: Final = Derived(
    name="device_use",
    reading=DeviceUse,
    scopes=frozenset({Scope.GPU, Scope.MIG}),
    reads=(PROCESSES, PROCESS_UTILIZATION),
)
AT_ONCE: Final = Derived(
    name="at_once",
    reading=float,
    scopes=frozenset({Scope.GPU, Scope.MIG}),
    reads=(PROCESSES, GPM),
)

# How long contention is looked at, by default and as the numbers in its documentation assume.
CONTENTION_SECONDS: Final = 60.0

PRESSURE: Final = AT_ONCE.gauge(
    "gpu_pressure_ratio",
    help="How busy SMs or memory are, whichever is more, while tenants use them at the same time.",
    unit=Unit.RATIO,
    limits=RATIO,
    value=float,
    serve=Serve(combine=Combine.MAX, attribution=Attribution.DEVICE),
)

OF_TENANTS: Final = (
    TENANT_USE.counter(
        "gpu_tenant_busy_seconds_total",
        help="Time for which the container kept the device busy, estimated from NVML's samples.",
        unit=Unit.SECONDS,
        value=lambda use: use.busy_seconds_total,
    ),
    TENANT_USE.counter(
        "gpu_tenant_foreign_busy_seconds_total",
        help="Time for which others kept the device busy while the container held it.",
        unit=Unit.SECONDS,
        value=lambda use: use.foreign_busy_seconds_total,
    ),
    TENANT_USE.gauge(
        "gpu_tenant_busy_ratio",
        help="Share of the window for which the container kept the device busy.",
        unit=Unit.RATIO,
        limits=RATIO,
        value=lambda use: use.busy_ratio,
        serve=Serve(
            combine=Combine.MEAN,
            attribution=Attribution.OWN_PART,
            objects=frozenset({Object.POD}),
        ),
    ),
    TENANT_USE.gauge(
        "gpu_tenant_contention_ratio",
        help="Share of the contention window in which the container may have found the device taken.",
        unit=Unit.RATIO,
        limits=RATIO,
        value=lambda use: use.contention_ratio,
        serve=Serve(
            combine=Combine.MAX,
            attribution=Attribution.OWN_PART,
            objects=frozenset({Object.POD}),
            window_seconds=CONTENTION_SECONDS,
        ),
    ),
    TENANT_USE.gauge(
        "gpu_tenant_memory_used_bytes",
        help="Device memory that the container's processes hold.",
        unit=Unit.BYTES,
        limits=BYTES,
        value=lambda use: use.memory_used_bytes,
    ),
    TENANT_USE.gauge(
        "gpu_tenant_memory_utilization",
        help="Device memory that the container's processes hold, as a percentage of the device's.",
        unit=Unit.PERCENT,
        limits=PERCENT,
        value=lambda use: use.memory_percent(),
    ),
    TENANT_USE.gauge(
        "gpu_tenant_processes",
        help="Processes of the container that hold a context on the device.",
        unit=Unit.NONE,
        limits=COUNT,
        value=lambda use: use.processes,
    ),
)
OF_DEVICES: Final = (
    DEVICE_USE.gauge(
        "gpu_contention_ratio",
        help="Mean, over the device's busy time, of the share of the window in which others had it.",
        unit=Unit.RATIO,
        limits=RATIO,
        value=lambda use: use.contention_ratio,
        serve=Serve(
            combine=Combine.MAX,
            attribution=Attribution.DEVICE,
            objects=frozenset({Object.NODE, Object.NAMESPACE}),
            window_seconds=CONTENTION_SECONDS,
        ),
    ),
    DEVICE_USE.counter(
        "gpu_contended_seconds_total",
        help="Time with several active tenants while the device was at least 95 percent busy.",
        unit=Unit.SECONDS,
        value=lambda use: use.contended_seconds_total,
    ),
    DEVICE_USE.counter(
        "gpu_sampled_seconds_total",
        help="Time that samples of processes covered: what contended time is a share of.",
        unit=Unit.SECONDS,
        value=lambda use: use.sampled_seconds_total,
    ),
    DEVICE_USE.gauge(
        "gpu_unattributed_busy_ratio",
        help="Share of the window in which the device worked for processes of unknown tenants.",
        unit=Unit.RATIO,
        limits=RATIO,
        value=lambda use: use.unattributed_busy_ratio,
    ),
    DEVICE_USE.gauge(
        "gpu_tenants_allocated",
        help="Containers to which the device, or a replica of it, is allocated.",
        unit=Unit.NONE,
        limits=COUNT,
        value=lambda use: use.tenants_allocated,
    ),
    DEVICE_USE.gauge(
        "gpu_tenants_active",
        help="Containers whose processes hold a context on the device, and the host as one.",
        unit=Unit.NONE,
        limits=COUNT,
        value=lambda use: use.tenants_active,
    ),
    DEVICE_USE.gauge(
        "gpu_sharing_replicas",
        help="As how many devices the device plugin offers the device; the oversubscription factor.",
        unit=Unit.NONE,
        limits=COUNT,
        value=lambda use: use.replicas,
    ),
)
METRICS: Final = (*OF_TENANTS, *OF_DEVICES, PRESSURE)
