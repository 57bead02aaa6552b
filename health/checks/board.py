"""The board around the GPU: its power connectors, and the flash memory that holds its settings."""

from typing import Final

from health.case import Case
from health.checks.model import Action, Check, CheckId, Healthy, Judgement, Unhealthy
from health.checks.reading import LATE_SECONDS, careful, present, read, read_if_any
from slicewatch.catalog.power import POWER
from slicewatch.catalog.state import INFOROM, INFOROM_CHECK
from slicewatch.wire.evidence import Failed, Gpu

# NVML's names for what it answers with; a read that runs hourly is refused hourly.
CORRUPTED: Final = "CORRUPTED_INFOROM"
UNDERPOWERED: Final = "INSUFFICIENT_POWER"
OF_THE_HOUR_SECONDS: Final = 2 * INFOROM.interval_seconds + LATE_SECONDS


@careful
def _inforom(case: Case) -> Judgement:
    gpu = present(case.newest)
    checked = read_if_any(case.newest, INFOROM_CHECK)
    if (checked is not None and not checked.valid) or _failed(gpu, CORRUPTED, OF_THE_HOUR_SECONDS):
        return Unhealthy(message="the InfoROM is corrupted")
    if checked is None:
        # NVML refuses to read one of which it knows that it is corrupted.
        read(case.newest, INFOROM)
    return Healthy()


@careful
def _power(case: Case) -> Judgement:
    if _failed(present(case.newest), UNDERPOWERED, LATE_SECONDS):
        return Unhealthy(message="the power connectors of the board are not plugged in")
    read(case.newest, POWER)
    return Healthy()


def _failed(gpu: Gpu, error: str, within_seconds: float) -> bool:
    return gpu.silent.upper() == error or any(
        isinstance(said, Failed)
        and said.error.upper() == error
        and said.age_seconds <= within_seconds
        for said in gpu.readings.values()
    )


CHECKS: Final = (
    Check(
        id=CheckId("inforom"),
        title="The InfoROM of the board is corrupted.",
        reason="InfoROMCorrupted",
        needs=(INFOROM,),
        raise_seconds=120,
        action=Action.WARN,
        judge=_inforom,
    ),
    Check(
        id=CheckId("power_connectors"),
        title="The board has not enough power, as without its power connectors.",
        reason="InsufficientPower",
        raise_seconds=120,
        action=Action.CORDON,
        judge=_power,
    ),
)
