"""An exporter process and the monitor's end of its socket: what is told across restarts."""

import asyncio
import os
import stat

import pytest

from health.source import Cursor, SilenceError, exporter_socket
from slicewatch.catalog.errors import ECC
from slicewatch.wire import evidence as wire
from tests.integration.processes import DEADLINE_SECONDS, exporter

SCENARIO = """
nodes:
  - name: n
    gpus: [{model: H100-80GB, count: 2}]
faults:
  - {kind: ecc, node: n, gpu: 0, at: 0s, bits: double, errors: 11}
  - {kind: xid, node: n, gpu: 0, at: 4s, every: 1s, xid: 13}
"""
# Of the second GPU, whose address the simulator makes up.
LOGGED = "4,{sequence},1000000,-;NVRM: Xid (PCI:{bus}): {xid}, pid=7, name=python, x\n"


class Node:
    def __init__(self, folder):
        self.socket = folder / "evidence.sock"
        self._scenario = folder / "fleet.yaml"
        self._scenario.write_text(SCENARIO)
        self._log = folder / "kmsg"
        os.mkfifo(self._log)
        self._kernel = os.open(self._log, os.O_RDWR | os.O_NONBLOCK)
        self._sequence = 0
        self._exporter = None

    def log(self, bus, xid):
        self._sequence += 1
        line = LOGGED.format(sequence=self._sequence, bus=bus, xid=xid)
        os.write(self._kernel, line.encode())

    def start(self):
        self._exporter = exporter(
            "--simulate", str(self._scenario), "--kubelet-socket", "",
            "--evidence-socket", str(self.socket), "--kernel-log", str(self._log),
        )  # fmt: skip

    def end(self):
        if self._exporter is not None:
            self._exporter.end()

    def close(self):
        self.end()
        os.close(self._kernel)


@pytest.fixture
def node(tmp_path):
    made = Node(tmp_path)
    yield made
    made.close()


async def asked(source, condition, cursor=None):
    """Ask until the evidence meets a condition; return it."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            evidence = await source.ask(cursor or Cursor())
            if condition(evidence):
                return evidence
            await asyncio.sleep(0.05)


async def test_the_monitor_hears_of_everything_once_and_of_a_new_run(node):
    node.log("0000:ff:1f", 79)
    node.start()
    async with exporter_socket(str(node.socket)) as source:
        first = await asked(
            source, lambda e: e.events and e.gpus and all(g.readings for g in e.gpus)
        )
        (early,) = [event for event in first.events if event.source is wire.Source.KERNEL]
        assert (early.data, early.gpu, early.pci_bus_id) == (79, "", "0000:ff:1f")
        assert early.text == "pid=7, name=python, x"
        assert wire.read_as(ECC, first.gpus[0].readings["ecc"]).uncorrected_volatile == 11
        assert (first.kernel_log, first.listening, first.missed) == ("", "", 0)
        assert first.uptime_seconds > first.driver.seconds
        bus = first.gpus[1].device.pci_bus_id[4:-2].lower()
        node.log(bus, 48)
        known = Cursor.after(first)
        later = await asked(
            source, lambda e: {event.data for event in e.events} >= {13, 48}, known
        )
        assert later.events[0].number == first.newest + 1
        assert {e.gpu for e in later.events if e.data == 48} == {first.gpus[1].device.uuid}
        node.end()
        with pytest.raises(SilenceError):
            await source.ask(known)
        node.start()
        again = await asked(source, lambda e: e.newest, known)
        assert (again.run != first.run, again.boot_id) == (True, first.boot_id)
        assert again.events[0].number == 1


async def test_whoever_may_ask_may_not_release_the_driver(node):
    node.start()
    assert stat.filemode(node.socket.stat().st_mode) == "srw-rw----"
    async with exporter_socket(str(node.socket)) as source:
        await source.ask(Cursor())
        async with source._session.post("http://exporter/release") as response:
            assert response.status == 404
