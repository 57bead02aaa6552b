"""The pages in a real browser: what people see, by eye, by keyboard, by screen reader."""

import asyncio
import os
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect

from exporter.app import exporting
from exporter.nvml.simulated import SimulatedNvml
from exporter.settings import ExporterSettings
from exporter.tenants.simulated import SimulatedProcesses
from simulator.clock import RealTimeClock
from simulator.fleet import Fleet
from slicewatch.service.server import Address
from testbed.binaries import Unavailable
from testbed.browser import NARROW, NARROWEST, WIDE, chromium, looking
from testbed.fleet_page import Imagined
from testbed.require import skip_or_fail

pytestmark = [pytest.mark.timeout(120), pytest.mark.asyncio(loop_scope="module")]

LOOPBACK = Address("127.0.0.1", 0)
SHOTS = os.environ.get("SLICEWATCH_SCREENSHOTS", "")
FAILING = """
seed: failing
nodes: [{name: gpu-failing, gpus: [{model: H100-80GB, count: 3}, {model: A100-80GB, mig: [3g.40gb, 1g.10gb]}]}]
workloads:
  - {name: train, namespace: ml, load: 0.9, memory: 60GiB, pods: [{name: train-0, devices: [{node: gpu-failing, gpu: 1}]}]}
faults:
  - {kind: lost, node: gpu-failing, gpu: 0, at: 2s, for: 1h}
  - {kind: xid, node: gpu-failing, gpu: 1, at: 2s, xid: 79}
  - {kind: row_remap, node: gpu-failing, gpu: 2, at: 2s, for: 1h}
  - {kind: slowdown, node: gpu-failing, gpu: 1, at: 2s, for: 1h, reason: hw_thermal_slowdown}
"""


@asynccontextmanager
async def exporter(scenario, address=LOOPBACK):
    fleet = Fleet.named(scenario, clock=RealTimeClock())
    nvml = SimulatedNvml(fleet.nodes[0])
    settings = ExporterSettings(listen=address, node_name=nvml.node.name, tick_seconds=0.5)
    async with exporting(settings, nvml, None, SimulatedProcesses(nvml.node)) as at:
        yield f"http://{at}/"


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    path = tmp_path_factory.mktemp("scenario") / "failing.yaml"
    path.write_text(FAILING)
    return str(path)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser():
    async with AsyncExitStack() as stack:
        try:
            started = await stack.enter_async_context(chromium())
        except Unavailable as reason:
            skip_or_fail(str(reason))
        yield started


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mixed():
    async with exporter("mixed") as url:
        yield url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def thousand():
    async with Imagined(1000).serving(LOOPBACK) as at:
        yield f"http://{at}/"


async def shoot(watched, name):
    """Take a picture for those who look at it; kept where SLICEWATCH_SCREENSHOTS says."""
    path = Path(SHOTS) / f"{name}.png" if SHOTS else None
    taken = await watched.page.screenshot(path=path)
    assert len(taken) > 10_000


def live(page):
    return page.get_by_role("status").filter(has_text="live")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_a_node_is_accessible_and_reaches_nothing_else(browser, mixed, scheme, size):
    options = {"viewport": size, "color_scheme": scheme}
    async with looking(browser, mixed, audited=True, **options) as watched:
        await expect(live(watched.page)).to_be_visible()
        await expect(watched.page.get_by_role("article")).to_have_count(8)
        assert await watched.accessibility() == []
        assert not await watched.is_too_wide()
        await shoot(watched, f"node-{scheme}-{size['width']}")
    async with looking(browser, mixed, **options) as watched:
        await expect(live(watched.page)).to_be_visible()
        assert watched.faults == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", ["", "#/pool/H200", "#/node/gpu-0005", "#/search/serve-7-"])
async def test_the_fleet_is_accessible_on_every_route(browser, thousand, scheme, place):
    async with looking(browser, thousand + place, audited=True, color_scheme=scheme) as watched:
        await expect(live(watched.page)).to_be_visible()
        await expect(watched.page.locator("#content > *").first).to_be_visible()
        assert await watched.accessibility() == []
        assert watched.faults == []


@pytest.mark.parametrize("place", ["", "#/pool/H200", "#/node/gpu-0005"])
async def test_the_narrowest_window_needs_no_scrolling_sideways(browser, thousand, place):
    async with looking(browser, thousand + place, viewport=NARROWEST) as watched:
        await expect(live(watched.page)).to_be_visible()
        await expect(watched.page.locator("#content > *").first).to_be_visible()
        assert not await watched.is_too_wide()


async def test_a_mig_gpu_is_drawn_by_its_slices_and_shared_ones_by_their_tenants(browser, mixed):
    async with looking(browser, mixed, viewport=WIDE) as watched:
        page = watched.page
        sliced = page.get_by_role("article", name="GPU 3")
        await expect(sliced.get_by_role("list", name="MIG devices")).to_contain_text("3g.40gb")
        await expect(sliced).to_contain_text("utilization not known")
        await expect(sliced).to_contain_text("1 memory slice in no MIG device")
        shared = page.get_by_role("article", name="GPU 5")
        await expect(shared).to_contain_text("vision/transcode-0")
        await expect(shared).to_contain_text("processes outside of pods")


