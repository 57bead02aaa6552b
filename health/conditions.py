"""What the node's conditions say of the faults that there are. Pure.

A condition is True for a problem, False only where a check has found that there is none, and
Unknown while nobody can tell. Its text changes only when the faults do, since each change is a
write, and it is cut to what a Node can carry.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from health.checks.model import Action, Check, Condition
from health.decision import Fault, NodeCondition

MESSAGE_BYTES: Final = 1024

BY_ACTION: Final[Mapping[Action, Condition]] = {
    Action.WARN: Condition.DEGRADED,
    Action.RESET: Condition.RESET_REQUIRED,
    Action.CORDON: Condition.UNHEALTHY,
}

# Reason and message while there is no problem.
_FINE: Final[Mapping[Condition, tuple[str, str]]] = {
    Condition.UNHEALTHY: ("NoGPUFailed", "no GPU has failed"),
    Condition.RESET_REQUIRED: ("NoResetRequired", "no GPU needs a reset"),
    Condition.DEGRADED: ("NoGPUDegraded", "no GPU is degraded"),
    Condition.UNMONITORED: ("GPUsMonitored", "the exporter answers, and so does the driver"),
}
_UNKNOWN_REASON: Final = "GPUsNotMonitored"
_UNKNOWN_MESSAGE: Final = f"not known while {Condition.UNMONITORED} is True"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A fault, and the condition that it shows in."""

    condition: Condition
    fault: Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Why the GPUs cannot be judged, apart from what checks find."""

    reason: str
    message: str


def condition_of(check: Check, action: Action) -> Condition | None:
    """Return where a finding of a check shows; None for one that is only recorded."""
    return None if action is Action.RECORD else check.condition or BY_ACTION[action]


def answered_by(check: Check) -> frozenset[Condition]:
    """Return the conditions that a check can show in, so that being Healthy says they are fine."""
    found = (condition_of(check, action) for action in BY_ACTION if action <= check.action)
    return frozenset(condition for condition in found if condition is not None)


def conditions(
    shown: Iterable[Shown],
    *,
    gpus: Collection[str],
    fine: Collection[Condition],
    obstacles: Sequence[Obstacle] = (),
) -> dict[Condition, NodeCondition]:
    """Return what each condition should say; one of which nothing is known yet is left out.

    Args:
        shown: the faults, the strongest first.
        gpus: the uuids of the GPUs that are known.
        fine: conditions that were found not to be problems, faults apart.
        obstacles: why nothing can be said, if so.
    """
    faults: dict[Condition, list[Fault]] = {}
    for one in shown:
        faults.setdefault(one.condition, []).append(one.fault)
    ill = _gpus_of(fault for own in faults.values() for fault in own)
    unmonitored = bool(obstacles) or Condition.UNMONITORED in faults
    said: dict[Condition, NodeCondition] = {}
    for condition in Condition:
        own = faults.get(condition, [])
        blocked = obstacles if condition is Condition.UNMONITORED else ()
        if own or blocked:
            known = ill | set(gpus)
            head = _head(condition, _gpus_of(own), healthy=len(known - ill), of=len(known))
            said[condition] = _problem(own, blocked, head)
        elif unmonitored:
            said[condition] = NodeCondition(
                present=None, reason=_UNKNOWN_REASON, message=_UNKNOWN_MESSAGE
            )
        elif condition in fine:
            reason, message = _FINE[condition]
            said[condition] = NodeCondition(present=False, reason=reason, message=message)
    return said


def _gpus_of(faults: Iterable[Fault]) -> set[str]:
    return {fault.gpu for fault in faults if fault.gpu}


def _head(condition: Condition, own: Collection[str], *, healthy: int, of: int) -> str:
    """Return how many GPUs it concerns; of the gravest one, how many have no fault of any kind."""
    if not own:
        return ""
    if condition is Condition.UNHEALTHY:
        return f"{healthy} of {of} GPUs healthy: "
    return f"{len(own)} of {of} GPUs: "


def _problem(faults: Sequence[Fault], obstacles: Sequence[Obstacle], head: str) -> NodeCondition:
    parts = [obstacle.message for obstacle in obstacles]
    parts += [_words(fault) for fault in faults]
    return NodeCondition(
        present=True,
        reason=(obstacles or faults)[0].reason,
        message=fit(head, parts),
    )


def _words(fault: Fault) -> str:
    if not fault.gpu:
        return fault.message
    return f"GPU {fault.gpu if fault.index is None else fault.index}: {fault.message}"


def fit(head: str, parts: Sequence[str], limit: int = MESSAGE_BYTES) -> str:
    """Return as many parts as there is room for, and how many more there are.

    The first is always there, if need be cut short.
    """
    text = head + parts[0]
    if len(parts) == 1:
        return cut(text, limit)
    for count, part in enumerate(parts[1:], start=1):
        rest = len(parts) - count
        longer = f"{text}; {part}"
        room = limit - len(_more(rest - 1).encode())
        if len(longer.encode()) > room:
            return cut(text, limit - len(_more(rest).encode())) + _more(rest)
        text = longer
    return text


def _more(count: int) -> str:
    return f"; +{count} more" if count else ""


def cut(text: str, limit: int, mark: str = "…") -> str:
    """Return a text of at most so many bytes, cut at a whole character and marked as cut."""
    if len(text.encode()) <= limit:
        return text
    return text.encode()[: limit - len(mark.encode())].decode(errors="ignore") + mark
