"""An exporter process on the C driver: what it holds, what it serves while it holds nothing."""

import http.client
import json
import os
import signal
import socket
import subprocess
import time

import pytest

from simulator.clock import RealTimeClock
from simulator.fleet import Fleet
from simulator.scenario import Hang, MigPending
from testbed import require
from testbed.binaries import Unavailable
from testbed.driver import build
from testbed.driver.feeder import DriverFeed
from tests.integration.test_exporter_process import ROOT, Exporter, command, count, value

SCENARIO = """
nodes:
  - name: n
    gpus: [{model: H100-80GB}, {model: H100-80GB, mig: [3g.40gb, 3g.40gb]}]
workloads:
  - name: busy
    load: 0.5
    memory: 4GiB
    pods: [{name: p, devices: [{node: n, gpu: 0}]}]
"""
DEADLINE_SECONDS = 30.0
DEVICES = 4
QUICK = ("--tick-seconds", "0.2", "--window-seconds", "1", "--stale-seconds", "1")


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("node", timeout=DEADLINE_SECONDS)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Node:
    """A node in real time, its driver, and an exporter that reads it."""

    def __init__(self, folder):
        self.socket = folder / "exporter.sock"
        self.fleet = Fleet.load(SCENARIO, clock=RealTimeClock())
        self.feed = DriverFeed(self.fleet.nodes[0], folder / "driver.state")
        self.feed.run()
        self._process = subprocess.Popen(
            command(
                "--listen", "127.0.0.1:0", "--kubelet-socket", "", "--node-name", "n",
                "--control-socket", str(self.socket), "--release-seconds", "3", *QUICK,
            ),
            cwd=ROOT, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **build.environment(folder / "driver.state")},
        )  # fmt: skip

    def exporter(self):
        """Return the exporter once it reads all devices."""
        exporter = Exporter(self._process)
        exporter.until(lambda samples: count(samples, "gpu_memory_used_bytes") == DEVICES)
        return exporter

    def call(self, method, route):
        connection = UnixConnection(self.socket)
        try:
            connection.request(method, route)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def clients(self, number):
        """Wait until that many processes have the driver initialised."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while self.feed.file.clients != number:
            assert time.monotonic() < deadline, f"{self.feed.file.clients} clients"

    def close(self):
        self._process.kill()
        self._process.wait()
        self._process.stderr.close()
        self.feed.stop()


@pytest.fixture
def node(tmp_path):
    try:
        made = Node(tmp_path)
    except Unavailable as why:
        require.skip_or_fail(str(why))
    yield made
    made.close()


def totals(samples):
    """Return the counters of the devices, by name and device."""
    return {
        (s.name, s.labels["uuid"]): s.value
        for s in samples
        if s.name in {"gpu_energy_joules_total", "gpu_busy_seconds_total"}
    }


def test_a_release_lets_go_of_the_driver_and_keeps_what_was_known(node):
    exporter = node.exporter()
    node.clients(1)
    before = exporter.until(lambda found: value(found, "gpu_utilization", gpu="0") is not None)
    status, answer = node.call("POST", "/release?seconds=600&reason=gpu_reset")
    assert (status, answer["released"], answer["reason"]) == (200, True, "gpu_reset")
    assert node.feed.file.clients == 0
    released = exporter.until(lambda found: value(found, "slicewatch_driver_up") == 0)
    assert value(released, "slicewatch_released", reason="gpu_reset") == 1
    assert value(released, "slicewatch_driver_up", reason="released") == 0
    # Longer than a value may be old otherwise.
    old = exporter.until(lambda _: min(ages(exporter)) > 2)
    assert {s.value for s in old if s.name == "gpu_up"} == {1}
    assert count(old, "gpu_memory_used_bytes") == DEVICES
    assert value(old, "gpu_utilization", gpu="0") == pytest.approx(50, abs=15)
    assert node.feed.file.clients == 0
    assert node.call("POST", "/resume")[0] == 200
    node.clients(1)
    exporter.until(lambda found: value(found, "slicewatch_driver_up") == 1)
    exporter.until(lambda _: max(ages(exporter)) < 1)
    after = exporter.samples()
    assert count(after, "slicewatch_released") == 0
    assert count(after, "gpu_memory_used_bytes") == DEVICES
    assert totals(before)
    for key, total in totals(after).items():
        assert total >= totals(old)[key] >= totals(before)[key]
    assert {json.loads(line)["level"] for line in exporter.log} == {"info"}


def ages(exporter):
    frame = json.loads(exporter.get("/snapshot")[2])
    return frame["snapshot"]["ages"]


def test_sigusr1_lets_go_of_the_driver_for_the_usual_time(node):
    exporter = node.exporter()
    exporter.process.send_signal(signal.SIGUSR1)
    assert exporter.wait_for("NVML released")["reason"] == "signal"
    node.clients(0)
    exporter.wait_for("NVML is started again after its release")
    node.clients(1)
    exporter.until(lambda found: value(found, "slicewatch_driver_up") == 1)


def test_a_mig_mode_that_waits_for_a_reset_lets_go_of_the_driver(node):
    """dcgm-exporter #706, DCGM #276: what has to change waits for its last client."""
    exporter = node.exporter()
    node.fleet.inject(MigPending(node="n", gpu=0))
    assert exporter.wait_for("NVML released")["reason"] == "mig_pending"
    node.clients(0)
    node.fleet.clear()
    node.clients(1)


def test_sigterm_ends_it_soon_though_a_call_hangs(node):
    """dcgm-exporter #606, #84, #96: one that does not stop is killed, in the midst of a call."""
    exporter = node.exporter()
    node.fleet.inject(Hang(node="n", gpu=0))
    assert exporter.wait_for("GPU hangs")["gpu"] == 0
    assert node.call("POST", "/release")[0] == 409
    status, seconds = exporter.terminate()
    assert status == 0
    assert seconds < 3
    assert not node.socket.exists()


def test_sigterm_in_a_release_ends_it_at_once(node):
    exporter = node.exporter()
    assert node.call("POST", "/release")[0] == 200
    status, seconds = exporter.terminate()
    assert (status, node.feed.file.clients) == (0, 0)
    assert seconds < 2


def test_without_the_sockets_folder_it_ends_with_status_2_and_says_what_to_do(tmp_path):
    missing = tmp_path / "missing" / "exporter.sock"
    done = subprocess.run(
        command("--simulate", "demo", "--listen", "127.0.0.1:0", "--control-socket", str(missing)),
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 2
    assert f"no folder {missing.parent}; mount one there" in done.stderr.splitlines()[-1]
