"""Does every GPU answer, and does it tell what the exporter reads?"""

from collections.abc import Iterator
from typing import Final

from exporter.doctor.check import Judged, Verdict, check, listed
from exporter.doctor.facts import Facts, Read, word
from exporter.nvml.protocol import Failed, Lost, Unsupported, Value
from exporter.nvml.samples import AHEAD_US
from slicewatch.catalog import CATALOG
from slicewatch.catalog.index import reads_of
from slicewatch.catalog.processes import PROCESS_UTILIZATION
from slicewatch.catalog.state import MODES

_REFUSED: Final = Unsupported("permission")
_MOST_AHEAD_SECONDS: Final = AHEAD_US / 1e6


@check(
    "drain the node; once nothing uses the GPU reset it (nvidia-smi --gpu-reset -i <n>) or reboot;"
    " the Xid in the kernel log says what it is, and whether it needs repair"
)
def gpus_answer(facts: Facts) -> Judged:
    """Whether each GPU says who it is and which devices it has."""
    silent = (f"GPU {gpu.index}: {gpu.silence}" for gpu in facts.gpus if gpu.silence)
    return listed(silent, Verdict.FAILED, f"all {len(facts.gpus)}") if facts.gpus else None


@check(
    "run this again: once means little; a read that goes on failing costs its own metrics alone,"
    " and NVIDIA's support wants nvidia-bug-report.sh"
)
def readings(facts: Facts) -> Judged:
    """Whether every read of every device works."""
    failed = (
        f"{_name(read)} {read.probe.name}: {word(read.outcome)}"
        for read in facts.reads
        if isinstance(read.outcome, Failed | Lost)
    )
    return listed(failed, Verdict.WARNING, f"{len(facts.reads)} reads") if facts.reads else None


@check(
    "run as root with all devices; for MIG set NVIDIA_MIG_MONITOR_DEVICES=all or run privileged"
)
def permissions(facts: Facts) -> Judged:
    """Whether the driver refuses reads to this user, and which metrics that costs."""
    refused = {read.probe.name: read.probe for read in facts.reads if read.outcome == _REFUSED}
    lost = (
        f"{name}, which costs {', '.join(m.name for m in CATALOG if probe in reads_of(m))}"
        for name, probe in sorted(refused.items())
    )
    return listed(lost, Verdict.FAILED, "nothing is refused") if facts.reads else None


@check(
    "run nvidia-persistenced on the host: without it a GPU that nobody uses is put down, the next"
    " read takes seconds, and its counters begin anew"
)
def persistence_mode(facts: Facts) -> Judged:
    """Whether the driver keeps GPUs initialised while nobody uses them."""
    modes = [(r, r.outcome.value) for r in _of(facts, MODES.name) if isinstance(r.outcome, Value)]
    off = (f"{_name(read)}: off" for read, mode in modes if mode.persistence == 0)
    return listed(off, Verdict.WARNING, "on") if modes else None


@check(
    "the clock was set back, or is not the host's: let chrony or ntpd keep it; samples from the"
    " future are dropped until it is there"
)
def sample_clock(facts: Facts) -> Judged:
    """The driver's time stamps against our clock."""
    ahead = {g.index: g.ahead_seconds for g in facts.answering if g.ahead_seconds is not None}
    late = (f"GPU {i}: {s:.0f} s ahead" for i, s in ahead.items() if s > _MOST_AHEAD_SECONDS)
    return listed(late, Verdict.FAILED, "no sample is from the future") if ahead else None


@check(
    "another driver may: until then busy shares and contention of tenants are absent there, and an"
    " HPA gets the value of the device"
)
def process_utilization(facts: Facts) -> Judged:
    """Whether GPUs that are not partitioned tell how busy each process keeps them."""
    asked = [r for r in _of(facts, PROCESS_UTILIZATION.name) if not r.device.mig_enabled]
    without = (f"{_name(r)}: {word(r.outcome)}" for r in asked if not isinstance(r.outcome, Value))
    return listed(without, Verdict.WARNING, f"all {len(asked)}") if asked else None


def _of(facts: Facts, probe: str) -> Iterator[Read]:
    return (read for read in facts.reads if read.probe.name == probe)


def _name(read: Read) -> str:
    return read.device.uuid if read.device.is_mig else f"GPU {read.device.gpu}"
