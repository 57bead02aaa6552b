"""The checks on facts that were made up: each fault, and what a healthy node looks like."""

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.doctor.check import Verdict
from exporter.doctor.checks import ANYWHERE, WITH_GPUS, judge
from exporter.doctor.facts import Facts, Gpu, Machine, MigInstance, NoAnswer, Read
from exporter.nvml.protocol import Driver, Failed, Unsupported, Value
from exporter.tenants.protocol import Allocation, Offer
from slicewatch.catalog.gpm import GPM
from slicewatch.catalog.memory import MEMORY
from slicewatch.catalog.processes import PROCESS_UTILIZATION
from slicewatch.catalog.readings.gpm import Gpm
from slicewatch.catalog.readings.processes import ProcessUtilization
from slicewatch.catalog.readings.state import Modes
from slicewatch.catalog.state import MODES
from slicewatch.catalog.utilization import UTILIZATION
from slicewatch.wire.layout import Device

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "troubleshooting-a-node.md"
CHECKS = ANYWHERE + WITH_GPUS

GPU = Device(uuid="GPU-a", gpu=0, model="NVIDIA H100", minor=0, pci_bus_id="00000000:3B:00.0")
MIG = Device(
    uuid="GPU-b", gpu=1, model="NVIDIA H100", minor=1, pci_bus_id="00000000:5E:00.0",
    mig_enabled=True,
)  # fmt: skip
INSTANCE = Device(
    uuid="MIG-c", gpu=1, model="NVIDIA H100", parent="GPU-b", gpu_instance=7, compute_instance=0
)
MODES_ON = Modes(persistence=1, mig_current=0, mig_pending=0, ecc_current=1, ecc_pending=1)
NOTHING = Value(None)
SHARES = Value(ProcessUtilization((), None, 0, 0))


def whole(*, modes=MODES_ON, shares=SHARES, memory=NOTHING, **about):
    reads = (Read(GPU, MODES, Value(modes)), Read(GPU, PROCESS_UTILIZATION, shares),
             Read(GPU, MEMORY, memory), Read(GPU, GPM, Value(Gpm({}))))  # fmt: skip
    return Gpu(index=0, devices=(GPU,), reads=reads, **{"ahead_seconds": -0.1} | about)


def partitioned(*devices, utilization=NOTHING, **about):
    reads = tuple(Read(device, UTILIZATION, utilization) for device in devices)
    return Gpu(index=1, devices=(MIG, *devices), reads=reads, **about)


def machine(**about):
    healthy = {
        "module": "580.95.05",
        "pci_gpus": {"0000:3b:00.0": "nvidia", "0000:5e:00.0": "nvidia"},
        "files": {"/dev/nvidiactl": "", "/dev/nvidia-uvm": "", "/dev/nvidia0": ""},
        "instances": frozenset({MigInstance(1, 7, 0)}),
    }
    return Machine(**healthy | about)


HEALTHY = Facts(
    library="/usr/lib/libnvidia-ml.so.580.95.05",
    machine=machine(),
    driver=Driver(driver="580.95.05", nvml="13.580.95.05", cuda="13.0"),
    gpus=(whole(), partitioned(INSTANCE)),
    allocations=(
        Allocation(namespace="n", pod="p", container="c", resource="nvidia.com/gpu",
                   device_id="GPU-a::3"),
    ),
    offers=(Offer("nvidia.com/mig-1g.10gb", "MIG-c"), Offer("example.com/nic", "0000:01:00.0")),
    services={"settings": "valid", "port": "free", "processes": "all", "container-links": "9",
              "dcgm": "page", "api-server": "lists"},
)  # fmt: skip


def found(facts):
    return {finding.check: finding for finding in judge(facts)}


def test_on_a_healthy_node_every_check_is_good():
    findings = judge(HEALTHY)
    assert {f.check for f in findings} == {check.id for check in CHECKS}
    assert {f.verdict for f in findings} == {Verdict.OK}
    assert not any(finding.remedy for finding in findings)


