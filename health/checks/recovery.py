"""What the driver itself says should be done to a GPU, which outranks what we make of its errors.

The word comes as a reading, as an event of NVML and as text of Xid 154; the latest counts. Drivers
before R565 say nothing, and then nothing is concluded from it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from health.case import Case, Poll
from health.checks.model import Action, Check, CheckId, Healthy, Judgement, Unhealthy
from health.checks.reading import NoEvidenceError, careful, present, read_at
from health.checks.sightings import is_of_this_boot
from slicewatch.catalog.errors import RECOVERY
from slicewatch.catalog.power import ENERGY
from slicewatch.catalog.readings.errors import RECOVERIES, Recovery, RecoveryAction
from slicewatch.hardware.xids import RECOVERY_CHANGED
from slicewatch.wire.evidence import Event, Happening

_CHANGED: Final = re.compile(r"action changed from .*? to 0x(?P<number>[0-9a-fA-F]{1,4})\b")

# Drained, a GPU is reset when its work is done: nothing is wrong with what runs on it. That of a
# domain of several nodes says nothing against this one's GPU.
_ACTIONS: Final = {
    Recovery.GPU_RESET: Action.CORDON,
    Recovery.NODE_REBOOT: Action.CORDON,
    Recovery.BUS_RESET: Action.CORDON,
    Recovery.SYSTEM_REBOOT: Action.CORDON,
    Recovery.DRAIN_P2P: Action.RESET,
    Recovery.DRAIN_AND_RESET: Action.RESET,
    Recovery.RECOVER_IMEX_DOMAIN: Action.WARN,
}
_WORDS: Final = {
    Recovery.GPU_RESET: "a reset of the GPU",
    Recovery.NODE_REBOOT: "a reboot of the node",
    Recovery.DRAIN_P2P: "that traffic between this GPU and others ends",
    Recovery.DRAIN_AND_RESET: "a reset of the GPU once its work is done",
    Recovery.RECOVER_IMEX_DOMAIN: "that the IMEX domain is recovered",
    Recovery.BUS_RESET: "a reset of the bus",
    Recovery.SYSTEM_REBOOT: "a reboot of the system",
}
_REASONS: Final = {
    Recovery.GPU_RESET: "GPUResetWanted",
    Recovery.NODE_REBOOT: "NodeRebootWanted",
    Recovery.DRAIN_P2P: "PeerDrainWanted",
    Recovery.DRAIN_AND_RESET: "DrainAndResetWanted",
    Recovery.RECOVER_IMEX_DOMAIN: "ImexRecoveryWanted",
    Recovery.BUS_RESET: "BusResetWanted",
    Recovery.SYSTEM_REBOOT: "SystemRebootWanted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the driver wanted last.

    Attributes:
        at: when it said so, on the clock of the polls.
        number: of nvmlDeviceGpuRecoveryAction_t.
    """

    at: float
    number: int

    @property
    def nothing(self) -> bool:
        """Tell whether the GPU is as it should be."""
        return self.number == 0

    @property
    def recovery(self) -> Recovery | None:
        """Return the action; None for a number that has no name yet."""
        return RECOVERIES[self.number] if self.number < len(RECOVERIES) else None

    @property
    def action(self) -> Action:
        """Return what follows from it; from a number without a name, a warning."""
        return _ACTIONS.get(self.recovery, Action.WARN) if self.recovery else Action.WARN


def wanted(case: Case) -> Wanted:
    """Return what the driver wanted last.

    Raises:
        NoEvidenceError: it does not say, or not any more.
    """
    told = [one for poll in case.polls for one in _told(poll)]
    try:
        at, reading = read_at(case.newest, RECOVERY)
    except NoEvidenceError:
        if not told:
            raise
    else:
        told.append(Wanted(at=at, number=reading.number))
    # Of two at one moment the later one; the reading comes last.
    return max(reversed(told), key=lambda one: one.at)


def wanted_if_any(case: Case) -> Wanted | None:
    """Return what the driver wanted last; None where it does not say."""
    try:
        return wanted(case)
    except NoEvidenceError:
        return None


def was_reset(case: Case) -> bool:
    """Tell whether the GPU was reset since its fault was raised and last seen to happen.

    A new boot is one. Within a boot NVML is started anew for many reasons, such as that another
    GPU is lost, so that a start alone proves nothing: the energy counter, which begins with the
    load of the driver, has to have fallen as well. ``case`` begins with the last sight of the
    fault.
    """
    boots = (case.raised.boot_id if case.raised else "", case.newest.boot_id)
    if all(boots) and boots[0] != boots[1]:
        return True
    used = [_energy(poll) for poll in case.polls]
    known = [millijoules for millijoules in used if millijoules is not None]
    return used[-1] is not None and used[-1] < max(known)


def text_of_recovery(text: str) -> int | None:
    """Return the action that Xid 154 says is wanted from now on; None for anything else."""
    found = _CHANGED.search(text)
    return None if found is None else int(found["number"], base=16)


def _energy(poll: Poll) -> int | None:
    try:
        return read_at(poll, ENERGY)[1].used_millijoules
    except NoEvidenceError:
        return None


def _told(poll: Poll) -> Iterator[Wanted]:
    for event in poll.events:
        number = _number_in(event) if is_of_this_boot(event, poll) else None
        if number is not None and RecoveryAction(number).consistent():
            yield Wanted(at=poll.at - event.age_seconds, number=number)


def _number_in(event: Event) -> int | None:
    if event.kind is Happening.RECOVERY_ACTION:
        return event.data
    is_told = event.kind is Happening.XID and event.data == RECOVERY_CHANGED
    return text_of_recovery(event.text) if is_told else None


@careful
def _judge(case: Case) -> Judgement:
    present(case.newest)
    said = wanted(case)
    if said.nothing:
        return Healthy()
    if said.recovery is None:
        return Unhealthy(message=f"the driver wants action {said.number}", action=Action.WARN)
    return Unhealthy(
        message=f"the driver wants {_WORDS[said.recovery]}",
        reason=_REASONS[said.recovery],
        action=said.action,
        at_once=said.action is Action.CORDON,
    )


CHECKS: Final = (
    Check(
        id=CheckId("recovery_action"),
        title="The driver wants something done to recover the GPU.",
        reason="RecoveryActionWanted",
        reasons=tuple(_REASONS.values()),
        needs=(RECOVERY,),
        raise_seconds=0,
        action=Action.CORDON,
        judge=_judge,
    ),
)
