"""One check on one GPU over time: when what it finds becomes a fault, and when that is over.

The rules, for each check and GPU by itself:

- Time counts only between two polls that say the same, and of a gap no more than one and a half
  polls. A poll that knows nothing therefore neither adds to a streak nor ends it; one that says
  the opposite ends it, and so does long ignorance.
- Evidence of something weaker than the fault keeps the fault and clears nothing. A fault becomes
  stronger only on evidence that lasted at that strength, and never weaker: it ends.
- A fault stays while nothing is known. One that is only recorded has nothing to stay for: it ends
  with the evidence.
- Its reason and words stay as they are, unless others have been said for a while without break:
  two that alternate must not cause a write with each poll.
- One that cordons and keeps coming back does not end by itself any more.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from health.case import Since
from health.checks.model import (
    Action,
    Check,
    CheckId,
    Healthy,
    Judgement,
    Unhealthy,
    Unknown,
)
from health.decision import Change, Fault, State
from health.policy import Policy
from slicewatch.wire.evidence import Gpu

DAY_SECONDS: Final = 86400.0
# Other words than the fault's have to be said for so long to replace them.
REWORDED_SECONDS: Final = 300.0

FLAPPING: Final = "flapping, needs a human"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When and under what something is judged.

    Attributes:
        now: monotonic.
        wall: seconds since 1970.
        grace: the node or its driver has not settled.
        gpu: None for a case of the node.
    """

    now: float
    wall: float
    boot_id: str
    driver_run: str
    grace: bool = False
    gpu: Gpu | None = None