def gpus(*some):
    return {"gpus": some}


def driver(reason, why="it says why"):
    return {"driver": NoAnswer(why, reason), "gpus": ()}


def files(**faults):
    return {
        "machine": machine(files={f"/dev/{n.replace('_', '-')}": w for n, w in faults.items()})
    }


FAULTS = [
    ("driver-library", {"library": NoAnswer("no such file")}, "failed", "no such file"),
    ("kernel-module", driver("no_driver") | {"machine": machine(module="")}, "failed", "none"),
    ("kernel-module", {"machine": machine(module="")}, "unknown", "procfs"),
    ("kernel-module", {"machine": NoAnswer("no answer in time")}, "unknown", "in time"),
    # driver/library mismatch, nvtop #95 and #125
    ("driver-versions", driver("version_mismatch"), "failed", "module 580.95.05, library /usr/lib"),
    ("nvml", driver("unknown", "NVML answers UNKNOWN"), "failed", "UNKNOWN"),
    # DataDog #54128: after a restart of the container alone
    ("device-files", files(nvidia0="missing", nvidiactl=""), "failed", "/dev/nvidia0: missing"),
    ("device-files", files(nvidiactl="Operation not permitted"), "failed", "not permitted"),
    ("device-files", files(nvidia_uvm="missing", nvidiactl=""), "warning", "uvm"),
    # gpu-monitoring-tools #142
    ("device-files", {"machine": machine(files={"/dev/nvidia-caps/nvidia-cap3": "missing"})},
     "warning", "nvidia-cap3"),
    # dcgm-exporter #348: a GPU off the bus vanishes silently
    ("gpus-on-bus", gpus(whole()), "failed", "0000:5e:00.0 (nvidia)"),
    ("gpus-on-bus", {"machine": machine(pci_gpus=None)}, "unknown", "sysfs"),
    ("gpus-on-bus", driver("unknown"), "unknown", "2 on the bus"),
    ("gpus-answer", gpus(Gpu(index=0, silence="no answer in time when asked for memory of GPU-a"),
                         partitioned(INSTANCE)), "failed", "GPU 0: no answer in time"),
    # HAMi #1089
    ("readings", gpus(whole(memory=Failed("UNKNOWN"))), "warning", "GPU 0 memory: UNKNOWN"),
    ("permissions", gpus(whole(memory=Unsupported("permission"))), "failed",
     "gpu_memory_used_bytes"),
    ("persistence-mode", gpus(whole(modes=msgspec.structs.replace(MODES_ON, persistence=0))),
     "warning", "GPU 0: off"),
    ("sample-clock", gpus(whole(ahead_seconds=3600.0)), "failed", "3600 s ahead"),
    # HAMi #601
    ("process-utilization", gpus(whole(shares=Unsupported("device"))), "warning", "device"),
    ("mig-instances", gpus(partitioned()) | {"machine": machine(instances=None)}, "warning",
     "GPU 1: none"),
    ("mig-instances", gpus(partitioned()), "failed", "instance 7/0 has no uuid or attributes"),
    ("mig-pending", gpus(whole(mig_change_pending=True)), "warning", "GPU 0"),
    # dcgm-exporter #726 and #216: nothing under MIG on Ampere, and it is said why
    ("gpm", gpus(partitioned(INSTANCE, utilization=Unsupported("mig_instance"))), "warning",
     "1 MIG instances without utilization (mig_instance)"),
    ("gpm", gpus(partitioned(INSTANCE, utilization=Unsupported("shared_gpu_instance"))),
     "warning", "share"),
    ("gpm", gpus(replace(whole(), reads=whole().reads[:3])), "unknown", "beside an exporter"),
    ("kubelet", {"allocations": NoAnswer("nobody listens")}, "failed", "nobody"),
    ("kubelet", {"offers": NoAnswer("UNIMPLEMENTED")}, "warning", "UNIMPLEMENTED"),
    # dcgm-exporter #349, #411: ids that match no device
    ("device-ids", {"offers": (Offer("nvidia.com/gpu", "GPU-gone"),)}, "warning", "GPU-gone"),
    *((name, {"services": {name: NoAnswer("it is wrong")}}, "failed", "it is wrong")
      for name in HEALTHY.services),
]  # fmt: skip


