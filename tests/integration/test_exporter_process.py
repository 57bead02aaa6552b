"""The exporter as the process that runs on a node: started, asked, hung, stopped, misconfigured."""

import gzip
import http.client
import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_text

from slicewatch.catalog import CATALOG
from slicewatch.wire.snapshot import decode
from testbed import binaries
from testbed.require import skip_or_fail

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 30.0
QUICK = ("--tick-seconds", "0.2", "--window-seconds", "1", "--stale-seconds", "2")
HANGING = """
nodes:
  - name: n
    gpus: [{model: H100-80GB, count: 3}]
faults:
  - {kind: hang, node: n, gpu: 1, at: 4s}
"""
USERS_FILE = {
    "metrics": [
        "gpu_utilization", "gpu_memory_utilization", "gpu_memory_used_bytes",
        "gpu_memory_total_bytes", "gpu_power_usage_watts", "gpu_temperature_celsius",
        "gpu_sm_clock_mhz", "gpu_mem_clock_mhz",
    ],
    "scrape_interval": "15s",
    "labels": {"cluster": "production", "region": "cn-east"},
}  # fmt: skip


def command(*arguments):
    return [sys.executable, "-m", "cli", "exporter", *arguments]


class Exporter:
    """A running exporter: its log as it is written, and a client of its port."""

    def __init__(self, process):
        self.process = process
        self.log = []
        self._lines = Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.host, _, port = self.wait_for("serving")["address"].rpartition(":")
        self.port = int(port)

    def wait_for(self, event):
        """Return the first log entry of that event; fail with the log where none comes."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            try:
                line = self._lines.get(timeout=0.1)
            except Empty:
                if self.process.poll() is not None:
                    break
                continue
            self.log.append(line)
            entry = json.loads(line)
            if entry["event"] == event:
                return entry
        raise AssertionError(f"no {event!r} in the log:\n" + "".join(self.log))

    @contextmanager
    def asked(self, path, **headers):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=DEADLINE_SECONDS)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request("GET", path, headers=named)
            yield connection.getresponse()
        finally:
            connection.close()

    def get(self, path, **headers):
        with self.asked(path, **headers) as response:
            return response.status, dict(response.getheaders()), response.read()

    def samples(self, **headers):
        _, _, body = self.get("/metrics", **headers)
        return [s for family in read_text(body.decode()) for s in family.samples]

    def until(self, condition):
        """Ask for metrics until they meet the condition; return them."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            samples = self.samples()
            if condition(samples):
                return samples
        raise AssertionError("the metrics never came to be as expected")

    def terminate(self):
        """Send SIGTERM; return the exit status and the seconds that it took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(DEADLINE_SECONDS)
        return status, time.monotonic() - began

    def _read(self):
        for line in self.process.stderr:
            self._lines.put(line)


@pytest.fixture
def start():
    """Start exporters that are ended with the test, however it ends."""
    processes = []

    def start(*arguments):
        process = subprocess.Popen(
            command("--listen", "127.0.0.1:0", "--kubelet-socket", "", *arguments),
            cwd=ROOT, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        processes.append(process)
        return Exporter(process)

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.fixture(scope="module")
def demo():
    """One exporter of the demo's node with MIG, for all tests that only ask it."""
    process = subprocess.Popen(
        command(
            "--listen", "127.0.0.1:0", "--kubelet-socket", "", "--simulate", "demo",
            "--simulate-node", "gpu-b", "--node-name", "gpu-b", *QUICK,
        ),
        cwd=ROOT, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        exporter = Exporter(process)
        exporter.until(lambda samples: count(samples, "gpu_memory_used_bytes") == 9)
        yield exporter
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def value(samples, name, **labels):
    """Return the value of the one series of these labels, or None."""
    found = [s.value for s in samples if s.name == name and labels.items() <= s.labels.items()]
    return found[0] if len(found) == 1 else None


def count(samples, name):
    """Return how many series a name has."""
    return sum(s.name == name for s in samples)


def test_metrics_are_prometheus_text_with_the_devices_of_the_node(demo):
    samples = demo.samples()
    used = [s for s in samples if s.name == "gpu_memory_used_bytes"]
    assert sorted(s.labels.get("profile", "") for s in used) == [
        "", "", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "2g.20gb", "2g.20gb", "3g.40gb",
    ]  # fmt: skip
    assert {s.labels["node"] for s in used} == {"gpu-b"}
    assert {s.value for s in samples if s.name == "gpu_up"} == {1}
    assert value(samples, "slicewatch_driver_up") == 1


def test_metrics_are_open_metrics_for_who_asks(demo):
    _, headers, body = demo.get("/metrics", Accept="application/openmetrics-text;version=1.0.0")
    assert headers["Content-Type"].startswith("application/openmetrics-text")
    names = {family.name for family in read_open(body.decode())}
    assert {"gpu_memory_used_bytes", "gpu_energy_joules", "gpu"} <= names


def test_metrics_are_compressed_for_who_takes_it(demo):
    _, headers, body = demo.get("/metrics", Accept_Encoding="gzip")
    assert headers["Content-Encoding"] == "gzip"
    assert b"gpu_memory_used_bytes{" in gzip.decompress(body)


def test_a_snapshot_is_a_frame_that_the_adapter_reads(demo):
    status, headers, body = demo.get("/snapshot")
    assert (status, headers["Content-Type"].split(";")[0]) == (200, "application/json")
    frame = decode(body)
    assert frame.layout.node == "gpu-b"
    assert len(frame.layout.devices) == 9
    assert all(frame.snapshot.up)


def test_a_stream_sends_a_frame_with_every_tick(demo):
    with demo.asked("/snapshot?watch=true") as response:
        frames = [decode(response.readline()) for _ in range(4)]
    sequence = [frame.snapshot.sequence for frame in frames]
    assert sequence == list(range(sequence[0], sequence[0] + 4))
    assert [frame.layout is None for frame in frames] == [False, True, True, True]


def test_it_is_alive_and_ready(demo):
    assert demo.get("/livez")[0] == 200
    assert demo.get("/readyz")[0] == 200


def test_promtool_finds_nothing_to_complain_about(demo):
    # One that was built for other tests will do; to build one for this would take minutes.
    built = binaries.cache() / f"promtool-{binaries.PROGRAMS['promtool'].version}" / "promtool"
    promtool = shutil.which("promtool") or (built if built.exists() else None)
    if promtool is None:
        skip_or_fail("promtool is neither installed nor built")
    _, _, body = demo.get("/metrics")
    done = subprocess.run(
        [promtool, "check", "metrics"], input=body, capture_output=True, check=False
    )
    assert (done.returncode, (done.stdout + done.stderr).decode()) == (0, "")


def test_sigterm_ends_it_in_good_order_while_somebody_reads_the_stream(start):
    exporter = start("--simulate", "demo", *QUICK)
    with exporter.asked("/snapshot?watch=true") as response:
        assert decode(response.readline()).layout is not None
        status, seconds = exporter.terminate()
    assert status == 0
    assert seconds < 2
    assert exporter.wait_for("stopped")["signal"] == "SIGTERM"
    assert {json.loads(line)["level"] for line in exporter.log} == {"info"}


def test_a_gpu_that_hangs_is_reported_and_holds_up_neither_the_others_nor_the_end(start, tmp_path):
    scenario = tmp_path / "hanging.yaml"
    scenario.write_text(HANGING)
    exporter = start("--simulate", str(scenario), *QUICK)
    exporter.until(lambda found: count(found, "gpu_power_usage_watts") == 3)
    samples = exporter.until(lambda found: value(found, "gpu_up", gpu="1") == 0)
    assert value(samples, "gpu_power_usage_watts", gpu="1") is None
    for gpu in "02":
        assert value(samples, "gpu_up", gpu=gpu) == 1
        assert value(samples, "gpu_power_usage_watts", gpu=gpu) > 0
    before = decode(exporter.get("/snapshot")[2]).snapshot
    with exporter.asked("/snapshot?watch=true") as response:
        frames = [decode(response.readline()).snapshot for _ in range(5)]
    assert frames[-1].sequence > before.sequence + 3
    assert all(frame.up == [True, False, True] for frame in frames)
    assert all(max(frame.ages[0], frame.ages[2]) < frame.ages[1] for frame in frames)
    assert exporter.wait_for("GPU hangs")["gpu"] == 1
    status, seconds = exporter.terminate()
    assert status == 0
    assert seconds < 2


def test_the_users_own_file_chooses_families_and_labels(start, tmp_path):
    path = tmp_path / "gpu-metrics.json"
    path.write_text(json.dumps(USERS_FILE))
    exporter = start("--simulate", "demo", "--config", str(path), *QUICK)
    samples = exporter.until(lambda found: count(found, "gpu_utilization") == 2)
    device = [s for s in samples if "uuid" in s.labels]
    assert {"cluster": "production", "region": "cn-east"}.items() <= device[0].labels.items()
    core = {metric.name for metric in CATALOG if metric.core}
    assert {s.name for s in device} - core == set(USERS_FILE["metrics"])
    assert {"gpu_up", "gpu_info", "gpu_reading_age_seconds"} <= {s.name for s in device}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--simulate", "nowhere"], "simulate: nowhere: no such file or shipped scenario"),
        (["--metrics", "gpu_utilisation"], "did you mean gpu_utilization?"),
        (["--config", "missing.json"], "file missing.json: cannot be read"),
    ],
)
def test_bad_settings_end_with_status_2_and_say_what_is_wrong(arguments, said):
    done = subprocess.run(
        command(*arguments), cwd=ROOT, capture_output=True, text=True, check=False,
        timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 2
    assert said in done.stderr
    assert all(line.startswith("slicewatch exporter: ") for line in done.stderr.splitlines())


def test_a_port_that_is_taken_ends_it_with_status_2_and_a_line(demo):
    done = subprocess.run(
        command("--simulate", "demo", "--listen", f"127.0.0.1:{demo.port}"),
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("slicewatch exporter: ")
    assert "Address already in use" in last


def test_neither_command_line_nor_kubernetes_libraries_are_loaded():
    """They would take more memory than the exporter itself."""
    heavy = "{'typer', 'kubernetes', 'cryptography', 'grpc', 'pynvml'}"
    code = (
        "import sys, exporter.app, exporter.main, exporter.nvml.simulated;"
        f"sys.exit(', '.join({heavy} & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
