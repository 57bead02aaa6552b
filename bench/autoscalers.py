"""Autoscalers that ask in the rhythm of their controller, rather than as fast as they are answered.

Each asks about pods of its own, and all begin at moments of their own, spread evenly: what is
shared between those who ask at the same moment is shared least then.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bench.load import Timing

Ask = Callable[[int], Awaitable[object]]

_MILLISECONDS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """How often autoscalers ask.

    Attributes:
        every_seconds: from one question of an autoscaler to its next.
        rounds: questions of each.
    """

    autoscalers: int
    every_seconds: float
    rounds: int

    @property
    def questions(self) -> int:
        """How many there are in all."""
        return self.autoscalers * self.rounds

    def moments(self, number: int) -> list[float]:
        """Return when an autoscaler asks, in seconds since the begin."""
        first = number / self.autoscalers * self.every_seconds
        return [first + turn * self.every_seconds for turn in range(self.rounds)]


async def played(rhythm: Rhythm, ask: Ask) -> Timing:
    """Let all ask in their rhythm.

    Args:
        rhythm: when each asks.
        ask: asks the question of an autoscaler, by its number, and raises if it gets no answer.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def autoscaler(number: int) -> list[float]:
        took = []
        for moment in rhythm.moments(number):
            await asyncio.sleep(began + moment - loop.time())
            asked = loop.time()
            await ask(number)
            took.append(loop.time() - asked)
        return took

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(autoscaler(number), name=f"autoscaler-{number}")
            for number in range(rhythm.autoscalers)
        ]
    return timing([one for task in tasks for one in task.result()], loop.time() - began)


def timing(seconds: Sequence[float], over: float) -> Timing:
    """Return the percentiles of times, each of them one that was measured.

    Args:
        seconds: one for each question; at least one.
        over: how long all of it took.
    """
    ordered = sorted(seconds)

    def percentile(share: float) -> float:
        return _MILLISECONDS * ordered[math.ceil(share * len(ordered)) - 1]

    return Timing(p50=percentile(0.5), p99=percentile(0.99), per_second=len(ordered) / over)
