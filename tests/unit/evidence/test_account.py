"""What an exporter tells when GPUs go missing, over a driver that does what it is told."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from exporter.app import Exporter
from exporter.nvml.protocol import Failed, Slot, Value
from exporter.settings import ExporterSettings
from slicewatch.catalog.power import TEMPERATURE
from slicewatch.catalog.readings.power import Temperature
from slicewatch.wire import evidence as wire
from tests.unit.exporter.desk import Desk, make_gpu, until
from tests.unit.exporter.test_app import nobody

SETTINGS = ExporterSettings(
    tick_seconds=0.05, window_seconds=0.5, stale_seconds=0.5, node_name="n", kubelet_socket=""
)
GONE = Failed("DRIVER_NOT_LOADED", reinitialise=True)


class Scene:
    def __init__(self, nvml):
        self.nvml = nvml
        self.exporter = Exporter(SETTINGS, nvml, nobody())

    def told(self):
        return wire.decode(wire.encode(self.exporter.account.given(0)))

    async def until(self, condition):
        async with asyncio.timeout(20):
            while True:
                await self.exporter.ticker.tick()
                if condition(evidence := self.told()):
                    return evidence
                await asyncio.sleep(0.01)


@asynccontextmanager
async def at_work(*gpus):
    nvml = Desk(*gpus)
    scene = Scene(nvml)
    try:
        await scene.until(lambda e: len(e.gpus) == len(gpus) and all(g.readings for g in e.gpus))
        yield scene
    finally:
        for gate in nvml.gates.values():
            gate.set()
        await scene.exporter.supervisor.close()
    assert nvml.misuse == []


async def test_a_gpu_that_a_new_start_no_longer_finds_is_told_as_not_found():
    """A count that is one less looks healthy to whoever lists only what is there."""
    async with at_work(make_gpu(0), make_gpu(1)) as scene:
        scene.nvml.slots = (Slot(index=0, gpu=Value(make_gpu(0))),)
        scene.nvml.found["GPU-0"] = GONE
        evidence = await scene.until(lambda e: e.gpus[0].silent == "no_driver")
        assert isinstance(evidence.gpus[0].readings["power"], wire.Failed)
        await scene.until(lambda e: e.driver.starts == 2)
        del scene.nvml.found["GPU-0"]
        evidence = await scene.until(lambda e: e.gpus[0].readings)
        assert [gpu.silent for gpu in evidence.gpus] == ["", "gpu_not_found"]
        missing = evidence.gpus[1]
        assert (missing.device.uuid, missing.readings) == ("GPU-1", {})
        await scene.until(lambda e: e.gpus[1].silent_seconds > 0.3)


async def test_a_gpu_that_hangs_before_it_says_its_name_is_told_so(monkeypatch):
    monkeypatch.setattr("exporter.nvml.enumeration.PATIENCE_SECONDS", 0.1)
    async with at_work(make_gpu(0), make_gpu(1)) as scene:
        scene.nvml.hang("identity 1")
        scene.nvml.found["GPU-0"] = GONE
        evidence = await scene.until(lambda e: e.driver.starts == 2)
        assert evidence.gpus[1].silent == "hang"


async def test_a_read_that_hangs_is_named_while_slow_reads_are_not_added_up():
    """Reads of fifty seconds each, in a storm of corrected errors, are no hung driver."""
    async with at_work(make_gpu(0), make_gpu(1)) as scene:
        scene.nvml.hang("GPU-1")
        await scene.until(lambda e: e.gpus[1].call_seconds > 0.2)
        (reader,) = scene.exporter.supervisor._relay.running()
        evidence = scene.told()
        assert evidence.gpus[1].call == reader.call == "devices"
        # The next read begins at 0 again, though the pass goes on.
        reader._called_at = scene.exporter.account.clock()
        assert scene.told().gpus[1].call_seconds < evidence.gpus[1].call_seconds


async def test_an_answer_is_given_while_every_gpu_hangs():
    async with at_work(make_gpu(0), make_gpu(1)) as scene:
        for uuid in ("GPU-0", "GPU-1"):
            scene.nvml.hang(uuid)
        evidence = await scene.until(lambda e: all(gpu.silent for gpu in e.gpus))
        assert [gpu.silent for gpu in evidence.gpus] == ["not_read", "not_read"]
        await until(lambda: scene.nvml.stuck == 2)
        assert scene.told().gpus[0].call == "devices"


@pytest.mark.parametrize("celsius", [0, 44, 4_278_190_080])
async def test_a_value_is_told_as_the_driver_said_it(celsius):
    """What is believed is for the catalog's limits and for the checks to say."""
    async with at_work(make_gpu(0)) as scene:
        scene.nvml.readings["temperature"] = Value(Temperature(celsius))

        def told(evidence):
            return wire.read_as(TEMPERATURE, evidence.gpus[0].readings["temperature"])

        await scene.until(lambda e: told(e) == Temperature(celsius))
