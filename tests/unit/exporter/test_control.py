"""What the control socket answers, and the signal."""

import asyncio
import os
import signal
import time
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest

from exporter.control import Control, release_on_signal
from exporter.local_socket import listening
from exporter.measure.board import Board
from exporter.nvml.plan import Plan
from exporter.nvml.protocol import Lost
from exporter.nvml.supervisor import Supervisor
from exporter.release import Release
from exporter.settings import ExporterSettings
from slicewatch.service.settings import SettingsError, load
from slicewatch.service.tasks import background
from tests.unit.exporter.desk import until


@pytest.fixture
def path(tmp_path):
    return tmp_path / "exporter.sock"


@asynccontextmanager
async def client(path):
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path))) as session:
        yield session


class Caller:
    def __init__(self, session):
        self._session = session

    async def call(self, method, route):
        async with self._session.request(method, f"http://node{route}") as response:
            return response.status, await response.json()

    async def until(self, condition):
        """Ask for the status until it meets a condition; return it."""
        async with asyncio.timeout(15):
            while not condition(status := (await self.call("GET", "/status"))[1]):
                pass
        return status


class Published:
    """A publication as far as the socket looks at it."""

    snapshot = None

    def age_seconds(self):
        return 0.25


async def ticking(supervisor, board, published):
    while True:
        cycles = await supervisor.pass_all(0.05)
        board.merge(cycles, time.monotonic())
        published.snapshot = board.devices
        await asyncio.sleep(0.02)


@asynccontextmanager
async def calling(nvml, path):
    """Run all that lies between driver and socket; yield a caller of the socket."""
    board = Board(
        run="r", node="n", labels={}, window_seconds=1, tick_seconds=0.05, stale_seconds=0.5,
        reject=lambda _: None,
    )  # fmt: skip
    release, published = Release(60), Published()
    supervisor = Supervisor(
        nvml,
        Plan.of(()),
        begin=lambda driver, slots: board.begin(driver.driver, slots, time.monotonic()),
        end=board.end,
        hold=lambda _: board.hold(time.monotonic()),
        release=release,
    )
    control = Control(release=release, supervisor=supervisor, board=board, publication=published)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(supervisor.close)
        await stack.enter_async_context(
            background(("ticks", ticking(supervisor, board, published)))
        )
        await stack.enter_async_context(
            listening(control.application(), path, setting="control_socket")
        )
        caller = Caller(await stack.enter_async_context(client(path)))
        await caller.until(lambda status: status["gpus"])
        yield caller
    assert nvml.misuse == []


async def test_the_status_says_how_it_stands_with_the_driver(desk, gpu, path):
    nvml = desk(gpu(0), gpu(1))
    nvml.found["GPU-1"] = Lost("gpu_is_lost")
    async with calling(nvml, path) as caller:
        status = await caller.until(lambda status: status["gpus"][1]["state"] != "up")
    assert status == {
        "released": False,
        "reason": None,
        "seconds_left": None,
        "driver": "580.95.05",
        "driver_down": None,
        "tick_age_seconds": 0.25,
        "gpus": [
            {"gpu": 0, "uuid": "GPU-0", "model": "NVIDIA H100", "state": "up"},
            {"gpu": 1, "uuid": "GPU-1", "model": "NVIDIA H100", "state": "gpu_is_lost"},
        ],
    }


async def test_a_release_is_answered_once_nothing_is_held_and_ends_when_told_to(desk, gpu, path):
    nvml = desk(gpu())
    async with calling(nvml, path) as caller:
        code, status = await caller.call("POST", "/release?seconds=5m&reason=driver_upgrade")
        assert (nvml.starts, nvml.stops, nvml.sessions_open) == (1, 1, 0)
        assert (code, status["released"], status["reason"]) == (200, True, "driver_upgrade")
        assert 200 < status["seconds_left"] <= 300
        assert status["driver_down"] == "released"
        code, _ = await caller.call("POST", "/resume")
        assert code == 200
        status = await caller.until(lambda status: not status["released"])
        assert status["reason"] is None
        await caller.until(lambda status: status["driver_down"] is None)
        assert nvml.starts == 2
        assert (await caller.call("POST", "/resume"))[0] == 200


