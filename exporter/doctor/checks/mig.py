"""Is what partitioned GPUs consist of all there, and can it be measured?"""

from collections import Counter

from exporter.doctor.check import Judged, Verdict, check, listed
from exporter.doctor.facts import Facts, Gpu, Machine
from exporter.nvml.gpm import comes_from_counters
from exporter.nvml.protocol import Unsupported, Value
from slicewatch.catalog.gpm import ASKED
from slicewatch.catalog.utilization import UTILIZATION


@check(
    "create instances (nvidia-smi mig -cgi <profiles> -C, or the label nvidia.com/mig.config) or"
    " turn MIG off; destroy one that NVML does not describe, and create it anew"
)
def mig_instances(facts: Facts) -> Judged:
    """The instances of GPUs in MIG mode, by NVML and by the kernel."""
    partitioned = _partitioned(facts)
    hidden = [fault for gpu in partitioned for fault in _hidden(gpu, facts)]
    empty = (f"GPU {gpu.index}: none" for gpu in partitioned if len(gpu.devices) == 1)
    if hidden:
        return Verdict.FAILED, "; ".join(hidden)
    count = sum(len(gpu.devices) - 1 for gpu in partitioned)
    return listed(empty, Verdict.WARNING, f"{count} instances") if partitioned else None


@check(
    "stop whatever uses the GPU (the exporter itself can release it) and reset it with nvidia-smi"
    " --gpu-reset -i <n>, or reboot"
)
def mig_pending(facts: Facts) -> Judged:
    """Whether a change of MIG mode waits for a reset."""
    waiting = (f"GPU {gpu.index}: waits" for gpu in facts.answering if gpu.mig_change_pending)
    return listed(waiting, Verdict.WARNING, "none waits") if facts.answering else None


@check(
    "mig_instance: NVML has it only since Hopper, so name a dcgm-exporter of this node in dcgm_url;"
    " shared_gpu_instance: give each GPU instance one compute instance"
)
def gpm(facts: Facts) -> Judged:
    """Counters of GPM, which Hopper and newer have, and utilization under MIG, made of them."""
    if not facts.reads:
        return None
    counted = [r for r in facts.reads if comes_from_counters(r.probe.name, r.device)]
    if not counted:
        return Verdict.UNKNOWN, "not tried beside an exporter that runs; see gpu_metric_supported"
    having = {r.device for r in counted if r.probe.name in ASKED and isinstance(r.outcome, Value)}
    seen = f"on {len(having)} of {len(facts.devices)} devices"
    absent = Counter(
        r.outcome.reason
        for r in counted
        if r.device.is_mig and r.probe is UTILIZATION and isinstance(r.outcome, Unsupported)
    )
    if absent and facts.dcgm:
        return Verdict.OK, f"{seen}; utilization of the others is taken from dcgm_url"
    faults = (
        f"{count} MIG instances without utilization ({why})" for why, count in absent.items()
    )
    return listed(faults, Verdict.WARNING, seen)


def _partitioned(facts: Facts) -> list[Gpu]:
    return [gpu for gpu in facts.answering if gpu.devices[0].mig_enabled]


def _hidden(gpu: Gpu, facts: Facts) -> list[str]:
    """Return what the kernel has and NVML does not describe."""
    machine = facts.machine
    there = (isinstance(machine, Machine) and machine.instances) or frozenset()
    described = {(d.gpu_instance, d.compute_instance) for d in gpu.devices}
    return [
        f"GPU {gpu.index}: instance {gi}/{ci} has no uuid or attributes in NVML"
        for minor, gi, ci in sorted(there)
        if minor == gpu.devices[0].minor and (gi, ci) not in described
    ]
