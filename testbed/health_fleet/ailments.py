"""What befalls the GPUs of a fleet: faults that monitors have to find, and noise to be borne.

Faults come as often as in Llama 3's training on 16,384 H100 in 54 days: 148 of the GPU itself, 72
of its HBM, 19 of its SRAM, 17 of its firmware (GSP), 6 of heat, 35 of switches and cables, which
are links here. Its 6 of silent corruption show in nothing that a driver reads, so that no monitor
of this kind finds them; they are left out, not counted as found. Noise is what public reports say that
healthy fleets do all day.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from health.checks.model import Action
from slicewatch.catalog.clocks import PERFORMANCE_STATE
from slicewatch.catalog.errors import ECC, RECOVERY, REMAPPED_ROWS, SRAM
from slicewatch.catalog.nvlink import STATES
from slicewatch.catalog.pcie import LINK
from slicewatch.catalog.power import TEMPERATURE
from slicewatch.catalog.readings.clocks import ClockEvent, PerformanceState
from slicewatch.catalog.readings.errors import (
    RECOVERIES,
    EccErrors,
    Recovery,
    RecoveryAction,
    RemappedRows,
    SramErrors,
)
from slicewatch.catalog.readings.nvlink import Nvlinks
from slicewatch.catalog.readings.pcie import PcieLink
from slicewatch.catalog.readings.power import Temperature
from slicewatch.catalog.readings.state import HEALTHY, Fabric
from slicewatch.catalog.readings.thermal import TemperatureMargin
from slicewatch.catalog.readings.utilization import Utilization
from slicewatch.catalog.state import FABRIC
from slicewatch.catalog.thermal import TEMPERATURE_MARGIN
from slicewatch.catalog.utilization import UTILIZATION
from testbed.health_fleet.showing import (
    Shows,
    all_of,
    answers_nothing,
    every_read_fails,
    hangs,
    is_held_down,
    is_slow,
    nothing,
    now_and_then,
    reads,
    refuses,
)

MINUTE: Final = 60.0
LINKS: Final = 18


class Family(StrEnum):
    """Where a fault comes from; ``NOISE`` is none."""

    GPU = "gpu"
    HBM = "hbm"
    SRAM = "sram"
    GSP = "gsp"
    HEAT = "heat"
    LINK = "link"
    NOISE = "noise"


SHARES: Final = {
    Family.GPU: 148,
    Family.HBM: 72,
    Family.SRAM: 19,
    Family.GSP: 17,
    Family.HEAT: 6,
    Family.LINK: 35,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An Xid that comes with it, so often, so far apart."""

    xid: int
    text: str = ""
    times: int = 1
    apart_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ailment:
    """Something that befalls one GPU.

    Attributes:
        asks: what a monitor has to come to for a fault; the most that it may for noise.
        within_seconds: by when it has to, with polls a minute apart.
        told: the Xids.
        shows: how it looks.
        mute: why the GPU answers nothing, in the exporter's word; empty while it answers.
        is_evident: whether it can be seen at any time, also by who has forgotten everything.
        is_steady: whether it looks the same as long as it lasts.
        lasts_seconds: of noise, how long it goes on.
    """

    name: str
    family: Family
    asks: Action
    within_seconds: float = 2 * MINUTE
    told: tuple[Told, ...] = ()
    shows: Shows = nothing
    mute: str = ""
    is_evident: bool = False
    is_steady: bool = True
    lasts_seconds: float = 10 * MINUTE

    @property
    def is_fault(self) -> bool:
        """Tell whether something is wrong with the GPU."""
        return self.family is not Family.NOISE


def _fault(name: str, family: Family, **chosen: object) -> Ailment:
    return Ailment(**{"name": name, "family": family, "asks": Action.CORDON, **chosen})  # type: ignore[arg-type]  # their names and types are those of the class


def _noise(name: str, asks: Action = Action.RECORD, **chosen: object) -> Ailment:
    # What is only told is over when it is told.
    lasts = {} if "shows" in chosen else {"lasts_seconds": 1.0}
    return Ailment(**{"name": name, "family": Family.NOISE, "asks": asks, **lasts, **chosen})  # type: ignore[arg-type]  # their names and types are those of the class


def _wants(action: Recovery) -> Shows:
    return reads(RECOVERY, RecoveryAction(RECOVERIES.index(action)))


