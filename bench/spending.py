"""What a process that counts has used, per tick, and whether two of them made the same calls.

A tick looks up every GPU once: that tells how many there were.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from bench.errors import BenchError
from bench.processes import Child
from bench.programs.counting import Count

ATTEMPTS: Final = 20
_ONCE_A_GPU: Final = "nvmlDeviceGetHandleByIndex_v2"


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


def per_tick(used: Count, gpus: int) -> Count:
    """Divide by the ticks.

    Raises:
        BenchError: there was none, or they did not all make the same calls.
    """
    ticks = used.calls.get(_ONCE_A_GPU, 0) // gpus
    if not ticks:
        raise BenchError("no tick was over in time: the machine is too busy")
    return Count(
        cpu_seconds=used.cpu_seconds / ticks,
        calls={name: _whole(name, made, ticks) for name, made in used.calls.items()},
    )


def _whole(name: str, made: int, ticks: int) -> int:
    if made % ticks:
        raise BenchError(f"{made} calls of {name} in {ticks} ticks: not every tick made the same")
    return made // ticks


def same_calls(pairs: Sequence[tuple[Count, Count]]) -> int:
    """Return how many calls a tick made, of ours and of the peer.

    Raises:
        BenchError: ticks of the two made different ones.
    """
    first = pairs[0][0].calls
    for ours, peer in pairs:
        for calls in (ours.calls, peer.calls):
            if calls != first:
                raise BenchError(f"ticks differ in their calls: {_unequal(calls, first)}")
    return sum(first.values())


def _unequal(one: Mapping[str, int], other: Mapping[str, int]) -> str:
    names = [name for name in {*one, *other} if one.get(name) != other.get(name)]
    return ", ".join(f"{n} {one.get(n, 0)} against {other.get(n, 0)}" for n in sorted(names))
