"""What the garbage collector is spared: whatever has lived for a while.

It stops everything while it walks over all objects, of which there are a million on a cluster of
thousands of nodes; next to none of them are in cycles, so that it hardly ever finds anything. So
what is alive is set aside every few seconds, and it only walks over what has come since.
"""

import asyncio
import gc
from typing import Final

SECONDS: Final = 15.0
# What was set aside and has ended up in a cycle is found once an hour.
ROUNDS: Final = 240


async def run() -> None:
    """Set aside what is alive, again and again, until cancelled."""
    while True:
        gc.unfreeze()
        for _ in range(ROUNDS):
            gc.collect()
            gc.freeze()
            await asyncio.sleep(SECONDS)