def _ecc(*, corrected: int = 0, uncorrected: int = 0, before: int = 0) -> Shows:
    return reads(
        ECC,
        EccErrors(
            corrected_volatile=corrected,
            uncorrected_volatile=uncorrected,
            corrected_aggregate=corrected,
            uncorrected_aggregate=uncorrected + before,
        ),
    )


def _rows(*, uncorrectable: int = 1, pending: int = 0, failed: int = 0) -> Shows:
    rows = RemappedRows(correctable=0, uncorrectable=uncorrectable, pending=pending, failed=failed)
    return reads(REMAPPED_ROWS, rows)


def _sram(errors: int, *, exceeded: bool) -> Shows:
    counts = dict.fromkeys(SramErrors.__struct_fields__, 0)
    counts |= {"sec_ded_aggregate": errors, "sec_ded_volatile": errors, "l2_aggregate": errors}
    return reads(SRAM, SramErrors(**{**counts, "threshold_exceeded": int(exceeded)}))


def _hot(celsius: int, margin: int) -> Shows:
    return all_of(
        reads(TEMPERATURE, Temperature(celsius)),
        reads(TEMPERATURE_MARGIN, TemperatureMargin(margin)),
    )


def _link(generation: int, state: int) -> Shows:
    return all_of(
        reads(
            LINK,
            PcieLink(
                generation=generation, max_generation=5, gpu_max_generation=5,
                width=16, max_width=16,
            ),
        ),
        reads(PERFORMANCE_STATE, PerformanceState(state)),
    )  # fmt: skip


def _busy(percent: int) -> Shows:
    return reads(UTILIZATION, Utilization(samples=(), since_us=None, current_percent=percent))


def _links_up(number: int) -> Shows:
    return reads(STATES, Nvlinks((1,) * number + (0,) * (LINKS - number)))


_RESET: Final = _wants(Recovery.GPU_RESET)
_OLD_DRIVER: Final = refuses(RECOVERY)

FAULTS: Final = (
    _fault(
        "off_the_bus", Family.GPU, is_evident=True, mute="gpu_is_lost", shows=answers_nothing("gpu_is_lost"),
        told=(Told(xid=79, text="GPU has fallen off the bus."),),
    ),
    _fault("lost_silently", Family.GPU, is_evident=True, mute="gpu_is_lost", shows=answers_nothing("gpu_is_lost")),
    _fault(
        "answers_after_reset", Family.GPU, is_evident=True,
        mute="reset_required", shows=answers_nothing("reset_required"),
    ),
    _fault("halted", Family.GPU, is_evident=True, told=(Told(xid=62),), shows=_RESET),
    _fault("halted_under_old_driver", Family.GPU, told=(Told(xid=62),), shows=_OLD_DRIVER),
    _fault("reset_wanted", Family.GPU, is_evident=True, shows=_RESET),
    _fault("reboot_wanted", Family.GPU, is_evident=True, shows=_wants(Recovery.NODE_REBOOT)),
    _fault(
        "call_hangs", Family.GPU, mute="hang", shows=hangs("power"), is_steady=False,
        within_seconds=10 * MINUTE,
    ),
    _fault(
        "no_power_connector", Family.GPU, is_evident=True,
        shows=every_read_fails("INSUFFICIENT_POWER"), within_seconds=4 * MINUTE,
    ),
    _fault(
        "not_listed", Family.GPU,
        mute="gpu_not_found", shows=answers_nothing("gpu_not_found"), within_seconds=7 * MINUTE,
    ),
    _fault(
        "uncontained", Family.HBM, is_evident=True,
        told=(Told(xid=48), Told(xid=95, times=20, apart_seconds=0.1)),
        shows=all_of(_ecc(uncorrected=2), _RESET),
    ),
    _fault(
        "row_not_remapped", Family.HBM, is_evident=True, told=(Told(xid=64),),
        shows=all_of(_ecc(uncorrected=1), _rows(failed=1)), within_seconds=4 * MINUTE,
    ),
    _fault("many_uncorrected", Family.HBM, shows=_ecc(uncorrected=12), within_seconds=4 * MINUTE),
    _fault(
        "contained", Family.HBM, asks=Action.RESET, within_seconds=4 * MINUTE,
        told=(Told(xid=63), Told(xid=94)),
        shows=all_of(_ecc(uncorrected=1), _rows(pending=1), _wants(Recovery.DRAIN_AND_RESET)),
    ),
    _fault(
        "sram_worn", Family.SRAM, is_evident=True, told=(Told(xid=48), Told(xid=172)),
        shows=all_of(_ecc(uncorrected=3), _sram(5, exceeded=True)), within_seconds=4 * MINUTE,
    ),
    _fault("sram_worn_silently", Family.SRAM, is_evident=True, shows=_sram(5, exceeded=True), within_seconds=4 * MINUTE),
    _fault("gsp_timeout", Family.GSP, is_evident=True, told=(Told(xid=119, times=3, apart_seconds=6),), shows=_RESET),
    _fault("gsp_error_under_old_driver", Family.GSP, told=(Told(xid=120),), shows=_OLD_DRIVER),
    _fault(
        "overheated", Family.HEAT, is_evident=True, within_seconds=4 * MINUTE,
        shows=all_of(_hot(96, -9), is_held_down(ClockEvent.HW_THERMAL_SLOWDOWN)),
    ),
    _fault("links_down", Family.LINK, shows=_links_up(16), within_seconds=7 * MINUTE),
    _fault(
        "link_error", Family.LINK, is_evident=True, told=(Told(xid=74),),
        shows=all_of(_links_up(17), _RESET),
    ),
    _fault(
        "link_error_under_old_driver", Family.LINK,
        told=(Told(xid=74),), shows=all_of(_links_up(16), _OLD_DRIVER),
    ),
)  # fmt: skip

