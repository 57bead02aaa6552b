"""Who used a device over the last seconds and since the start: totals, shares, contention.

One ``Sharing`` per device takes one tick after the other. Time that no sample covers is unknown
and stays out of every sum; it is never taken for idle time. Where too little is known there is
no value. Which process belongs to whom, and whether it may be asked at all, is decided before.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from math import inf
from typing import Final, NamedTuple

import msgspec

from exporter.measure import contention
from exporter.measure.contention import LEAST_COVERED_RATIO, MOST_UNATTRIBUTED_RATIO
from slicewatch.catalog.readings.sharing import TenantUse

TenantKey = tuple[str, str, str]
"""Namespace, pod and container."""

HOST: Final[TenantKey] = ("", "", "")
"""All processes outside of any pod: one tenant, so that a job of the host is seen as contention."""

_US: Final = 1_000_000


class DeviceSharing(msgspec.Struct, frozen=True, kw_only=True):
    """How a device was shared.

    Attributes:
        tenants: those named in the long window, also while they are idle: their times and ratios.
        contention_ratio: ``contention.device_ratio`` over the long window; None if unknown.
        unattributed_busy_ratio: share of the long window in which the device worked for nobody
            known; None if unknown.
        covered_seconds: how much of the long window is known.
        contended_seconds_total: ``contention.is_contended``, judged tick by tick; None as long as
            nothing was ever known.
        covered_seconds_total: how much time is known since the start.
    """

    tenants: dict[TenantKey, TenantUse]
    contention_ratio: float | None
    unattributed_busy_ratio: float | None
    covered_seconds: float
    contended_seconds_total: float | None
    covered_seconds_total: float


class _Tenant:
    """Sums of one tenant, in microseconds, and how many processes it had at once.

    Attributes:
        long_us, short_us: busy time within the windows.
        named_at: when a tick last named it.
    """

    __slots__ = ("_several", "busy_us", "foreign_us", "long_us", "named_at", "short_us")

    def __init__(self) -> None:
        self.busy_us = 0
        self.foreign_us = 0
        self.long_us = 0
        self.short_us = 0
        self.named_at = 0.0
        # Ticks of the long window by number of processes. One is the rule and not noted.
        self._several: dict[int, int] = {}

    def enter(self, busy_us: int, processes: int) -> None:
        """Count a tick in which the tenant was busy."""
        self.busy_us += busy_us
        self.long_us += busy_us
        self.short_us += busy_us
        if processes > 1:
            self._several[processes] = self._several.get(processes, 0) + 1

    def leave(self, busy_us: int, processes: int) -> None:
        """Take a tick out of the long window."""
        self.long_us -= busy_us
        if processes > 1:
            self._several[processes] -= 1
            if not self._several[processes]:
                del self._several[processes]

    def processes(self) -> int:
        """Return how many were active at once: two in turn are one competitor, not two."""
        if self._several:
            return max(self._several)
        return 1 if self.long_us else 0


_Active = list[tuple[_Tenant, int, int]]
"""The tenants that were busy in a tick, busy microseconds, active processes."""


class _Tick(NamedTuple):
    at: float
    covered_us: int
    unattributed_us: int
    active: _Active


class _Window:
    """The ticks of the last seconds, and how much is known of them."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.covered_us = 0
        self.unattributed_us = 0
        self._ticks: deque[_Tick] = deque()

    def add(self, tick: _Tick) -> None:
        self._ticks.append(tick)
        self.covered_us += tick.covered_us
        self.unattributed_us += tick.unattributed_us

    def advance(self, now: float) -> Iterator[_Tick]:
        """Take out the ticks that are too old, one after the other."""
        while self._ticks and self._ticks[0].at <= now - self.seconds:
            tick = self._ticks.popleft()
            self.covered_us -= tick.covered_us
            self.unattributed_us -= tick.unattributed_us
            yield tick

    def is_covered(self) -> bool:
        """Tell whether enough of the window is known to say anything."""
        return self.covered_us >= LEAST_COVERED_RATIO * self.seconds * _US

    def is_known(self) -> bool:
        """Tell whether it is also known well enough whose time it was."""
        limit_us = MOST_UNATTRIBUTED_RATIO * self.covered_us
        return self.is_covered() and self.unattributed_us <= limit_us


