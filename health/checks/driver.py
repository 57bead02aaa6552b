"""Driver and exporter: whether anything can be known, and calls that do not return.

That nothing is known says nothing against a GPU: these checks show in a condition of their own,
except for a call that has hung for so long that nothing will ever end it.
"""

from typing import Final

from health.case import Case
from health.checks.board import CORRUPTED, UNDERPOWERED
from health.checks.model import (
    Action,
    Check,
    CheckId,
    Condition,
    Healthy,
    Judgement,
    Subject,
    Unhealthy,
    Unknown,
)
from health.checks.presence import HANGS, LOST, MISSING, RESET_REQUIRED
from health.checks.reading import STALE_TICK_SECONDS, alive, careful, present
from slicewatch.wire import evidence

# Somebody asked the exporter to let go of the driver, for a repair or a new partition.
RELEASED: Final = "released"
MISMATCH: Final = "version_mismatch"
NO_DRIVER: Final = "no_driver"
SLOW_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 600.0

_DOWN: Final = {
    "no_library": "NVML's library is not there",
    NO_DRIVER: "the driver is not loaded",
    "permission": "the device files may not be opened",
}
# For these there are other checks.
_TOLD: Final = frozenset({
    LOST, MISSING, RESET_REQUIRED, HANGS, NO_DRIVER, CORRUPTED.lower(), UNDERPOWERED.lower(),
})  # fmt: skip


def _not_ready(case: Case) -> Judgement:
    down = case.newest.evidence.driver.down
    if not down:
        return Healthy()
    if down in {RELEASED, MISMATCH}:
        return Unknown(why=f"NVML is not started: {down}")
    return Unhealthy(message=_DOWN.get(down, f"NVML cannot be started: {down[:40]}"))


def _mismatch(case: Case) -> Judgement:
    down = case.newest.evidence.driver.down
    if not down:
        return Healthy()
    if down != MISMATCH:
        return Unknown(why=f"NVML is not started: {down}")
    return Unhealthy(message="NVML's library and the driver are of different versions")


def _stale(case: Case) -> Judgement:
    age_seconds = case.newest.evidence.tick_age_seconds
    if age_seconds is None:
        return Unhealthy(message="the exporter has read nothing yet")
    if age_seconds > STALE_TICK_SECONDS:
        return Unhealthy(message="the exporter reads nothing any more")
    return Healthy()


@careful
def _unreadable(case: Case) -> Judgement:
    gpu = present(case.newest)
    if gpu.call:
        return Unknown(why="the driver is in a call for it")
    if gpu.silent in _TOLD:
        return Unknown(why=f"the GPU does not answer: {gpu.silent}")
    if gpu.silent:
        return Unhealthy(message=f"the GPU does not answer: {gpu.silent[:40]}")
    if gpu.readings and all(isinstance(r, evidence.Failed) for r in gpu.readings.values()):
        return Unhealthy(message="every read of the GPU fails")
    alive(case.newest)
    return Healthy()


@careful
def _hangs(case: Case) -> Judgement:
    gpu = present(case.newest)
    # One that hung before it had said who it is has no call that is known.
    hung_seconds = gpu.silent_seconds if gpu.silent == HANGS else gpu.call_seconds
    if (gpu.call or gpu.silent == HANGS) and hung_seconds > case.thresholds.hang_seconds:
        return Unhealthy(message="a call of the driver for the GPU does not return")
    if gpu.call:
        # A new life of the exporter counts anew, of a call that hangs as before.
        return Unknown(why="the driver is in a call for it")
    alive(case.newest)
    return Healthy()


@careful
def _slow(case: Case) -> Judgement:
    gpu = present(case.newest)
    if gpu.call and gpu.call_seconds >= SLOW_SECONDS:
        return Unhealthy(message="calls of the driver for the GPU take many seconds")
    if gpu.call:
        return Unknown(why="the driver is in a call for it")
    alive(case.newest)
    return Healthy()


CHECKS: Final = (
    Check(
        id=CheckId("driver_not_ready"),
        title="NVML cannot be started.",
        reason="DriverNotReady",
        subject=Subject.NODE,
        raise_seconds=PATIENCE_SECONDS,
        grace=True,
        action=Action.WARN,
        condition=Condition.UNMONITORED,
        judge=_not_ready,
    ),
    Check(
        id=CheckId("driver_version_mismatch"),
        title="NVML's library and the driver are of different versions, as amid an upgrade.",
        reason="DriverVersionMismatch",
        subject=Subject.NODE,
        raise_seconds=PATIENCE_SECONDS,
        grace=True,
        action=Action.WARN,
        condition=Condition.UNMONITORED,
        judge=_mismatch,
    ),
    Check(
        id=CheckId("exporter_stalled"),
        title="The exporter answers, but has stopped reading.",
        reason="ExporterStalled",
        subject=Subject.NODE,
        raise_seconds=180,
        action=Action.WARN,
        condition=Condition.UNMONITORED,
        judge=_stale,
    ),
    Check(
        id=CheckId("gpu_unreadable"),
        title="NVML lists the GPU but reads nothing of it, and does not say why.",
        reason="GPUUnreadable",
        raise_seconds=300,
        grace=True,
        action=Action.WARN,
        condition=Condition.UNMONITORED,
        judge=_unreadable,
    ),
    Check(
        id=CheckId("driver_call_hangs"),
        title="A call of the driver has not returned for longer than hang_seconds.",
        reason="DriverCallHangs",
        raise_seconds=120,
        action=Action.CORDON,
        judge=_hangs,
    ),
    Check(
        id=CheckId("driver_slow"),
        title="Calls of the driver take many seconds, and return.",
        reason="DriverSlow",
        raise_seconds=120,
        action=Action.WARN,
        judge=_slow,
    ),
)
