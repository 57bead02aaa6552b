"""A supervisor at work, as the tests of its parts use it."""

import asyncio
import threading

from exporter.nvml.plan import Plan
from exporter.nvml.protocol import DriverUnavailableError
from exporter.nvml.relay import PATIENCE_SECONDS
from exporter.nvml.supervisor import Supervisor
from exporter.release import Release
from tests.unit.exporter.desk import until

PATIENCE = 10.0
NO_DRIVER = DriverUnavailableError("no_driver", "the NVIDIA driver is not loaded")


class Office:
    """A supervisor on a hand-moved clock, and what it told."""

    def __init__(self, desk, hand):
        self.desk = desk
        self.hand = hand
        self.began = []
        self.ended = []
        self.held = []
        self.release = Release(60, clock=hand)
        self.supervisor = Supervisor(
            desk,
            Plan.of(()),
            begin=lambda driver, slots: self.began.append((driver.driver, len(slots))),
            end=self.ended.append,
            hold=self.held.append,
            release=self.release,
            clock=hand,
        )

    async def pass_all(self, patience=PATIENCE):
        """Make a pass; a tick goes by."""
        async with asyncio.timeout(PATIENCE):
            cycles = await self.supervisor.pass_all(patience)
        self.hand.now += 1
        return {cycle.gpu.uuid: cycle.devices for cycle in cycles}

    async def pass_with_one_that_hangs(self):
        """Make a pass: the clock moves once one hangs, and again once the others are done."""
        relay = self.supervisor._relay
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.pass_all(patience=0.3))
            await until(lambda: self.desk.stuck)
            self.hand.now += 2 * PATIENCE_SECONDS
            await until(lambda: relay.running() and relay._holder is None)
            self.hand.now += 0.3
        return task.result()

    async def close(self):
        """Let everything go on that hangs, end it, and see that nothing was torn."""
        for gate in self.desk.gates.values():
            gate.set()
        await self.supervisor.close()
        assert self.desk.misuse == []


def driver_threads():
    return [thread for thread in threading.enumerate() if thread.name in {"nvml", "gpu-identity"}]
