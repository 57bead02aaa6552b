"""Polls the kubelet, so that the map of tenants stays true: PodResources has no watch."""

import asyncio
import contextlib
import time
from collections.abc import Callable

from exporter.tenants.protocol import PodResources, PodResourcesError
from exporter.tenants.tenants import TenantMap
from slicewatch.service import logs
from slicewatch.service.backoff import Backoff

log = logs.logger(__name__)

DEFAULT_INTERVAL_SECONDS = 5.0

# A kubelet that fails is asked less and less often, down to this.
LONGEST_PAUSE_SECONDS = 30.0

# What plugins offer changes with their configuration only.
OFFERS_SECONDS = 60.0

# Devices that change with every tick must not cause a question with every tick.
SHORTEST_PAUSE_SECONDS = 1.0


async def follow(
    source: PodResources,
    tenants: TenantMap,
    interval_seconds: float = DEFAULT_INTERVAL_SECONDS,
) -> None:
    """Keep ``tenants`` up to date until cancelled; failures are retried.

    Asks once per interval, and earlier when the devices change.

    Raises:
        ValueError: the interval is not above 0.
    """
    if not interval_seconds > 0:
        raise ValueError(
            f"the kubelet's polling interval must be above 0 seconds, not {interval_seconds:g}"
        )
    longest = max(interval_seconds, LONGEST_PAUSE_SECONDS)
    backoff = Backoff(first_seconds=interval_seconds, most_seconds=longest)
    failing = False
    offers_due_at = 0.0
    while True:
        tenants.devices_changed.clear()
        failing = not await refresh(source, tenants, time.monotonic, failing=failing)
        if failing:
            await asyncio.sleep(backoff.next_seconds())
        else:
            backoff.reset()
            if time.monotonic() >= offers_due_at:
                offers_due_at = time.monotonic() + OFFERS_SECONDS
                await refresh_offers(source, tenants)
            await _rest(interval_seconds, tenants.devices_changed)


async def refresh(
    source: PodResources,
    tenants: TenantMap,
    clock: Callable[[], float],
    *,
    failing: bool = False,
) -> bool:
    """Ask once and pass the answer to ``tenants``; return whether there was one.

    A failure leaves ``tenants`` as it is.

    Args:
        source: the kubelet.
        tenants: remembers the answer.
        clock: seconds that never go back; the answer is as old as the question.
        failing: the previous question failed: changes are logged as such, repeats at debug.
    """
    asked_at = clock()
    try:
        allocations = await source.list()
    except PodResourcesError as error:
        say = log.debug if failing else log.warning
        age = tenants.age_seconds(asked_at)
        say("the kubelet did not list device allocations", error=str(error), age_seconds=age)
        return False
    if failing:
        log.info("the kubelet lists device allocations again")
    tenants.take(allocations, asked_at)
    return True


async def refresh_offers(source: PodResources, tenants: TenantMap) -> None:
    """Ask once what the plugins offer; without an answer, what is known stays."""
    try:
        tenants.offers.take(await source.offers())
    except PodResourcesError as error:
        log.debug("the kubelet did not list allocatable devices", error=str(error))


async def _rest(seconds: float, interruption: asyncio.Event) -> None:
    shortest = min(seconds, SHORTEST_PAUSE_SECONDS)
    await asyncio.sleep(shortest)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds - shortest):
            await interruption.wait()
