"""The exporter put together: what it says of itself, of its tenants and of its readiness."""

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from exporter.app import exporting
from exporter.nvml.protocol import DriverUnavailableError, Failed, Lost, Value
from exporter.settings import ExporterSettings
from exporter.tenants.protocol import Allocation, RefusedError
from exporter.tenants.simulated import SimulatedProcesses
from simulator.fleet import Fleet
from slicewatch.catalog import CATALOG
from slicewatch.catalog.readings.power import Temperature
from slicewatch.service.server import Address
from tests.unit.exporter.desk import until

SETTINGS = ExporterSettings(
    listen=Address("127.0.0.1", 0), tick_seconds=0.05, window_seconds=0.5, stale_seconds=1.0,
    scrape_interval=0.3, node_name="n", kubelet_socket="",
)  # fmt: skip


class Kubelet:
    """Answers what it is told to, or refuses."""

    def __init__(self, *allocations):
        self.allocations = allocations
        self.refuses = False

    async def list(self):
        if self.refuses:
            raise RefusedError("told to refuse")
        return self.allocations

    async def offers(self):
        return ()


class Client:
    def __init__(self, session, address):
        self._session = session
        self._address = address

    async def get(self, path):
        async with self._session.get(f"http://{self._address}{path}") as response:
            return response.status, await response.text()

    async def samples(self):
        _, text = await self.get("/metrics")
        return [s for f in text_string_to_metric_families(text) for s in f.samples]

    async def until(self, name, value, **labels):
        """Ask until a series has that value; return all samples of that page."""
        async with asyncio.timeout(15):
            while True:
                samples = await self.samples()
                if series(samples, name, **labels) == value:
                    return samples


def series(samples, name, **labels):
    """Return the value of the one series of these labels, or None."""
    found = [s.value for s in samples if s.name == name and labels.items() <= s.labels.items()]
    return found[0] if len(found) == 1 else None


def nobody():
    """Return processes of a node on which none runs."""
    fleet = Fleet.load("nodes: [{name: n, gpus: [{model: T4}]}]")
    return SimulatedProcesses(fleet.node("n"))


@asynccontextmanager
async def running(nvml, kubelet=None):
    async with (
        exporting(SETTINGS, nvml, kubelet, nobody()) as address,
        aiohttp.ClientSession() as session,
    ):
        yield Client(session, address)
    assert nvml.misuse == []


async def test_a_driver_that_works_is_up_and_no_probe_fails(desk, gpu):
    async with running(desk(gpu())) as client:
        samples = await client.until("slicewatch_probe_success", 1, probe="devices")
        assert series(samples, "gpu_up", gpu="0") == 1
        assert series(samples, "slicewatch_driver_up", reason="") == 1
        versions = {"driver": "580.95.05", "nvml": "13.580.95.05", "cuda": "13.0"}
        assert series(samples, "slicewatch_driver_info", **versions) == 1
        success = {
            s.labels["probe"]: s.value for s in samples if s.name == "slicewatch_probe_success"
        }
        names = [probe.name for probe in CATALOG.probes()]
        assert success == dict.fromkeys((*names, "devices"), 1)
        spent = [s for s in samples if s.name == "slicewatch_probe_duration_seconds_total"]
        assert len(spent) == len(success)


async def test_a_probe_that_fails_is_named(desk, gpu):
    nvml = desk(gpu(0), gpu(1))
    nvml.readings["GPU-1", "power"] = Failed("UNKNOWN")
    async with running(nvml) as client:
        samples = await client.until("slicewatch_probe_success", 0, probe="power")
        assert series(samples, "slicewatch_probe_success", probe="energy") == 1
        assert series(samples, "gpu_power_usage_watts", gpu="0") == 300
        assert series(samples, "gpu_power_usage_watts", gpu="1") is None


async def test_a_gpu_that_cannot_be_resolved_shows_in_the_probe_of_the_devices(desk, gpu):
    nvml = desk(gpu(0))
    nvml.found["GPU-0"] = Lost("gpu_is_lost")
    async with running(nvml) as client:
        samples = await client.until("slicewatch_probe_success", 0, probe="devices")
        assert series(samples, "gpu_up", gpu="0") == 0


async def test_rejected_readings_are_counted(desk, gpu):
    nvml = desk(gpu())
    nvml.readings["temperature"] = Value(Temperature(4_278_190_080))
    async with running(nvml) as client:
        samples = await client.until("gpu_power_usage_watts", 300, gpu="0")
        name = "slicewatch_rejected_readings_total"
        assert series(samples, name, metric="gpu_temperature_celsius") >= 1
        assert series(samples, "gpu_temperature_celsius") is None