async def test_values_move_while_what_is_focused_and_selected_stays(browser, mixed):
    async with looking(browser, mixed, viewport=WIDE) as watched:
        page = watched.page
        await expect(live(page)).to_be_visible()
        await page.get_by_role("searchbox").fill("chat")
        card = page.get_by_role("article", name="GPU 2")
        kept = await card.element_handle()
        before = await card.inner_text()
        async with asyncio.timeout(30):
            while await card.inner_text() == before:
                await page.wait_for_timeout(100)
        assert await kept.evaluate("element => element.isConnected")
        await expect(page.get_by_role("searchbox")).to_be_focused()


async def test_a_search_shows_what_fits_and_says_how_much(browser, mixed):
    async with looking(browser, mixed) as watched:
        page = watched.page
        await expect(page.get_by_role("article")).to_have_count(8)
        await page.keyboard.press("/")
        await page.keyboard.type("finetune")
        await expect(page.get_by_text("2 of 8 GPUs shown")).to_be_visible()
        assert await page.get_by_role("article").count() == 2
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("article")).to_have_count(8)


async def test_the_keyboard_reaches_everything_in_order(browser, thousand):
    async with looking(browser, thousand) as watched:
        page = watched.page
        await expect(page.get_by_role("link", name="H200")).to_be_visible()
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("searchbox")).to_be_focused()
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("button", name="colours")).to_be_focused()
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.closest('.pool') !== null")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_be_focused()
        await page.go_back()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Fleet")


async def test_the_choice_of_colours_is_remembered(browser, mixed):
    async with looking(browser, mixed, color_scheme="light") as watched:
        page = watched.page
        await page.get_by_role("button", name="Change to dark colours").click()
        await page.reload(wait_until="domcontentloaded")
        await expect(page.get_by_role("button", name="Change to light colours")).to_be_visible()
        assert await page.evaluate("document.documentElement.dataset.theme") == "dark"


async def test_a_failing_node_says_what_is_wrong_and_what_to_read(browser, failing):
    async with exporter(failing) as url, looking(browser, url, viewport=WIDE) as watched:
        page = watched.page
        lost = page.get_by_role("article", name="GPU 0")
        await expect(lost).to_contain_text("does not answer", timeout=20_000)
        await expect(lost).to_contain_text("runbook GPULost")
        await expect(lost).not_to_contain_text("0 % busy")
        second = page.get_by_role("article", name="GPU 1")
        await expect(second).to_contain_text("Xid 79")
        await expect(second).to_contain_text("slowed down by heat")
        await expect(page.get_by_role("article", name="GPU 2")).to_contain_text("remapped")
        await shoot(watched, "failing-node")


async def test_a_page_says_that_its_server_is_gone_and_comes_back_with_it(browser, failing):
    async with AsyncExitStack() as stack:
        async with exporter(failing) as url:
            watched = await stack.enter_async_context(looking(browser, url))
            await expect(live(watched.page)).to_be_visible()
        gone = watched.page.get_by_role("status").filter(has_text="not connected")
        await expect(gone).to_be_visible(timeout=15_000)
        port = int(url.rsplit(":", 1)[1].strip("/"))
        async with exporter(failing, Address("127.0.0.1", port)):
            await expect(live(watched.page)).to_be_visible(timeout=30_000)


async def test_names_are_only_ever_text(browser, thousand):
    async with looking(browser, thousand) as watched:
        page = watched.page
        await expect(live(page)).to_be_visible()
        words = "<img src=x onerror=alert(1)>"
        await page.get_by_role("searchbox").fill(words)
        await expect(page.get_by_text(f"0 nodes with {words}")).to_be_visible()
        assert await page.locator("img").count() == 0
        assert watched.faults == []


async def test_eight_gpus_in_seven_slices_each_fit_on_one_page(browser):
    async with exporter("dense_mig") as url, looking(browser, url, viewport=WIDE) as watched:
        await expect(watched.page.locator(".cell")).to_have_count(64, timeout=20_000)
        await expect(watched.page.locator(".cell").first).to_contain_text("%", timeout=20_000)
        await shoot(watched, "dense-mig-node")
        assert watched.faults == []


async def test_a_thousand_nodes_are_shown_as_pools_first(browser, thousand):
    async with looking(browser, thousand, viewport=WIDE) as watched:
        page = watched.page
        await expect(page.get_by_text("1000 nodes")).to_be_visible()
        assert await page.locator("*").count() < 500
        await shoot(watched, "fleet")
        await page.get_by_role("link", name="H200").click()
        await expect(page.locator(".nodes > li")).to_have_count(200)
        await shoot(watched, "fleet-pool")
        await page.get_by_role("link", name="gpu-0002", exact=True).click()
        await expect(page.get_by_role("article")).to_have_count(8)
        await expect(page.get_by_text("cordoned")).to_be_visible()


async def test_a_silent_node_shows_no_number(browser, thousand):
    async with looking(browser, thousand + "#/node/gpu-0097") as watched:
        page = watched.page
        await expect(page.get_by_text("its exporter has sent nothing for")).to_be_visible(
            timeout=30_000
        )
        await expect(page.get_by_text("GPUs not known")).to_be_visible()
        await expect(page.get_by_role("article")).to_have_count(0)


async def test_colours_that_the_system_forces_leave_the_page_readable(browser, mixed):
    options = {"forced_colors": "active", "reduced_motion": "reduce"}
    async with looking(browser, mixed, audited=True, **options) as watched:
        await expect(watched.page.get_by_role("article")).to_have_count(8)
        assert await watched.accessibility() == []
