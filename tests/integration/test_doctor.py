"""The doctor on the C library that plays the driver: each of its faults has the right verdict."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pynvml
import pytest

from exporter.doctor.checks import judge
from exporter.doctor.collection import collect
from exporter.doctor.devices import real_driver
from exporter.settings import ExporterSettings
from simulator import scenario
from simulator.fleet import Fleet
from slicewatch.service.server import Address
from testbed.binaries import Unavailable
from testbed.driver import build
from testbed.driver.feeder import DriverFeed
from testbed.driver.worlds import driver_world
from testbed.require import skip_or_fail

ROOT = Path(__file__).parents[2]
SCENARIO = """
nodes:
  - name: n
    gpus:
      - {model: H100-80GB}
      - {model: H100-80GB, mig: [1g.10gb, 2g.20gb]}
      - {model: A100-80GB, mig: [3g.40gb]}
workloads:
  - name: load
    load: 0.5
    memory: 8GiB
    pods: [{name: a, devices: [{node: n, gpu: 0}]}]
"""
WHOLE, PARTITIONED, AMPERE = 0, 1, 2


@pytest.fixture
def world(tmp_path):
    try:
        found = driver_world(SCENARIO, tmp_path / "driver.state")
    except Unavailable as why:
        skip_or_fail(str(why))
    found.advance(30)
    yield found
    # The library keeps the state that it began with until everybody has shut it down.
    found.clear()
    for thread in [one for one in threading.enumerate() if one.name == "doctor"]:
        thread.join(timeout=20)
    while found.driver.references:
        pynvml.nvmlShutdown()


@pytest.fixture
def machine(world, tmp_path):
    """Files as the kernel of the world's node would show them."""
    root = tmp_path / "root"
    driver = root / "proc/driver/nvidia"
    write(driver / "version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue\n")
    for name in ("nvidiactl", "nvidia-uvm"):
        write(root / "dev" / name, "")
    for gpu in world.node.gpus:
        address = gpu.identity.pci_bus_id[-12:].lower()
        write(driver / f"gpus/{address}/information", f"Device Minor: {gpu.identity.minor}\n")
        write(root / f"dev/nvidia{gpu.identity.minor}", "")
        write(root / f"sys/bus/pci/devices/{address}/vendor", "0x10de\n")
        write(root / f"sys/bus/pci/devices/{address}/class", "0x030200\n")
        for one in gpu.mig_devices:
            place = f"gi{one.gpu_instance_id}/ci{one.compute_instance_id}"
            write(driver / f"capabilities/gpu{gpu.identity.minor}/mig/{place}/access", "")
    return root


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def examine(world, root, *, now_s=0.0, patience_seconds=20.0, **about):
    """Return the findings by check."""

    def now_us():
        return world.fleet.clock.epoch_us + round(1e6 * (world.fleet.now + now_s))

    defaults = {"kubelet_socket": "", "listen": Address("127.0.0.1", 0)}
    settings = ExporterSettings(**defaults | about)
    facts = collect(
        settings, real_driver(now_us), now_us=now_us, root=root, patience_seconds=patience_seconds
    )
    return {finding.check: finding for finding in judge(facts)}


def wrong(findings):
    """Return the checks of the driver and its GPUs that are not good, with their verdicts."""
    # This machine may have no kubelet, whose links these are, and a PID namespace of its own.
    ours = {
        name: f for name, f in findings.items() if name not in {"container-links", "processes"}
    }
    return {name: str(f.verdict) for name, f in ours.items() if f.verdict != "ok"}


def test_of_a_good_node_only_what_ampere_lacks_is_said(world, machine):
    findings = examine(world, machine)
    assert wrong(findings) == {"gpm": "warning"}
    assert "1 MIG instances without utilization (mig_instance)" in findings["gpm"].seen
    assert findings["mig-instances"].seen == "3 instances"
    assert findings["gpus-on-bus"].seen == "3 on the bus, 3 in NVML"
    assert findings["driver-library"].seen.endswith("libnvidia-ml.so.1")
    assert findings["sample-clock"].verdict == "ok"
    assert world.driver.references == 0


@pytest.mark.parametrize("kind", [scenario.Lost, scenario.ResetRequired])
def test_a_gpu_that_is_gone_does_not_answer(kind, world, machine):
    """dcgm-exporter #348."""
    world.inject(kind(node="n", gpu=WHOLE))
    findings = examine(world, machine)
    assert wrong(findings)["gpus-answer"] == "failed"
    assert findings["gpus-answer"].seen.startswith("GPU 0: ")
    assert findings["mig-instances"].seen == "3 instances"


