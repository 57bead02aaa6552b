"""``slicewatch health simulate``: the monitor's decisions over a recording or a scenario.

The engine and the rules of ownership are the monitor's own; the node is a model of one that nobody
else touches, in a cluster that can spare it. Nothing is asked of a cluster.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from cli.health.staging import Staged
from cli.health.tape import TapeError, played
from health import ownership
from health.checks.index import CHECKS
from health.checks.model import Check, Condition
from health.decision import Change, Decision, Fault, NodeCondition, State
from health.engine import Engine
from health.names import CORDONED
from health.node import policy, thresholds
from health.ownership import Cordon, NodeNow, Nothing, Step, Uncordon
from health.settings import HealthSettings
from simulator.clock import EPOCH_OF_MANUAL_CLOCKS_US
from simulator.errors import ScenarioError
from simulator.fleet import Fleet
from slicewatch.service.settings import SettingsError, duration, load
from slicewatch.wire.evidence import Evidence

RECORDING: Final = (".jsonl", ".ndjson")
# Wall time of second 0, as a scenario has it.
BEGIN_SECONDS: Final = EPOCH_OF_MANUAL_CLOCKS_US / 1e6
# A simulated node has settled before its scenario begins.
UPTIME_SECONDS: Final = 86_400.0


class PlayedError(ValueError):
    """There is nothing to play; the message says why, a line per fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to play. ``interval`` and ``duration`` as people write them, such as ``60s``."""

    file: str
    node: str = ""
    interval: str = "60s"
    duration: str = "1h"
    verbose: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One poll and what the monitor makes of it.

    Attributes:
        at: seconds since the first poll.
        indices: NVML's index of each GPU, by its uuid.
        before: the decision of the poll before; None for the first.
    """

    at: float
    indices: Mapping[str, int]
    decision: Decision
    step: Step
    before: "Moment | None" = None


def run(wanted: Wanted) -> None:
    """Print the decisions.

    Raises:
        PlayedError: the file cannot be played, or the settings cannot be used.
    """
    try:
        interval = _span("--interval", wanted.interval)
        settings = replace(_settings(os.environ), check_interval=interval)
        polls = _polls(wanted, interval, _span("--for", wanted.duration))
        for moment in play(polls, settings):
            for line in lines(moment, verbose=wanted.verbose):
                print(line)
    except (TapeError, ScenarioError, SettingsError, ValueError, OSError) as error:
        raise PlayedError(str(error)) from error
    except KeyError as error:
        raise PlayedError(str(error.args[0])) from error
    except OverflowError as error:
        raise PlayedError("--interval, --for: more polls than can be counted") from error


def play(
    polls: Iterable[tuple[float, Evidence]],
    settings: HealthSettings,
    checks: Sequence[Check] = CHECKS,
) -> Iterator[Moment]:
    """Yield what a monitor with these settings decides on each poll."""
    engine = Engine(checks, thresholds(settings, {}), policy(settings))
    engine.restore("")
    node, before = NodeNow(), None
    for at, evidence in polls:
        decision = engine.heard(evidence, at, BEGIN_SECONDS + at)
        step = ownership.decide(node, decision)
        node = _after(node, step)
        indices = {gpu.device.uuid: gpu.device.gpu for gpu in evidence.gpus}
        moment = Moment(at=at, indices=indices, decision=decision, step=step, before=before)
        yield moment
        before = replace(moment, before=None)


def lines(moment: Moment, *, verbose: bool = False) -> Iterator[str]:
    """Yield a line for all that is another than a poll before; of each poll, if ``verbose``."""
    when = _clock(moment.at)
    decision, before = moment.decision, moment.before
    for (check, gpu), state in decision.states.items():
        was = before.decision.states.get((check, gpu)) if before else None
        if state is State.SUSPECT and was is not state:
            yield f"{when} suspect    {_where(gpu, moment.indices.get(gpu))}: {check}"
    for change in decision.changes:
        yield f"{when} {_change(change)}"
    for condition, said in decision.conditions.items():
        if before is None or before.decision.conditions.get(condition) != said:
            yield f"{when} condition  {_condition(condition, said)}"
    if before is None or _words(before.step) != _words(moment.step):
        yield f"{when} node       {_words(moment.step)}"
    if verbose:
        yield f"{when} poll       faults: {len(decision.faults)}, wanted: {decision.wish}"


def _polls(wanted: Wanted, interval: float, seconds: float) -> Iterator[tuple[float, Evidence]]:
    if interval <= 0:
        raise PlayedError("--interval: must be more than 0")
    path = Path(wanted.file)
    if path.suffix in RECORDING:
        return played(path, interval)
    fleet = Fleet.named(wanted.file)
    node = fleet.node(wanted.node) if wanted.node else fleet.nodes[0]
    return Staged(fleet, node, UPTIME_SECONDS).polls(seconds, interval)


def _span(flag: str, text: str) -> float:
    try:
        return duration(text)
    except ValueError as error:
        raise PlayedError(f"{flag}: {error}") from error


def _settings(environment: Mapping[str, str]) -> HealthSettings:
    return load(HealthSettings, [], {"NODE_NAME": "simulated"} | dict(environment))


def _after(node: NodeNow, step: Step) -> NodeNow:
    if isinstance(step, Cordon):
        return NodeNow(unschedulable=True, annotations={CORDONED: step.mark})
    return NodeNow() if isinstance(step, Uncordon) else node


def _words(step: Step) -> str:
    if isinstance(step, Nothing):
        return f"left as it is: {step.why.sentence}"
    if isinstance(step, Cordon):
        return "cordoned for " + ", ".join(f"{_place(f)}: {f.check}" for f in step.grounds)
    return "uncordoned" if isinstance(step, Uncordon) else "cordon given up"


def _change(change: Change) -> str:
    fault = change.fault
    if not change.raised:
        return f"over       {_place(fault)}: {fault.check}"
    return (
        f"raised     {_place(fault)}: {fault.check} ({fault.reason}, {fault.action.name.lower()}):"
        f" {fault.message}"
    )


def _place(fault: Fault) -> str:
    return _where(fault.gpu, fault.index)


def _where(gpu: str, index: int | None) -> str:
    if not gpu:
        return "node"
    return f"GPU {gpu if index is None else index}"


def _condition(condition: Condition, said: NodeCondition) -> str:
    status = {True: "True", False: "False", None: "Unknown"}[said.present]
    return f"{condition}={status} {said.reason}: {said.message}"


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02}:{minute:02}:{second:02}"