async def test_without_a_driver_it_serves_and_says_why(desk, gpu):
    """dcgm-exporter #450: without the library of the driver it crashed."""
    nvml = desk(gpu())
    nvml.refusal = DriverUnavailableError("no_driver", "the NVIDIA driver is not loaded")
    async with running(nvml) as client:
        samples = await client.until("slicewatch_driver_up", 0, reason="no_driver")
        assert series(samples, "slicewatch_driver_info") is None
        assert series(samples, "gpu_up") is None
        assert (await client.get("/readyz"))[0] == 200
        nvml.refusal = None
        samples = await client.until("gpu_up", 1, gpu="0")
        assert series(samples, "slicewatch_driver_up", reason="") == 1


async def test_the_versions_of_a_driver_that_went_away_are_withdrawn(desk, gpu):
    nvml = desk(gpu())
    async with running(nvml) as client:
        await client.until("slicewatch_driver_info", 1, driver="580.95.05")
        nvml.refusal = DriverUnavailableError("no_driver", "the NVIDIA driver is not loaded")
        nvml.found["GPU-0"] = Failed("DRIVER_NOT_LOADED", reinitialise=True)
        samples = await client.until("slicewatch_driver_up", 0, reason="no_driver")
        assert series(samples, "slicewatch_driver_info") is None


async def test_tenants_are_shown_with_the_age_of_the_kubelets_answer(desk, gpu):
    kubelet = Kubelet(
        Allocation(
            namespace="a", pod="p", container="c", resource="nvidia.com/gpu", device_id="GPU-0"
        )
    )
    async with running(desk(gpu()), kubelet) as client:
        samples = await client.until("gpu_tenant_info", 1, pod="p")
        assert 0 <= series(samples, "slicewatch_tenants_age_seconds") < 15


@pytest.mark.parametrize("kubelet", [None, Kubelet()])
async def test_before_the_kubelet_ever_answered_the_age_is_absent_and_not_0(desk, gpu, kubelet):
    if kubelet is not None:
        kubelet.refuses = True
    async with running(desk(gpu()), kubelet) as client:
        samples = await client.until("gpu_up", 1, gpu="0")
        assert series(samples, "slicewatch_tenants_age_seconds") is None


async def test_scrapes_are_answered_while_every_gpu_hangs(desk, gpu):
    """dcgm-exporter #625, #607, #372: a scrape waited for what it collected, and timed out."""
    nvml = desk(gpu(0), gpu(1))
    async with running(nvml) as client:
        await client.until("gpu_up", 1, gpu="1")
        gates = [nvml.hang("GPU-0"), nvml.hang("GPU-1")]
        await until(lambda: nvml.stuck == 2)
        samples = await client.until("gpu_up", 0, gpu="0")
        assert series(samples, "gpu_power_usage_watts", gpu="0") is None
        for gate in gates:
            gate.set()
        await client.until("gpu_up", 1, gpu="0")


async def test_when_ticks_stop_it_is_unready_and_the_snapshots_age_grows(desk, gpu, monkeypatch):
    """gpu-monitoring-tools #188: values stood still, and health was said to be good."""
    stuck = asyncio.Event()
    async with running(desk(gpu())) as client:
        await client.until("gpu_up", 1, gpu="0")
        assert (await client.get("/readyz"))[0] == 200

        async def never(*_):
            await stuck.wait()
            return ()

        monkeypatch.setattr("exporter.nvml.supervisor.Supervisor.pass_all", never)
        async with asyncio.timeout(15):
            while (answer := await client.get("/readyz"))[0] == 200:
                pass
        assert "[-]snapshots last snapshot is" in answer[1]
        async with asyncio.timeout(15):
            while series(await client.samples(), "slicewatch_snapshot_age_seconds") < 1:
                pass
        assert (await client.get("/livez"))[0] == 200


async def test_a_fault_of_ours_ends_the_process_instead_of_leaving_it_half_alive(desk, gpu):
    nvml = desk(gpu())

    async def run_until_it_ends():
        async with running(nvml) as client:
            await client.until("gpu_up", 1, gpu="0")
            nvml.readings["power"] = Value("no power")
            await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as raised:
        await asyncio.wait_for(run_until_it_ends(), 15)
    assert raised.group_contains(AttributeError, match="draw_milliwatts")
