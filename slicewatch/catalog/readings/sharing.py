"""What the exporter derives from processes: who used a device, and how much of it."""

import msgspec


class TenantUse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one tenant has of a device, or had. None is unknown.

    Attributes:
        busy_seconds_total: how long it kept the device busy, since it was first seen.
        foreign_busy_seconds_total: how long other tenants did while it was there.
        busy_ratio: its share of the device's time in the window, 0 to 1.
        contention_ratio: see the concept page; 0 to 1.
        memory_used_bytes: what its processes hold.
        memory_total_bytes: of the device.
        processes: how many of its processes hold a context.
    """

    busy_seconds_total: float | None = None
    foreign_busy_seconds_total: float | None = None
    busy_ratio: float | None = None
    contention_ratio: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: float | None = None
    processes: int | None = None

    def memory_percent(self) -> float | None:
        """Return the memory that it holds as a percentage of the device's."""
        if self.memory_used_bytes is None or not self.memory_total_bytes:
            return None
        return 100 * self.memory_used_bytes / self.memory_total_bytes


class DeviceUse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a device is shared. None is unknown.

    Attributes:
        contention_ratio, unattributed_busy_ratio: over the contention window, 0 to 1.
        contended_seconds_total: time with several active tenants on a saturated device.
        sampled_seconds_total: time that the samples of processes covered.
        tenants_allocated: containers that hold the device.
        tenants_active: containers, and the host, whose processes hold a context on it.
        replicas: as how many devices the device plugin offers it.
    """

    contention_ratio: float | None = None
    unattributed_busy_ratio: float | None = None
    contended_seconds_total: float | None = None
    sampled_seconds_total: float | None = None
    tenants_allocated: int | None = None
    tenants_active: int | None = None
    replicas: int | None = None
