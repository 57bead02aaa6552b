"""GPUs that are gone: that do not answer, that NVML does not list, or not by their name.

A GPU that answers badly is another file's. What is missing is only seen against what should be
there: the operator's number, and what this boot has already had.
"""

from typing import Final

from health.case import Case
from health.checks.model import (
    Action,
    Check,
    CheckId,
    Healthy,
    Judgement,
    Subject,
    Unhealthy,
)
from health.checks.reading import LATE_SECONDS, NoEvidenceError, alive, careful, present, started
from slicewatch.wire import evidence
from slicewatch.wire.evidence import Gpu, Unidentified

# NVML's words, in lower case as the exporter has them.
LOST: Final = "gpu_is_lost"
RESET_REQUIRED: Final = "reset_required"
# Also the exporter's, for a GPU that an earlier start of NVML has listed and the present has not.
MISSING: Final = "gpu_not_found"
HANGS: Final = "hang"

_GPUS: Final = "gpus"
_WORDS: Final = {
    LOST: "it is lost",
    MISSING: "it is not found",
    RESET_REQUIRED: "it needs a reset",
    HANGS: "it does not answer",
    "insufficient_power": "its power connectors are not plugged in",
}
_AT_ONCE: Final = frozenset({LOST, RESET_REQUIRED})
_GRAVE: Final = _AT_ONCE | {MISSING, HANGS, "insufficient_power"}


@careful
def _lost(case: Case) -> Judgement:
    if LOST in _said(present(case.newest)):
        return Unhealthy(message="the GPU is lost: it does not answer any more", at_once=True)
    alive(case.newest)
    return Healthy()


@careful
def _needs_reset(case: Case) -> Judgement:
    if RESET_REQUIRED in _said(present(case.newest)):
        return Unhealthy(message="the GPU answers only after a reset", at_once=True)
    alive(case.newest)
    return Healthy()


@careful
def _missing(case: Case) -> Judgement:
    if MISSING in _said(present(case.newest)):
        return Unhealthy(message="NVML does not list the GPU any more")
    alive(case.newest)
    return Healthy()


def _said(gpu: Gpu) -> set[str]:
    """Return why a GPU does not answer, in NVML's words: one read that says so is enough."""
    words = {
        said.reason
        for said in gpu.readings.values()
        if isinstance(said, evidence.Lost) and said.age_seconds <= LATE_SECONDS
    }
    return words | {gpu.silent}


@careful
def _too_few(case: Case) -> Judgement:
    listed = started(case.newest).evidence.gpus
    found = sum(gpu.silent != MISSING for gpu in listed)
    most = max(found, int(case.baseline.get(_GPUS, 0)))
    wanted = most if case.thresholds.expected_gpus is None else case.thresholds.expected_gpus
    baseline = {_GPUS: float(most)}
    if found < wanted:
        return Unhealthy(message=f"{found} of {wanted} GPUs are there", baseline=baseline)
    if not wanted:
        raise NoEvidenceError("no GPU is there, and nobody says how many there should be")
    return Healthy(baseline=baseline)


@careful
def _unidentified(case: Case) -> Judgement:
    slots = started(case.newest).evidence.unidentified
    if not slots:
        return Healthy()
    words = {slot.reason.lower() for slot in slots}
    return Unhealthy(
        message="; ".join(_slot(slot) for slot in sorted(slots, key=lambda s: s.index)[:4]),
        action=None if words & _GRAVE else Action.WARN,
        at_once=bool(words & _AT_ONCE),
    )


def _slot(slot: Unidentified) -> str:
    why = _WORDS.get(slot.reason.lower(), slot.reason[:40])
    return f"the GPU at index {slot.index} does not say who it is: {why}"


CHECKS: Final = (
    Check(
        id=CheckId("gpu_lost"),
        title="The GPU does not answer any more.",
        reason="GPULost",
        action=Action.CORDON,
        judge=_lost,
    ),
    Check(
        id=CheckId("reset_required"),
        title="The GPU answers only after a reset.",
        reason="GPUResetRequired",
        action=Action.CORDON,
        judge=_needs_reset,
    ),
    Check(
        id=CheckId("gpu_missing"),
        title="NVML listed the GPU, and does not any more.",
        reason="GPUMissing",
        raise_seconds=300,
        action=Action.CORDON,
        judge=_missing,
    ),
    Check(
        id=CheckId("gpu_count"),
        title="Fewer GPUs than expected, or than there were in this boot.",
        reason="TooFewGPUs",
        subject=Subject.NODE,
        raise_seconds=300,
        grace=True,
        action=Action.CORDON,
        judge=_too_few,
    ),
    Check(
        id=CheckId("gpu_unidentified"),
        title="A GPU does not say who it is, so that nothing else of it is known.",
        reason="GPUUnidentified",
        subject=Subject.NODE,
        raise_seconds=300,
        action=Action.CORDON,
        judge=_unidentified,
    ),
)