class Sharing:
    """The sharing of one device. Times are monotonic seconds and never go back.

    A tenant is remembered, with its totals, until no tick of the long window names it: one that
    comes back sooner goes on counting, and pods that have gone take no memory.

    Args:
        window_seconds: length of the long window, of contention.
        short_window_seconds: length of the short one, of busy shares.
    """

    def __init__(
        self, *, window_seconds: float = 60.0, short_window_seconds: float = 15.0
    ) -> None:
        self._long = _Window(window_seconds)
        self._short = _Window(short_window_seconds)
        self._tenants: dict[TenantKey, _Tenant] = {}
        self._covered_us = 0
        self._contended_us = 0

    def take(
        self,
        at: float,
        covered_seconds: float,
        tenants: Mapping[TenantKey, tuple[float, int]],
        unattributed_busy_seconds: float = 0.0,
    ) -> None:
        """Take what the samples since the last tick say.

        Args:
            at: when the tick was.
            covered_seconds: the time that the samples describe; 0 if there is no telling, as when
                a read failed or processes cannot be seen from this PID namespace.
            tenants: busy seconds and active processes of every tenant of the device, (0, 0) for
                one that was idle.
            unattributed_busy_seconds: of processes whose tenant is not known.

        Raises:
            ValueError: a time is negative or not a number.
        """
        covered_us = _microseconds(covered_seconds, "covered time")
        # All of it before anything is counted: half a tick would break the sums.
        parts = [
            _microseconds(unattributed_busy_seconds, "unattributed busy time"),
            *[_microseconds(seconds, key) for key, (seconds, _) in tenants.items()],
        ]
        unattributed_us, *busy_us = _fitted(parts, covered_us)
        attributed_us = sum(busy_us)
        active = self._name(at, tenants, busy_us, attributed_us, is_known=covered_us > 0)
        self._count(_Tick(at, covered_us, unattributed_us, active), attributed_us)
        self._advance(at)
        self._forget(at - self._long.seconds)

    def state(self, now: float) -> DeviceSharing:
        """Return the totals, and the ratios over the windows that end now."""
        self._advance(now)
        window = self._long
        busy_us = [tenant.long_us for tenant in self._tenants.values()]
        return DeviceSharing(
            tenants=self._tenant_states(sum(busy_us)),
            contention_ratio=contention.device_ratio(busy_us, window.covered_us)
            if window.is_known()
            else None,
            unattributed_busy_ratio=window.unattributed_us / window.covered_us
            if window.is_covered()
            else None,
            covered_seconds=window.covered_us / _US,
            contended_seconds_total=self._contended_us / _US if self._covered_us else None,
            covered_seconds_total=self._covered_us / _US,
        )

    def _name(
        self,
        at: float,
        tenants: Mapping[TenantKey, tuple[float, int]],
        busy_us: list[int],
        attributed_us: int,
        *,
        is_known: bool,
    ) -> _Active:
        """Note who is there; return those that were busy.

        A tenant has no totals before something is known of its time.
        """
        active: _Active = []
        for (key, (_, processes)), own_us in zip(tenants.items(), busy_us, strict=True):
            tenant = self._tenants.get(key)
            if tenant is None:
                if not is_known:
                    continue
                tenant = self._tenants[key] = _Tenant()
            tenant.named_at = at
            tenant.foreign_us += attributed_us - own_us
            if own_us:
                active.append((tenant, own_us, processes))
        return active

    def _count(self, tick: _Tick, attributed_us: int) -> None:
        self._long.add(tick)
        self._short.add(tick)
        self._covered_us += tick.covered_us
        busy_us = attributed_us + tick.unattributed_us
        if contention.is_contended(len(tick.active), busy_us, tick.covered_us):
            self._contended_us += tick.covered_us
        for tenant, own_us, processes in tick.active:
            tenant.enter(own_us, processes)

    def _advance(self, now: float) -> None:
        for tick in self._short.advance(now):
            for tenant, busy_us, _ in tick.active:
                tenant.short_us -= busy_us
        for tick in self._long.advance(now):
            for tenant, busy_us, processes in tick.active:
                tenant.leave(busy_us, processes)

    def _forget(self, until: float) -> None:
        gone = [key for key, tenant in self._tenants.items() if tenant.named_at <= until]
        for key in gone:
            del self._tenants[key]

    def _tenant_states(self, all_us: int) -> dict[TenantKey, TenantUse]:
        known, short_known = self._long.is_known(), self._short.is_known()
        covered_us, short_us = self._long.covered_us, self._short.covered_us
        processes = [tenant.processes() for tenant in self._tenants.values()]
        all_processes = sum(processes)
        return {
            key: TenantUse(
                busy_seconds_total=tenant.busy_us / _US,
                foreign_busy_seconds_total=tenant.foreign_us / _US,
                busy_ratio=tenant.short_us / short_us if short_known else None,
                contention_ratio=contention.tenant_ratio(
                    tenant.long_us, all_us, covered_us, own_processes, all_processes
                )
                if known
                else None,
            )
            for (key, tenant), own_processes in zip(self._tenants.items(), processes, strict=True)
        }


def _fitted(parts_us: list[int], whole_us: int) -> list[int]:
    """Scale parts down until they fit into the whole; rounded down, so that they surely do."""
    sum_us = sum(parts_us)
    if sum_us <= whole_us:
        return parts_us
    return [part_us * whole_us // sum_us for part_us in parts_us]


def _microseconds(seconds: float, of: object) -> int:
    if not 0.0 <= seconds < inf:
        raise ValueError(f"{of}: {seconds} s cannot be a time, pass a number of at least 0")
    return round(seconds * _US)