NOISE: Final = (
    _noise("xid_45_storm", told=(Told(xid=45, times=500, apart_seconds=0.4),)),
    _noise("program_faults", told=(Told(xid=13), Told(xid=43), Told(xid=45, times=8, apart_seconds=1))),
    _noise("program_faults_again", Action.WARN, told=(Told(xid=31, times=4, apart_seconds=120),)),
    _noise(
        "link_not_fatal",
        told=(Told(xid=145, text="RLW_REMAP Nonfatal XC0 i0 Link 03 (0x4 0x1 0x0 0x0 0x0 0x0 0x0)"),),
    ),
    _noise("number_without_a_name", Action.WARN, told=(Told(xid=199),)),
    _noise(
        "brake_of_the_site", Action.WARN,
        shows=is_held_down(ClockEvent.HW_POWER_BRAKE), lasts_seconds=90 * MINUTE,
    ),
    _noise(
        "brake_now_and_then", Action.WARN, lasts_seconds=60 * MINUTE, is_steady=False,
        shows=now_and_then(
            is_held_down(ClockEvent.HW_POWER_BRAKE), every_seconds=240, for_seconds=90
        ),
    ),
    _noise("no_margin", shows=reads(TEMPERATURE_MARGIN, TemperatureMargin(0))),
    _noise("beyond_its_margin", shows=reads(TEMPERATURE_MARGIN, TemperatureMargin(-3))),
    _noise("warm_as_usual", shows=_hot(88, 1)),
    _noise(
        "slowdown_for_a_moment", Action.WARN, is_steady=False,
        shows=now_and_then(
            is_held_down(ClockEvent.HW_THERMAL_SLOWDOWN, 0.02), every_seconds=600, for_seconds=60
        ),
    ),
    _noise("slow_link_at_rest", shows=_link(1, 8)),
    _noise(
        "link_wakes", is_steady=False,
        shows=all_of(_busy(50), now_and_then(_link(1, 0), every_seconds=180, for_seconds=60)),
    ),
    _noise(
        "no_fabric", shows=reads(FABRIC, Fabric(state=1, status=0, health_mask=0, health_summary=0))
    ),
    _noise(
        "fabric_says_little",
        shows=reads(FABRIC, Fabric(state=3, status=0, health_mask=0, health_summary=HEALTHY)),
    ),
    _noise("healed_long_ago", shows=all_of(_ecc(before=5), _rows(uncorrectable=1))),
    _noise(
        "corrected_errors_slow_calls", Action.WARN, lasts_seconds=15 * MINUTE, is_steady=False,
        shows=all_of(_ecc(corrected=17_700_000), is_slow("ecc", 50.0)),
    ),
)  # fmt: skip
"""In the order of how they are listed; ``schedule`` says how often each comes."""

BY_NAME: Final = {one.name: one for one in (*FAULTS, *NOISE)}
