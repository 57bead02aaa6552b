"""When the garbage collector may stop everything: once in a while, for what has come since.

Left to itself it walks over all objects of the process, of which there are a million on a cluster
of thousands of nodes, and over the new ones several times a second, since every line from an
exporter replaces some. Next to none of them are in cycles, so that it hardly ever finds anything.
So it works when it is told to, and what it has seen once is set aside.
"""

import asyncio
import gc
from typing import Final

# Cycles that nobody uses any more take memory for up to so long.
SECONDS: Final = 15.0
# What was set aside and has ended up in a cycle is found once an hour.
ALL_SECONDS: Final = 3600.0
# Sooner, after so many new objects: a long list of pods, looked at in pieces of 50 ms.
MOST_NEW: Final = 75_000
LOOK_SECONDS: Final = 0.5


async def run() -> None:
    """Collect what has come since the last time and set the rest aside, until cancelled."""
    now = asyncio.get_running_loop().time
    gc.disable()
    try:
        while True:
            gc.unfreeze()
            until = now() + ALL_SECONDS
            while now() < until:
                gc.collect()
                gc.freeze()
                await _enough(until=now() + SECONDS)
    finally:
        gc.unfreeze()
        gc.enable()


async def _enough(*, until: float) -> None:
    """Return once there are many new objects, at a time on the loop's clock at the latest."""
    now = asyncio.get_running_loop().time
    while now() < until and gc.get_count()[0] < MOST_NEW:  # noqa: ASYNC110 - has no event
        await asyncio.sleep(LOOK_SECONDS)
