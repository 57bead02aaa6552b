"""What a process that counts has used, per tick, and whether two of them made the same calls.

A tick looks up every GPU once: that tells how many there were.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from bench.errors import BenchError
from bench.processes import Child
from bench.programs.counting import Count

ATTEMPTS: Final = 20
_ONCE_A_GPU: Final = "nvmlDeviceGetHandleByIndex_v2"
# Calls of other threads, whatever the ticks do: they wait for events, and look for new GPUs. And
# room for samples, which both make once and then use again and again.
_BESIDES: Final = frozenset({
    "nvmlEventSetWait_v2", "nvmlDeviceGetCount_v2", "nvmlEventSetCreate",
    "nvmlDeviceRegisterEvents", "nvmlEventSetFree", "nvmlDeviceGetSupportedEventTypes",
    "nvmlGpmSampleAlloc", "nvmlGpmSampleFree",
})  # fmt: skip
# Called so many times a tick and GPU, or more. What is called less often counts in the sum only.
_OFTEN: Final = 0.9
_TOLERANCE_OF_ONE: Final = 0.1
_TOLERANCE: Final = 0.02


async def rest(child: Child) -> Count:
    """Wait until a child is between two ticks, and return what it has used since its start."""
    return msgspec.json.decode(await child.ask(), type=Count)


async def spent(child: Child, seconds: float, gpus: int) -> Count:
    """Return what a child uses in about so many seconds, whole ticks only.

    Raises:
        BenchError: it does not answer, or never between two ticks.
    """
    began = await rest(child)
    await asyncio.sleep(seconds)
    for _ in range(ATTEMPTS):
        used = _difference(await rest(child), began)
        # A tick that has to wait long for a core seems to be over when it is not.
        if used.calls.get(_ONCE_A_GPU, 0) % gpus == 0:
            return used
    raise BenchError(f"{child.name} is never between two ticks: the machine is too busy")


def _difference(later: Count, earlier: Count) -> Count:
    return Count(
        cpu_seconds=later.cpu_seconds - earlier.cpu_seconds,
        calls={
            name: made
            for name, total in later.calls.items()
            if (made := total - earlier.calls.get(name, 0))
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """What a tick took on average.

    Attributes:
        calls: by entry point; of those that are made now and then, a fraction.
    """

    cpu_seconds: float
    calls: dict[str, float]


def per_tick(used: Count, gpus: int) -> Tick:
    """Divide by the ticks.

    Raises:
        BenchError: there was none.
    """
    ticks = used.calls.get(_ONCE_A_GPU, 0) // gpus
    if not ticks:
        raise BenchError("no tick was over in time: the machine is too busy")
    calls = {name: made / ticks for name, made in used.calls.items() if name not in _BESIDES}
    return Tick(cpu_seconds=used.cpu_seconds / ticks, calls=calls)


def same_calls(pairs: Sequence[tuple[Tick, Tick]]) -> float:
    """Return how many calls a tick made, of ours and of the peer.

    Both have to call the same entry points, and as often. A round does not begin and end with what
    is read once a minute, so that there may be one such read more in it or less.

    Raises:
        BenchError: they made different ones.
    """
    ours, peer = (_mean([pair[side].calls for pair in pairs]) for side in (0, 1))
    unequal = [
        name
        for name in sorted({*ours, *peer})
        if (one := ours.get(name, 0.0)) != (other := peer.get(name, 0.0))
        and (max(one, other) >= _OFTEN * peer[_ONCE_A_GPU] or not min(one, other))
        and abs(one - other) > _TOLERANCE_OF_ONE * max(one, other)
    ]
    if unequal:
        named = (f"{n} {ours.get(n, 0):.2f} against {peer.get(n, 0):.2f}" for n in unequal)
        raise BenchError(f"ticks differ in their calls: {', '.join(named)}")
    if abs(sum(ours.values()) - sum(peer.values())) > _TOLERANCE * sum(peer.values()):
        raise BenchError(f"{sum(ours.values()):.1f} calls against {sum(peer.values()):.1f}")
    return sum(ours.values())


def _mean(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = {name for calls in found for name in calls}
    return {name: sum(calls.get(name, 0.0) for calls in found) / len(found) for name in names}