def test_a_gpu_that_hangs_is_named_in_time(world, machine):
    """dcgm-exporter #215: every call on one GPU hangs until a reboot."""
    world.inject(scenario.Hang(node="n", gpu=WHOLE))
    began = time.monotonic()
    findings = examine(world, machine, patience_seconds=3.0)
    assert time.monotonic() - began < 10
    assert findings["gpus-answer"].verdict == "failed"
    assert "GPU 0: no answer in time when asked for its identity" in findings["gpus-answer"].seen
    assert findings["mig-instances"].seen == "3 instances"


def test_a_driver_that_is_not_loaded_fails(world, machine):
    (machine / "proc/driver/nvidia/version").unlink()
    world.inject(scenario.DriverGone(node="n"))
    verdicts = wrong(examine(world, machine))
    assert verdicts == {"kernel-module": "failed", "nvml": "failed", "gpus-on-bus": "unknown"}


def test_a_driver_that_was_replaced_under_its_library_says_mismatch(world, machine):
    """nvtop #95: driver and library differ after an upgrade, until the node is rebooted."""
    world.inject(scenario.DriverVersion(node="n", version="590.48.01", lasts=60))
    findings = examine(world, machine)
    assert findings["driver-versions"].verdict == "failed"
    assert "module 580.95.05" in findings["driver-versions"].seen
    assert "reboot" in findings["driver-versions"].remedy


def test_device_files_that_are_lost_are_named(world, machine):
    """DataDog #54128: NVML's start answers UNKNOWN after a container alone restarted."""
    (machine / "dev/nvidia0").unlink()
    system = world.feed.file._shared.system
    system.init_error = 999
    findings = examine(world, machine)
    assert "UNKNOWN" in findings["nvml"].seen
    assert wrong(findings)["device-files"] == "failed"
    assert "dev/nvidia0: No such file" in findings["device-files"].seen


def test_a_gpu_that_nvml_does_not_count_is_missed_on_the_bus(world, machine):
    address = machine / "sys/bus/pci/devices/0000:ff:00.0"
    write(address / "vendor", "0x10de")
    write(address / "class", "0x030200")
    finding = examine(world, machine)["gpus-on-bus"]
    assert finding.verdict == "failed"
    assert "4 on the bus, 3 in NVML; not seen there: 0000:ff:00.0 (no driver)" in finding.seen


@pytest.mark.parametrize("call", ["nvmlDeviceGetAttributes_v2", "nvmlDeviceGetGpuInstanceId"])
def test_an_instance_that_nvml_does_not_describe_is_named(call, world, machine):
    world.fail(PARTITIONED, **{call: pynvml.NVML_ERROR_UNKNOWN})
    finding = examine(world, machine)["mig-instances"]
    assert finding.verdict == "failed"
    assert finding.seen.count("GPU 1: instance") == 2


def test_mig_without_instances_and_one_that_waits_for_a_reset_are_told(world, machine):
    world.inject(scenario.MigLayout(node="n", gpu=AMPERE, mig=()))
    world.inject(scenario.MigPending(node="n", gpu=WHOLE))
    (machine / "proc/driver/nvidia/capabilities").rename(machine / "hidden")
    findings = examine(world, machine)
    assert findings["mig-instances"].seen == "GPU 2: none"
    assert findings["mig-pending"].seen == "GPU 0: waits"


def test_what_is_refused_costs_metrics_that_are_named(world, machine):
    world.fail(WHOLE, nvmlDeviceGetMemoryInfo_v2=pynvml.NVML_ERROR_NO_PERMISSION,
               nvmlDeviceGetMemoryInfo=pynvml.NVML_ERROR_NO_PERMISSION)  # fmt: skip
    finding = examine(world, machine)["permissions"]
    assert finding.verdict == "failed"
    assert "gpu_memory_used_bytes" in finding.seen


def test_a_read_that_fails_is_a_warning_and_costs_nothing_else(world, machine):
    """HAMi #1089: one call of one GPU that answers UNKNOWN."""
    world.fail(WHOLE, nvmlDeviceGetMemoryInfo_v2=pynvml.NVML_ERROR_UNKNOWN)
    findings = examine(world, machine)
    assert wrong(findings) == {"gpm": "warning", "readings": "warning"}
    assert findings["readings"].seen == "GPU 0 memory: UNKNOWN"


def test_persistence_mode_that_is_off_is_a_hint(world, machine):
    world.answer(WHOLE, lambda into: into.put("nvmlDeviceGetPersistenceMode", 0))
    assert examine(world, machine)["persistence-mode"].seen == "GPU 0: off"


