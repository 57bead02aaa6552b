"""One node of a fleet through its time: what happens to it, and what its monitor does.

A node on which nothing changes is not polled for weeks: once all that a check looks back over
says the same, and the decision with it, more of it changes nothing but heartbeats. A few polls
before something happens it is polled again, so that what rises is measured from one poll to the
next.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from health.case import POLLS_KEPT
from health.checks import nvlink
from health.checks.model import Action, CheckId, Condition
from health.decision import Decision, State
from testbed.health_fleet.ailments import Ailment
from testbed.health_fleet.clusters import POLL_SECONDS, Cluster
from testbed.health_fleet.schedule import Happening
from testbed.health_fleet.watched_kube import Deeds

# Before something happens; the counters of two polls make a rate.
POLLS_BEFORE: Final = 3
# Until what repeats is out of all that is looked back over.
FORGOTTEN_SECONDS: Final = (POLLS_KEPT + 1) * POLL_SECONDS
# Until links count as trained, and grace is over.
SETTLED_SECONDS: Final = nvlink.SETTLED_SECONDS + POLL_SECONDS
_ON_THE_WAY: Final = frozenset({State.SUSPECT, State.RECOVERING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What became of a fault.

    Attributes:
        fault: its name.
        seconds: from its beginning to the cordon or condition that it warrants; None: it was
            repaired before.
    """

    fault: str
    node: str
    seconds: float | None


class Life:
    """One node.

    Args:
        cluster: whose clock is moved.
        number: of the node.
        happenings: in order; times count from the beginning of the fleet.
        phase: second of the minute at which it polls.
        skips: whether time in which nothing can change is left out.

    Attributes:
        found: faults that are over, or that were found.
        polls: how many there were.
        skipped_seconds: time without polls.
        changes: when which check raised a fault, or found it over.
        unfounded: cordons without a fault that warrants one, in words.
    """

    def __init__(
        self,
        cluster: Cluster,
        number: int,
        happenings: Iterable[Happening],
        *,
        phase: float,
        skips: bool = True,
    ) -> None:
        self._cluster = cluster
        self._began = cluster.now
        self._machine = cluster.machines[number]
        self._warden = cluster.wardens[number]
        self._happenings = deque(happenings)
        self._skips = skips
        self._pending: list[tuple[float, Ailment]] = []
        self._last: Decision | None = None
        self._same_polls = 0
        self.next_at = phase
        self.found: list[Found] = []
        self.polls = 0
        self.skipped_seconds = 0.0
        self.unfounded: list[str] = []
        self.changes: list[tuple[float, CheckId, bool]] = []

    async def poll(self) -> Deeds:
        """Live until the next poll, and through it; return what the monitor wrote."""
        at = self.next_at
        while self._happenings and self._happenings[0].at <= at:
            self._live_through(self._happenings.popleft())
        self._cluster.now = self._began + at
        cordons = len(self._cluster.kube.cordons)
        deeds = await self._warden.turn()
        self.polls += 1
        if len(self._cluster.kube.cordons) > cordons:
            self._weigh_cordon()
        self._look_for_found(at)
        self._compare(at)
        self.next_at = self._next_poll(at)
        return deeds

    def end(self, seconds: float) -> None:
        """Take what was not found by the end for missed, and the rest of the time for skipped."""
        self.found += [
            Found(fault=f.name, node=self._machine.name, seconds=None) for _, f in self._pending
        ]
        self._pending = []
        polls_after_the_end = max(0.0, self.next_at - seconds) // POLL_SECONDS
        self.skipped_seconds -= polls_after_the_end * POLL_SECONDS

    def _live_through(self, one: Happening) -> None:
        self._cluster.now = self._began + one.at
        before = self._machine.faults()
        one.does(self._machine)
        if one.boots:
            self._warden.begin_anew()
        if one.fault is not None:
            self._pending.append((one.at, one.fault))
        repaired = [fault for fault in before if fault not in self._machine.faults()]
        for pending in [p for p in self._pending if p[1] in repaired]:
            self._pending.remove(pending)
            self.found.append(Found(fault=pending[1].name, node=self._machine.name, seconds=None))

    def _look_for_found(self, at: float) -> None:
        for pending in tuple(self._pending):
            began, fault = pending
            if self._is_found(fault):
                self._pending.remove(pending)
                found = Found(fault=fault.name, node=self._machine.name, seconds=at - began)
                self.found.append(found)

    def _is_found(self, fault: Ailment) -> bool:
        if fault.asks is Action.CORDON:
            return self._machine.name in self._cluster.kube.out()
        conditions = self._cluster.kube.body(self._machine.name)["status"]["conditions"]
        wanted = Condition.RESET_REQUIRED
        return any(one["type"] == wanted and one["status"] == "True" for one in conditions)

    def _weigh_cordon(self) -> None:
        if not any(one.asks is Action.CORDON for one in self._machine.faults()):
            decision = self._warden.decision
            found = decision.faults if decision else ()
            why = ", ".join(f"{one.check}: {one.message}" for one in found)
            self.unfounded.append(f"{self._machine.name}: {why}")

    def _compare(self, at: float) -> None:
        """Count the polls since which all has been the same."""
        now, before = self._warden.decision, self._last
        changes = now.changes if now is not None and now is not before else ()
        self.changes += [(at, one.fault.check, one.raised) for one in changes]
        self._last = now
        same = (
            self._warden.finished
            and now is not None
            and before is not None
            and not now.changes
            and _essence(now) == _essence(before)
            and _ON_THE_WAY.isdisjoint(now.states.values())
        )
        self._same_polls = self._same_polls + 1 if same else 0

    def _settled_at(self) -> float:
        """Return from when on all that is looked back over says the same."""
        machine = self._machine
        return max(machine.settled_at + SETTLED_SECONDS, machine.repeated_at + FORGOTTEN_SECONDS)

    def _next_poll(self, at: float) -> float:
        settled = self._settled_at() - self._began
        upcoming = self._happenings[0].at if self._happenings else float("inf")
        is_still = self._skips and self._same_polls > 1 and at > settled
        polls = int((upcoming - at) // POLL_SECONDS) - POLLS_BEFORE if upcoming < 1e12 else 10**9
        if not is_still or polls <= 1:
            return at + POLL_SECONDS
        self.skipped_seconds += (polls - 1) * POLL_SECONDS
        return at + polls * POLL_SECONDS


def _essence(decision: Decision) -> tuple[object, ...]:
    """Return what of a decision anything follows from."""
    return (
        decision.faults, decision.states, decision.conditions, decision.wish, decision.record,
        decision.ignored, decision.read_only,
    )  # fmt: skip