class Streak:
    """How long the same has been seen."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._seconds = 0.0
        self._seen_at: float | None = None

    def extend(self, now: float) -> None:
        """It was seen now."""
        if self._seen_at is not None:
            gap = now - self._seen_at
            if gap > self._policy.patience_seconds:
                self._seconds = 0.0
            else:
                self._seconds += min(gap, self._policy.credit_seconds)
        self._seen_at = now

    def reset(self) -> None:
        """Something else was seen."""
        self._seconds, self._seen_at = 0.0, None

    def lasts(self, seconds: float) -> bool:
        """Tell whether it has been seen for so long."""
        return self._seen_at is not None and self._seconds >= self._policy.enough(seconds)


class Track:
    """What is known of one check on one GPU, or on the node.

    Attributes:
        fault: None while there is none.
        ignored: a human has decided that this fault is no reason to cordon.
        raised: when and how strong it was within a day, the present fault included.
    """

    def __init__(self, check: Check, policy: Policy) -> None:
        self.check = check
        self.fault: Fault | None = None
        self.ignored = False
        self.raised: list[tuple[float, Action]] = []
        self.judgement: Judgement = Unknown(why="not judged yet")
        self._policy = policy
        self._bad = {action: Streak(policy) for action in Action}
        self._good = Streak(policy)
        self._other = Streak(policy)
        self._other_words = ("", "")
        self._said: set[str] = set()
        self._words_are_old = False

    @property
    def flapping(self) -> bool:
        """Tell whether the fault stays because it came too often."""
        return self.cordons and len(self.cordoned_at) >= self._policy.flapping_raises

    @property
    def cordons(self) -> bool:
        """Tell whether there is a fault that asks for a cordon, whatever a human said to it."""
        return self.fault is not None and self.fault.action is Action.CORDON

    @property
    def cordoned_at(self) -> tuple[float, ...]:
        """Return when it asked for a cordon within a day."""
        return tuple(time for time, action in self.raised if action is Action.CORDON)

    @property
    def shown(self) -> Fault | None:
        """Return the fault in the words that people get."""
        if self.fault is None or not self.flapping:
            return self.fault
        return replace(self.fault, message=f"{self.fault.message} ({FLAPPING})")

    @property
    def state(self) -> State:
        """Return how the check stands; a fault of which nothing is known now is still one."""
        healthy = isinstance(self.judgement, Healthy)
        if self.fault is not None:
            return State.RECOVERING if healthy and not self.flapping else State.UNHEALTHY
        if isinstance(self.judgement, Unhealthy):
            return State.SUSPECT
        return State.HEALTHY if healthy else State.UNKNOWN

    def strength(self, judgement: Unhealthy) -> Action:
        """Return what a finding asks for; never more than the check was declared to."""
        return (
            self.check.action
            if judgement.action is None
            else min(judgement.action, self.check.action)
        )

    def take(self, judgement: Judgement, at: Moment) -> tuple[Change, ...]:
        """Take what the check says now, and return what changed by it."""
        self.judgement = judgement
        self._locate(at.gpu)
        self._forget_old(at.wall)
        if isinstance(judgement, Unhealthy):
            return self._take_unhealthy(judgement, at)
        if isinstance(judgement, Healthy):
            self._reset_bad()
        elif self.fault is None or self.fault.action is not Action.RECORD:
            return ()
        return self._take_good(at)

    def settle(self) -> None:
        """Begin every streak anew, as after a boot; the fault stays."""
        self._reset_bad()
        self._good.reset()

    def end(self, at: Moment | None = None) -> tuple[Change, ...]:
        """End the fault, on evidence or because a human said so."""
        if self.fault is None:
            return ()
        change = _change(self.fault, raised=False, gpu=at.gpu if at else None)
        self.fault, self.ignored = None, False
        self._said.clear()
        self.settle()
        return (change,)

    def forget(self) -> tuple[Change, ...]:
        """End the fault, and that it ever came: a human said so."""
        self.raised = []
        return self.end()

    def remember_cordons(self, raised: Iterable[float]) -> None:
        """Take over when it asked for a cordon before a restart."""
        self.raised = [(time, Action.CORDON) for time in raised]

    def restore(self, fault: Fault, *, ignored: bool, raised: Iterable[float]) -> None:
        """Take over a fault that was raised before a restart."""
        self.fault, self.ignored = fault, ignored
        self.remember_cordons(raised)
        self._said = {fault.reason}
        self._words_are_old = True

    def _take_unhealthy(self, judgement: Unhealthy, at: Moment) -> tuple[Change, ...]:
        strength = self.strength(judgement)
        if self.fault is None or strength >= self.fault.action:
            self._good.reset()
        if self.check.grace and at.grace:
            self._reset_bad()
            return ()
        for action, streak in self._bad.items():
            if action <= strength:
                streak.extend(at.now)
            else:
                streak.reset()
        due = strength if judgement.at_once else self._lasting()
        return () if due is None else self._find(due, judgement, at)

    def _lasting(self) -> Action | None:
        """Return the strongest action that was asked for long enough."""
        lasting = (a for a, streak in self._bad.items() if streak.lasts(self.check.raise_seconds))
        return max(lasting, default=None)

    def _find(self, due: Action, judgement: Unhealthy, at: Moment) -> tuple[Change, ...]:
        reason = judgement.reason or self.check.reason
        over = self.end(at) if self._is_another(due, judgement) else ()
        if self.fault is None or due > self.fault.action:
            self.fault = self._raise(due, reason, judgement.message, at)
        elif due == self.fault.action:
            self._reword(reason, judgement.message, at.now)
        if reason in self._said:
            return over
        self._said.add(reason)
        told = replace(self.fault, action=due, reason=reason, message=judgement.message)
        return (*over, _change(told, raised=True, gpu=at.gpu))

    def _is_another(self, due: Action, judgement: Unhealthy) -> bool:
        """Tell whether something has happened that whoever ignored the fault did not know of."""
        return (
            self.ignored
            and self.check.tells_events
            and due is Action.CORDON
            and not self._words_are_old
            and self.fault is not None
            and judgement.message != self.fault.message
        )

    def _raise(self, action: Action, reason: str, message: str, at: Moment) -> Fault:
        """Return the fault as it is from now on: new, or the one that there is, but stronger."""
        self._said.clear()
        self._words_are_old = False
        if self.fault is not None:
            self.raised[-1:] = [(self.fault.since.at_seconds, action)]
            return replace(self.fault, action=action, reason=reason, message=message)
        wall = float(round(at.wall))
        self.raised.append((wall, action))
        return Fault(
            check=self.check.id,
            reason=reason,
            message=message,
            action=action,
            since=Since(boot_id=at.boot_id, driver_run=at.driver_run, at_seconds=wall),
            gpu=at.gpu.device.uuid if at.gpu else "",
            index=at.gpu.device.gpu if at.gpu else None,
            pci_bus_id=at.gpu.device.pci_bus_id if at.gpu else "",
            raises=len(self.raised),
        )

    def _reword(self, reason: str, message: str, now: float) -> None:
        if self.fault is None or (reason, message) == (self.fault.reason, self.fault.message):
            self._other.reset()
            return
        if (reason, message) != self._other_words:
            self._other_words = reason, message
            self._other.reset()
        self._other.extend(now)
        if self._words_are_old or self._other.lasts(REWORDED_SECONDS):
            self.fault = replace(self.fault, reason=reason, message=message)
            self._said.add(reason)
            self._words_are_old = False
            self._other.reset()

    def _take_good(self, at: Moment) -> tuple[Change, ...]:
        if self.fault is None:
            return ()
        self._good.extend(at.now)
        if self.flapping or not self._good.lasts(self.check.clear_seconds):
            return ()
        return self.end(at)

    def _locate(self, gpu: Gpu | None) -> None:
        """Correct where the GPU is: its index may change with a boot."""
        if self.fault is not None and gpu is not None:
            place = gpu.device.gpu, gpu.device.pci_bus_id
            if place != (self.fault.index, self.fault.pci_bus_id):
                self.fault = replace(self.fault, index=place[0], pci_bus_id=place[1])

    def _forget_old(self, wall: float) -> None:
        """Count the raises of a day; a fault that flaps keeps them until a human has cleared it.

        One of a day to come is of a clock that was wrong, and would never grow old.
        """
        if not self.flapping:
            self.raised = [one for one in self.raised if abs(wall - one[0]) < DAY_SECONDS]

    def _reset_bad(self) -> None:
        for streak in self._bad.values():
            streak.reset()


def orphan(check: CheckId, reason: str, title: str, policy: Policy) -> Track:
    """Return the track of a fault that no check of this program can end."""
    return Track(
        Check(
            id=check,
            title=title,
            reason=reason,
            action=Action.CORDON,
            judge=lambda _: Unknown(why="no check of this version looks for it"),
        ),
        policy,
    )


def _change(fault: Fault, *, raised: bool, gpu: Gpu | None) -> Change:
    return Change(fault=fault, raised=raised, holders=gpu.holders if gpu else ())