@pytest.mark.parametrize(("check", "fault", "verdict", "seen"), FAULTS, ids=lambda v: str(v)[:30])
def test_a_fault_is_named_with_what_to_do(check, fault, verdict, seen):
    finding = found(replace(HEALTHY, **fault))[check]
    assert finding.verdict == verdict
    assert seen in finding.seen
    assert bool(finding.remedy) == (verdict in {"warning", "failed"})


def test_every_check_has_a_fault_above():
    assert {fault[0] for fault in FAULTS} == {check.id for check in CHECKS}


def test_the_guide_lists_every_check_and_no_other():
    _, _, text = GUIDE.read_text(encoding="utf-8").partition("## The checks")
    listed = re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE)
    assert listed == [check.id for check in CHECKS]


def test_a_node_without_gpus_is_told_so_and_nothing_fails():
    """Without a GPU, whatever GPUs need may be absent."""
    nothing = replace(
        HEALTHY, machine=machine(module="", pci_gpus={}, files={}), gpus=(),
        driver=NoAnswer("no", "no_library"), library=NoAnswer("no"), allocations=NoAnswer("no"),
    )  # fmt: skip
    findings = found(nothing)
    assert set(findings) == {check.id for check in ANYWHERE}
    assert findings["gpus-on-bus"].verdict is Verdict.OK
    assert "no NVIDIA GPU" in findings["gpus-on-bus"].seen


def test_a_gpu_that_was_handed_to_a_virtual_machine_is_not_missed():
    shown = {"0000:3b:00.0": "nvidia", "0000:5e:00.0": "nvidia", "0000:9a:00.0": "vfio-pci"}
    assert found(replace(HEALTHY, machine=machine(pci_gpus=shown)))["gpus-on-bus"].verdict == "ok"


def test_utilization_under_mig_that_dcgm_fills_in_is_not_missed():
    absent = partitioned(INSTANCE, utilization=Unsupported("mig_instance"))
    finding = found(replace(HEALTHY, gpus=(absent,), dcgm=True))["gpm"]
    assert finding.verdict is Verdict.OK
    assert "dcgm_url" in finding.seen


def test_other_vendors_devices_are_not_looked_up():
    offers = (Offer("example.com/nic", "0000:01:00.0"),)
    assert "device-ids" not in found(replace(HEALTHY, allocations=(), offers=offers))


def answers(name):
    return st.sampled_from([getattr(HEALTHY, name), None, NoAnswer("silent")])


@given(
    library=answers("library"), machine=answers("machine"), allocations=answers("allocations"),
    offers=answers("offers"), driver=st.sampled_from([HEALTHY.driver, NoAnswer("silent")]),
    silent=st.sets(st.integers(0, 1)),
)  # fmt: skip
def test_whatever_is_not_known_no_check_raises_and_none_calls_it_good(silent, **facts):
    gpus = tuple(
        Gpu(index=g.index, silence="hangs") if g.index in silent else g for g in HEALTHY.gpus
    )
    up = isinstance(facts["driver"], Driver)
    findings = found(replace(HEALTHY, gpus=gpus if up else (), **facts))
    if isinstance(facts["machine"], NoAnswer):
        assert findings["kernel-module"].verdict is Verdict.UNKNOWN
    assert (findings["nvml"].verdict is Verdict.OK) == up
    if up and silent:
        assert findings["gpus-answer"].verdict is Verdict.FAILED
    if isinstance(facts["allocations"], NoAnswer):
        assert findings["kubelet"].verdict is Verdict.FAILED
