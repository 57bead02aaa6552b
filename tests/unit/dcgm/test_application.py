"""The settings about dcgm-exporter's names, in an exporter that runs."""

import asyncio
import dataclasses
from contextlib import asynccontextmanager

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from exporter.app import exporting
from exporter.nvml.protocol import Value
from exporter.settings import ExporterSettings
from exporter.tenants.simulated import SimulatedProcesses
from simulator.fleet import Fleet
from slicewatch.catalog.readings.gpm import Gpm, GpmMetric
from slicewatch.service.server import Address
from slicewatch.service.settings import SettingsError
from tests.unit.exporter.desk import Desk, make_gpu, until

SETTINGS = ExporterSettings(
    listen=Address("127.0.0.1", 0), tick_seconds=0.05, window_seconds=0.5, stale_seconds=1.0,
    scrape_interval=0.3, node_name="n", kubelet_socket="", metrics=("gpu_power_usage_watts",),
)  # fmt: skip
PIPES = Gpm(values={GpmMetric.FP16: 25.0})
OPTIONAL = {"gpm_details", "nvlink_errors"}


@asynccontextmanager
async def running(nvml, settings, **live):
    processes = SimulatedProcesses(Fleet.load("nodes: [{name: n, gpus: [{model: T4}]}]").node("n"))
    async with (
        exporting(settings, nvml, None, processes, **live) as address,
        aiohttp.ClientSession() as session,
    ):

        async def shown():
            async with session.get(f"http://{address}/metrics") as response:
                text = await response.text()
            return {
                s.name: (s.labels, s.value)
                for family in text_string_to_metric_families(text)
                for s in family.samples
            }

        yield shown


async def shows(ask, name):
    """Ask until a name is on the page; return that page."""
    async with asyncio.timeout(15):
        while name not in (page := await ask()):
            pass
    return page


@pytest.fixture
def nvml():
    desk = Desk(make_gpu())
    desk.readings["gpm_details"] = Value(PIPES)
    return desk


def read_probes(nvml):
    return {probe for _, probe in nvml.reads}


async def test_unless_switched_on_there_are_none_of_its_names_and_no_read_for_them(nvml):
    async with running(nvml, SETTINGS) as ask:
        page = await shows(ask, "gpu_power_usage_watts")
        assert not [name for name in page if name.startswith("DCGM_")]
    assert read_probes(nvml).isdisjoint(OPTIONAL)


async def test_a_name_is_answered_though_the_native_metric_is_not_shown(nvml):
    settings = dataclasses.replace(SETTINGS, dcgm_names=True, dcgm_host_label="hostname")
    async with running(nvml, settings) as ask:
        page = await shows(ask, "DCGM_FI_PROF_PIPE_FP16_ACTIVE")
        labels, value = page["DCGM_FI_PROF_PIPE_FP16_ACTIVE"]
        assert (labels["hostname"], value) == ("n", 0.25)
        assert page["DCGM_FI_DEV_POWER_USAGE"][1] == page["gpu_power_usage_watts"][1]
        assert "gpu_gpm_pipe_ratio" not in page
    assert read_probes(nvml) >= OPTIONAL


async def test_the_names_are_still_answered_after_other_families_were_chosen(nvml):
    now = dataclasses.replace(SETTINGS, dcgm_names=True)
    chosen = [now]
    at_once = asyncio.Event()
    async with running(nvml, now, reread=lambda: chosen[-1], at_once=at_once) as ask:
        await shows(ask, "DCGM_FI_PROF_PIPE_FP16_ACTIVE")
        chosen.append(dataclasses.replace(now, metrics=("gpu_temperature_celsius",)))
        at_once.set()
        page = await shows(ask, "gpu_temperature_celsius")
        assert "gpu_power_usage_watts" not in page
        nvml.reads.clear()
        await until(lambda: read_probes(nvml) >= {"gpm_details", "temperature"})
        page = await shows(ask, "DCGM_FI_PROF_PIPE_FP16_ACTIVE")
        assert "DCGM_FI_DEV_POWER_USAGE" in page


def test_a_spelling_of_the_host_label_that_no_release_has_is_refused():
    with pytest.raises(SettingsError, match=r"dcgm_host_label: 'HOST' is none of Hostname"):
        ExporterSettings(dcgm_host_label="HOST")
