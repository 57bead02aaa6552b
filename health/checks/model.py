"""What a check is. Each is declared once; code, metrics, docs and runbooks follow from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any, Final, NewType

from health.case import Case
from slicewatch.catalog.model import Probe

# Of three polls a minute apart, the third.
THREE_POLLS_SECONDS: Final = 120.0

CheckId = NewType("CheckId", str)
"""Name of a check, such as ``row_remap_failure``: a label, a runbook, a key of what is kept."""


class Action(IntEnum):
    """What a fault leads to, weakest first. Each includes those before it but RESET, see there.

    RECORD: an event and a metric. WARN: the condition ``GPUDegraded``. RESET: the condition
    ``GPUResetRequired``: at a convenient time; running work goes on. CORDON: the condition
    ``GPUUnhealthy``, and the node takes no new pods.
    """

    RECORD = 0
    WARN = 1
    RESET = 2
    CORDON = 3


class Condition(StrEnum):
    """The node conditions that are ours; True is always a problem."""

    UNHEALTHY = "GPUUnhealthy"
    RESET_REQUIRED = "GPUResetRequired"
    DEGRADED = "GPUDegraded"
    UNMONITORED = "GPUMonitoringUnavailable"


class Subject(StrEnum):
    """What a check judges."""

    GPU = "gpu"
    NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Healthy:
    """There is evidence that all is well.

    Attributes:
        baseline: what to remember of this GPU until the next boot, instead of what was; empty
            leaves that.
    """

    baseline: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unhealthy:
    """There is evidence of the fault.

    Attributes:
        message: what is wrong, without anything that changes from poll to poll.
        reason: another one than the check's, from its declared ``reasons``; empty for its own.
        action: a weaker one than the check's strongest, or None for that.
        at_once: no need to see it again.
        baseline: as of ``Healthy``.
    """

    message: str
    reason: str = ""
    action: Action | None = None
    at_once: bool = False
    baseline: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """There is no evidence for either: nothing is raised for it, and nothing is cleared."""

    why: str


Judgement = Healthy | Unhealthy | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One way in which a GPU or a node can be ill.

    Attributes:
        id: its name everywhere.
        title: what it finds, in a few words.
        reason: of the condition and the event, in CamelCase; part of the documented contract.
        reasons: further ones that ``judge`` may give.
        subject: what is judged.
        needs: the probes that it reads; where one of them is not supported it is Unknown.
        raise_seconds: for so long it has to be Unhealthy, in every poll that knows, before it is
            a fault; with polls a minute apart, 120 is the third of them.
        clear_seconds: for so long it has to be Healthy, in every poll that knows, before the
            fault is over.
        tells_events: what it finds has just happened, and is never found again: other words are
            of another event.
        grace: nothing is raised in the first minutes after a boot or a start of the driver.
        action: the strongest that ``judge`` may ask for.
        condition: where it shows, if not where its action does.
        judge: pure.
    """

    id: CheckId
    title: str
    reason: str
    reasons: tuple[str, ...] = ()
    subject: Subject = Subject.GPU
    needs: tuple[Probe[Any], ...] = ()
    raise_seconds: float = 0.0
    clear_seconds: float = 300.0
    tells_events: bool = False
    grace: bool = False
    action: Action
    condition: Condition | None = None
    judge: Callable[[Case], Judgement]
