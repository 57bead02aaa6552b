"""Asking the kubelet again and again, so that the map of tenants stays true.

It is asked and not watched, since PodResources has no watch.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Callable

import structlog

from exporter.tenants.protocol import PodResources, PodResourcesError
from exporter.tenants.tenants import TenantMap

log = structlog.get_logger(__name__)

DEFAULT_INTERVAL_SECONDS = 5.0

# A kubelet that fails is asked ever more rarely, up to this.
LONGEST_PAUSE_SECONDS = 30.0

# Devices that change with every tick must not make us ask with every tick.
SHORTEST_PAUSE_SECONDS = 1.0

# The share of a pause by which it may be shorter or longer.
JITTER = 0.1


async def follow(
    source: PodResources,
    tenants: TenantMap,
    interval_seconds: float = DEFAULT_INTERVAL_SECONDS,
) -> None:
    """Keep ``tenants`` up to date until cancelled; a source that fails is asked again.

    Asks every interval, and before its end when the devices change.

    Raises:
        ValueError: the interval is no time.
    """
    if not interval_seconds > 0:
        raise ValueError(
            f"the kubelet must be asked every so many seconds, not {interval_seconds:g}"
        )
    failures = 0
    while True:
        tenants.devices_changed.clear()
        answered = await refresh(source, tenants, time.monotonic, failing=failures > 0)
        failures = 0 if answered else failures + 1
        seconds = pause_seconds(interval_seconds, failures, random.random())  # noqa: S311 - jitter
        await _rest(seconds, tenants.devices_changed if answered else None)


async def refresh(
    source: PodResources,
    tenants: TenantMap,
    clock: Callable[[], float],
    *,
    failing: bool = False,
) -> bool:
    """Ask once and hand the answer to ``tenants``; return whether there was one.

    A failure leaves ``tenants`` as it is.

    Args:
        source: who is asked.
        tenants: what remembers the answer.
        clock: seconds that never go back; the answer is as old as the question.
        failing: the question before this one failed: a change is said aloud, a repetition is not.
    """
    asked_at = clock()
    try:
        allocations = await source.list()
    except PodResourcesError as error:
        say = log.debug if failing else log.warning
        age = tenants.age_seconds(asked_at)
        say("the kubelet does not say who holds which device", error=str(error), age_seconds=age)
        return False
    if failing:
        log.info("the kubelet says again who holds which device")
    tenants.take(allocations, asked_at)
    return True


def pause_seconds(interval_seconds: float, failures: int, chance: float) -> float:
    """Return how long to wait before the next question.

    Args:
        interval_seconds: the pause after an answer.
        failures: how many questions in a row have failed; each doubles the pause, which ends at
            ``LONGEST_PAUSE_SECONDS`` or at the interval if that is longer.
        chance: from 0 to 1, spreads the result by ``JITTER`` to both sides.
    """
    longest = max(interval_seconds, LONGEST_PAUSE_SECONDS)
    # The bound on the exponent keeps an outage of days from overflowing.
    pause = min(longest, interval_seconds * 2.0 ** min(max(failures - 1, 0), 32))
    return pause * (1 + JITTER * (2 * chance - 1))


async def _rest(seconds: float, interruption: asyncio.Event | None) -> None:
    if interruption is None or seconds <= SHORTEST_PAUSE_SECONDS:
        await asyncio.sleep(seconds)
        return
    await asyncio.sleep(SHORTEST_PAUSE_SECONDS)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds - SHORTEST_PAUSE_SECONDS):
            await interruption.wait()