async def test_a_release_lasts_as_long_as_it_says_and_no_longer(desk, gpu, path):
    nvml = desk(gpu())
    async with calling(nvml, path) as caller:
        await caller.call("POST", "/release?seconds=0.2")
        await caller.until(lambda status: status["driver_down"] is None)
        assert nvml.starts == 2


async def test_no_gpu_goes_down_for_a_release(desk, gpu, path):
    async with calling(desk(gpu(0), gpu(1)), path) as caller:
        # Three times as long as a value may be old.
        await caller.call("POST", "/release?seconds=1.5")
        states = set()

        def over(status):
            states.update(gpu["state"] for gpu in status["gpus"])
            return status["driver_down"] is None

        await caller.until(over)
        assert states == {"up"}


async def test_a_call_that_hangs_is_a_conflict_that_names_it(desk, gpu, path, monkeypatch):
    monkeypatch.setattr("exporter.nvml.supervisor.RELEASE_PATIENCE_SECONDS", 0.2)
    nvml = desk(gpu(0), gpu(1))
    async with calling(nvml, path) as caller:
        gate = nvml.hang("GPU-1")
        await until(lambda: nvml.stuck)
        code, answer = await caller.call("POST", "/release")
        assert (code, nvml.stops) == (409, 0)
        assert "GPU 1 in devices" in answer["error"]
        gate.set()
        assert (await caller.call("POST", "/release"))[0] == 200


async def test_whoever_waits_for_a_call_that_hangs_does_not_hold_up_the_end(desk, gpu, path):
    nvml = desk(gpu(0), gpu(1))
    async with asyncio.TaskGroup() as group, client(path) as session:
        async with calling(nvml, path) as caller:
            gate = nvml.hang("GPU-1")
            await until(lambda: nvml.stuck)
            waiting = group.create_task(Caller(session).call("POST", "/release"))
            await caller.until(lambda status: status["reason"] == "request")
        # It was answered, not cut off when the server had waited long enough.
        assert await waiting == (409, {"error": "the exporter ends"})
        gate.set()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("seconds=0", "0 s is not above 0 and at most 600 s"),
        ("seconds=601", "at most 600"),
        ("seconds=-3", "'-3' is not a valid duration; write it like 15s"),
        ("seconds=soon", "'soon' is not a valid duration"),
        ("reason=Not%20a%20word", "reason: 'Not a word' is no word"),
        ("second=30", "no parameter 'second'; there are seconds and reason"),
    ],
)
async def test_what_cannot_be_is_refused_with_what_to_write(desk, gpu, path, query, said):
    nvml = desk(gpu())
    async with calling(nvml, path) as caller:
        code, answer = await caller.call("POST", f"/release?{query}")
        assert code == 400
        assert said in answer["error"]
        assert not (await caller.call("GET", "/status"))[1]["released"]
        assert nvml.stops == 0


async def test_to_read_is_not_to_release(desk, gpu, path):
    async with (
        calling(desk(gpu()), path),
        client(path) as session,
        session.get("http://node/release") as response,
    ):
        assert response.status == 405


async def test_sigusr1_asks_for_a_release_of_the_usual_time(hand):
    release = Release(45, hand)
    release_on_signal(release)
    os.kill(os.getpid(), signal.SIGUSR1)
    await until(lambda: release.reason)
    assert (release.reason, release.seconds_left) == ("signal", 45)


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--release-seconds=0", "0 s is not above 0 and at most 600 s"),
        ("--release-seconds=11m", "660 s is not above 0 and at most 600 s"),
        (f"--control-socket=/{'x' * 103}", "is longer than the 107 bytes of a socket"),
    ],
)
def test_settings_that_cannot_be_are_refused(flag, said):
    with pytest.raises(SettingsError, match=said):
        load(ExporterSettings, [flag], {})


def test_there_is_no_socket_unless_one_is_named():
    assert load(ExporterSettings, [], {}).control_socket == ""
    settings = load(ExporterSettings, [f"--control-socket=/{'x' * 102}"], {})
    assert len(settings.control_socket) == 103