def test_a_gpu_without_utilization_of_processes_is_told(world, machine):
    """HAMi #601: the call is not supported there, nor is the newer one."""

    def forget(into):
        into.forget("nvmlDeviceGetProcessUtilization")
        into.forget("nvmlDeviceGetProcessesUtilizationInfo")

    world.answer(WHOLE, forget)
    assert examine(world, machine)["process-utilization"].seen == "GPU 0: device"


def test_samples_of_the_future_are_told(world, machine):
    finding = examine(world, machine, now_s=-3600.0)["sample-clock"]
    assert finding.verdict == "failed"
    assert "GPU 0: 3600 s ahead" in finding.seen


def test_beside_whatever_has_the_port_no_sample_of_gpm_is_taken(world, machine):
    """DataDog #54458: a driver may crash under two samplers."""

    def samples():
        return sum(n for call, n in world.driver.calls().items() if "GpmSampleGet" in call)

    world.driver.forget_calls()
    examine(world, machine)
    assert samples() > 0
    world.driver.forget_calls()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        findings = examine(world, machine, listen=Address(*taken.getsockname()))
    assert samples() == 0
    assert findings["gpm"].verdict == "unknown"


def doctor(*arguments, **environment):
    """Run the subcommand in a process; return it and its findings."""
    program = "import os, sys; from cli.doctor import run; sys.exit(run(sys.argv[1:], os.environ))"
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True, text=True, timeout=60, check=False, cwd=ROOT,
        env=dict(os.environ) | environment,
    )  # fmt: skip
    findings = json.loads(done.stdout)["findings"] if "--json" in arguments else []
    return done, {finding["check"]: finding for finding in findings}


def test_a_process_asks_the_library_that_it_is_given(tmp_path):
    try:
        with DriverFeed(Fleet.load(SCENARIO).nodes[0], tmp_path / "state"):
            variables = build.environment(tmp_path / "state")
            done, findings = doctor("--json", "--listen=127.0.0.1:0", **variables)
    except Unavailable as why:
        skip_or_fail(str(why))
    assert findings["nvml"]["verdict"] == "ok"
    assert findings["gpus-answer"]["seen"] == "all 3"
    assert findings["driver-library"]["seen"] == str(build.library().resolve())
    assert done.returncode == any(f["verdict"] == "failed" for f in findings.values())


def test_a_simulated_node_is_good_and_shown_as_plain_text():
    done, _ = doctor("--simulate=demo", "--listen=127.0.0.1:0", "--kubelet-socket=")
    assert (done.returncode, done.stderr) == (0, "")
    assert "gpus-answer" in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stdout.rstrip().endswith("0 failed, 0 unknown")


def test_a_simulated_gpu_that_is_lost_makes_the_status_1(tmp_path):
    file = tmp_path / "lost.yaml"
    file.write_text(
        "nodes: [{name: n, gpus: [{model: T4}]}]\n"
        "faults: [{kind: lost, node: n, gpu: 0, at: 0s}]\n"
    )
    done, findings = doctor("--json", f"--simulate={file}", "--listen=127.0.0.1:0")
    assert done.returncode == 1
    assert findings["gpus-answer"]["verdict"] == "failed"


@pytest.mark.parametrize("arguments", [("--lsiten=:1",), ("--simulate=nowhere.yaml",)])
def test_wrong_usage_is_2_and_says_what(arguments):
    done, _ = doctor(*arguments)
    assert done.returncode == 2
    assert "slicewatch doctor: " in done.stderr


def test_a_settings_file_that_is_wrong_is_a_finding(tmp_path):
    """dcgm-exporter #118, #318: a file that it cannot use is said, and the rest is looked at."""
    file = tmp_path / "settings.yaml"
    file.write_text("tick_secnds: 1\n")
    options = ("--json", "--simulate=demo", "--listen=127.0.0.1:0", f"--config={file}")
    done, findings = doctor(*options)
    assert done.returncode == 1
    assert "tick_secnds" in findings["settings"]["seen"]
    assert findings["gpus-answer"]["verdict"] == "ok"


def test_beside_a_running_exporter_its_readiness_is_told():
    exporter = subprocess.Popen(
        [sys.executable, "-m", "cli", "exporter", "--simulate=demo", "--listen=127.0.0.1:0",
         "--kubelet-socket="],
        stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    try:
        lines = (json.loads(line) for line in exporter.stderr)
        address = next(line["address"] for line in lines if line["event"] == "serving")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            _, findings = doctor("--json", "--simulate=demo", f"--listen={address}")
            if findings["port"]["verdict"] == "ok":
                break
        assert findings["port"]["seen"] == "an exporter: [+]snapshots ok"
    finally:
        exporter.send_signal(signal.SIGTERM)
        exporter.communicate(timeout=30)
