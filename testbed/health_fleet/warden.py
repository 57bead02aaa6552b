"""The monitor of one machine, as it is shipped: agent, caretaker, engine, checks, actions, ledger.

Only clocks, the API server and the exporter are others, and decisions are not shown as metrics:
that would cost as much as to make them. It begins anew as a pod does: what it knew is gone, what
is on the node stays.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from health.agent import Agent, Clocks, Judge
from health.caretaker import Caretaker
from health.checks.index import CHECKS
from health.decision import Decision
from health.observation import Observation
from health.settings import HealthSettings
from health.writes import DryRun, Writes
from slicewatch.catalog.health import HEALTH
from slicewatch.service.own_metrics import OwnMetrics
from testbed.health_fleet.machine import Machine
from testbed.health_fleet.watched_kube import Deeds, HarmError, KilledError, WatchedKube

NAMESPACE: Final = "monitoring"
# Wall time of second 0: a monitor writes dates.
EPOCH_SECONDS: Final = 1_800_000_000.0


class Warden:
    """One monitor.

    Args:
        machine: what it watches.
        kube: of all monitors.
        clock: seconds.
        settings: of all monitors; the node's name is filled in.

    Attributes:
        decision: the last one; None before the first.
        finished: whether the last turn got to its end.
    """

    def __init__(
        self,
        machine: Machine,
        kube: WatchedKube,
        clock: Callable[[], float],
        settings: HealthSettings,
    ) -> None:
        self.machine = machine
        self._kube = kube
        self._clocks = Clocks(monotonic=clock, wall=lambda: EPOCH_SECONDS + clock())
        self.settings = replace(settings, node_name=machine.name)
        self.decision: Decision | None = None
        self.finished = False
        self.begin_anew()

    def begin_anew(self) -> None:
        """Begin a new life of the monitor."""
        observation = _Discreet(
            OwnMetrics(HEALTH), dry_run=self.settings.dry_run, clock=self._clocks.monotonic
        )
        gate = DryRun if self.settings.dry_run else Writes
        caretaker = Caretaker(
            gate(self._kube, observation.wrote), self.settings, namespace=NAMESPACE,
            checks=CHECKS, observation=observation, clocks=self._clocks,
        )  # fmt: skip
        self._agent = Agent(
            node=self.machine.name, source=self.machine, hands=_Noting(caretaker, self._note),
            observation=observation, interval_seconds=self.settings.check_interval,
            clocks=self._clocks,
        )  # fmt: skip

    async def turn(self, *, may_cordon: bool = True) -> Deeds:
        """Take a turn, or begin one and be killed in it; return what was done.

        Raises:
            HarmError: something was done, or tried, that no monitor may do.
        """
        deeds = Deeds(
            self.machine.name, may_cordon=may_cordon, may_write=not self.settings.dry_run
        )
        with self._kube.acting(deeds):
            try:
                await self._agent.turn()
                self.finished = self._agent.ready() is None
            except KilledError:
                self.finished = False
                self.begin_anew()
        if self._kube.harms:
            raise HarmError(f"{self.machine.name}: {self._kube.harms[0]}")
        return deeds

    def fault(self) -> str | None:
        """Return why the last turn did not get to its end."""
        return self._agent.ready()

    def _note(self, decision: Decision) -> None:
        self.decision = decision


class _Discreet(Observation):
    """Counts all but decisions."""

    def decided(self, decision: Decision) -> None:
        """Show nothing of it."""


class _Noting:
    """The hands of an agent, that note what they are to carry out."""

    def __init__(self, hands: Caretaker, note: Callable[[Decision], None]) -> None:
        self._hands = hands
        self._note = note

    async def begin(self) -> Judge:
        return await self._hands.begin()

    async def carry_out(self, decision: Decision) -> None:
        self._note(decision)
        await self._hands.carry_out(decision)
