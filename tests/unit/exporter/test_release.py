"""Letting go of the driver: who may ask, for how long, and what happens where a call hangs."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter import release as releasing
from exporter.measure.board import Board
from exporter.nvml.protocol import Slot, Value
from exporter.nvml.supervisor import RELEASE_PATIENCE_SECONDS
from exporter.release import (
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    LONGEST_SECONDS,
    Release,
    ReleaseRefusedError,
    ReleaseWindow,
)
from tests.unit.exporter.desk import until
from tests.unit.exporter.office import NO_DRIVER

HOUR = 3600


def spans(window, act, seconds):
    """Return when the window opened and closed while ``act`` was called every second."""
    found = []
    for now in range(seconds):
        act(now)
        if window.is_open(now):
            if not found or found[-1][1] is not None:
                found.append([now, None])
        elif found and found[-1][1] is None:
            found[-1][1] = now
    return found


class TestWindow:
    def test_it_is_open_for_the_usual_time(self):
        window = ReleaseWindow(60)
        assert not window.is_open(0)
        window.ask("signal", 10)
        assert (window.reason, window.seconds_left(10), window.seconds_open(30)) == (
            "signal", 60, 20,
        )  # fmt: skip
        assert window.is_open(69.9)
        assert not window.is_open(70)
        assert (window.reason, window.seconds_left(70), window.seconds_open(70)) == ("", 0, 0)

    def test_asking_again_makes_it_longer_and_never_shorter(self):
        window = ReleaseWindow(60)
        window.ask("request", 0, 100)
        window.ask("request", 10, 20)
        assert window.seconds_left(10) == 90
        window.ask("signal", 50)
        assert window.seconds_left(50) == 60
        assert window.reason == "request"

    def test_all_that_is_asked_for_together_has_an_end(self):
        window = ReleaseWindow(60)
        for now in range(int(LONGEST_SECONDS)):
            window.ask("request", now)
        assert window.seconds_left(LONGEST_SECONDS - 1) == 1

    def test_what_is_noticed_all_the_time_counts_after_pauses_that_grow(self):
        window = ReleaseWindow(60)
        found = spans(window, lambda now: window.trigger("mig_config", now), 6 * HOUR)
        lengths = [end - begin for begin, end in found[:-1]]
        pauses = [later[0] - earlier[1] for earlier, later in pairwise(found)]
        assert set(lengths) == {LONGEST_SECONDS}
        assert pauses[:3] == [FIRST_PAUSE_SECONDS, 120, 240]
        assert max(pauses) <= LONGEST_PAUSE_SECONDS

    def test_the_pause_holds_though_the_reason_was_gone_meanwhile(self):
        """Whoever sets and clears a label all the time does not keep the GPUs unread."""
        window = ReleaseWindow(60)

        def flap(now):
            window.trigger("mig_config", now) if now % 2 else window.withdraw("mig_config", now)

        found = spans(window, flap, HOUR)
        released = sum(end - begin for begin, end in found if end is not None)
        assert 0 < released < HOUR / 50

    def test_a_reason_that_is_gone_has_its_short_pause_again(self):
        window = ReleaseWindow(60)
        for _ in range(3):
            window.trigger("mig_pending", 0)
            window.close(0)
            window.withdraw("mig_pending", 0)
            window._pauses["mig_pending"]._over_at = 0
        window.trigger("mig_pending", 0)
        window.close(1)
        window.trigger("mig_pending", FIRST_PAUSE_SECONDS)
        assert not window.is_open(FIRST_PAUSE_SECONDS)
        window.trigger("mig_pending", 1 + FIRST_PAUSE_SECONDS)
        assert window.is_open(1 + FIRST_PAUSE_SECONDS)

    def test_whoever_asks_expressly_waits_for_no_pause(self):
        window = ReleaseWindow(60)
        window.trigger("mig_pending", 0)
        window.close(5)
        window.ask("request", 5)
        assert window.is_open(5)

    def test_a_reason_that_is_gone_leaves_it_open_for_another(self):
        window = ReleaseWindow(60)
        window.trigger("mig_config", 0)
        window.ask("request", 1, 30)
        window.withdraw("mig_config", 2)
        assert window.reason == "request"
        assert window.seconds_left(2) == 29
        window.withdraw("mig_config", 3)
        assert window.is_open(3)

    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["ask", "trigger", "withdraw", "close"]),
                st.sampled_from(["mig_pending", "mig_config", "request"]),
                st.floats(0, 400),
            ),
            max_size=40,
        )
    )
    def test_it_never_stays_open_beyond_the_limit_of_its_first_second(self, acts):
        window, now, opened = ReleaseWindow(60), 0.0, None
        for act, reason, passed in acts:
            now += passed
            if not window.is_open(now):
                opened = None
            window.close(now) if act == "close" else getattr(window, act)(reason, now)
            if not window.is_open(now):
                opened = None
                continue
            opened = now if opened is None else opened
            assert now + window.seconds_left(now) <= opened + LONGEST_SECONDS + 1e-6
            assert window.reason

    @pytest.mark.parametrize("seconds", [0, -1, LONGEST_SECONDS + 1, float("nan"), float("inf")])
    def test_a_time_that_is_not_possible_is_refused(self, seconds):
        window = ReleaseWindow(60)
        with pytest.raises(ValueError, match="s is not above 0 and at most 600 s"):
            window.ask("request", 0, seconds)
        assert not window.is_open(0)

    @pytest.mark.parametrize("reason", ["", "Reset", "two words", "a" * 41, 'x"', "1st"])
    def test_a_reason_that_is_no_label_is_refused(self, reason):
        with pytest.raises(ValueError, match="reason: "):
            ReleaseWindow(60).ask(reason, 0)


async def answer(release, *arguments):
    """Ask for a release; return why it was refused, or nothing."""
    try:
        await release.obtain(*arguments)
    except ReleaseRefusedError as error:
        return str(error)
    return ""


async def asking(group, release, *arguments):
    """Begin to ask for a release; return the task once it waits."""
    task = group.create_task(answer(release, *arguments))
    await until(lambda: release._waiting or task.done())
    return task


class TestAsking:
    async def test_whoever_asks_is_answered_once_it_is_granted(self, hand):
        release = Release(60, hand)
        async with asyncio.TaskGroup() as group:
            task = await asking(group, release, "request", 30)
            assert release.is_wanted()
            assert not task.done()
            release.grant()
        assert task.result() == ""
        assert await answer(release, "request") == ""

    async def test_whoever_asks_is_told_why_it_is_refused(self, hand):
        release = Release(60, hand)
        async with asyncio.TaskGroup() as group:
            task = await asking(group, release, "request")
            release.refuse("GPU 1 hangs")
        assert "GPU 1 hangs" in task.result()
        assert not release.is_wanted()

    async def test_whoever_asks_is_told_when_somebody_ends_it_before(self, hand):
        release = Release(60, hand)
        async with asyncio.TaskGroup() as group:
            task = await asking(group, release, "request")
            release.resume()
            release.is_wanted()
        assert "was over before" in task.result()

    async def test_whoever_left_is_answered_no_more(self, hand):
        release = Release(60, hand)
        async with asyncio.TaskGroup() as group:
            (await asking(group, release, "request")).cancel()
        release.grant()

    async def test_it_is_wanted_for_as_long_as_the_label_says_pending(self, hand):
        release = Release(60, hand)
        release.follow_mig_state("pending")
        for _ in range(500):
            assert release.is_wanted()
            hand.now += 1
        release.follow_mig_state("success")
        assert not release.is_wanted()

    async def test_a_label_that_says_pending_right_after_the_last_time_counts_after_the_pause(
        self, hand
    ):
        release = Release(60, hand)
        release.follow_mig_state("pending")
        assert release.is_wanted()
        release.follow_mig_state("failed")
        release.follow_mig_state("pending")
        assert not release.is_wanted()
        hand.now += FIRST_PAUSE_SECONDS
        assert release.is_wanted()

    async def test_a_label_that_stays_pending_does_not_keep_it_for_ever(self, hand):
        release = Release(60, hand)
        release.follow_mig_state("pending")
        wanted = 0
        for _ in range(24 * 60):
            wanted += release.is_wanted()
            hand.now += 60
        assert wanted < 24 * 60 / 4


async def released(office, *arguments, ticks=1):
    """Ask for a release, and tick."""
    office.release.ask(*(arguments or ("request",)))
    for _ in range(ticks):
        await office.pass_all()


async def test_nothing_of_the_driver_is_held_in_a_release(offices, desk, gpu):
    """dcgm-exporter #706, dra-driver-nvidia-gpu #1076, gpu-operator #118: a client in the way."""
    office = offices(desk(gpu(0), gpu(1)))
    await office.pass_all()
    await released(office, "request", 30)
    assert office.release.granted
    assert office.held == ["request"]
    assert (office.desk.starts, office.desk.stops) == (1, 1)
    assert office.desk.sessions_open == 0
    assert office.supervisor.down_reason == "released"
    reads = len(office.desk.reads)
    for _ in range(28):
        assert await office.pass_all() == {}
    assert len(office.desk.reads) == reads
    assert office.desk.starts == 1


async def test_after_a_release_all_is_read_again(offices, desk, gpu):
    office = offices(desk(gpu(0), gpu(1)))
    await office.pass_all()
    await released(office, "request", 30, ticks=31)
    assert set(await office.pass_all()) == {"GPU-0", "GPU-1"}
    assert (office.desk.starts, office.desk.stops) == (2, 1)
    assert not office.release.granted
    assert office.supervisor.down_reason == ""
    assert len(office.began) == 2
    assert office.ended == []


async def test_a_release_ends_early_when_somebody_says_so(offices, desk, gpu):
    office = offices(desk(gpu()))
    await office.pass_all()
    await released(office, ticks=3)
    office.release.resume()
    assert set(await office.pass_all()) == {"GPU-0"}


async def test_a_hundred_releases_leave_nothing_behind(offices, desk, gpu):
    office = offices(desk(gpu(0), gpu(1)))
    for _ in range(100):
        await office.pass_all()
        await released(office, "signal", 1)
    assert set(await office.pass_all()) == {"GPU-0", "GPU-1"}
    assert office.desk.starts == office.desk.stops + 1
    assert office.desk.sessions_open == 2


async def test_a_call_that_hangs_is_named_and_nvml_stays_and_the_others_go_on(offices, desk, gpu):
    """NVML is not shut down under a thread that is inside a call."""
    office = offices(desk(gpu(0), gpu(1)))
    await office.pass_all()
    gate = office.desk.hang("GPU-1")
    await office.pass_with_one_that_hangs()
    async with asyncio.TaskGroup() as group:
        task = await asking(group, office.release, "request")
        passes = [await office.pass_all()]
        while office.release.is_wanted():
            passes.append(await office.pass_all())
    assert len(passes) > RELEASE_PATIENCE_SECONDS / 2
    assert [set(found) for found in passes] == [*[set()] * (len(passes) - 1), {"GPU-0"}]
    assert "GPU 1 in devices" in task.result()
    assert (office.desk.starts, office.desk.stops, office.held) == (1, 0, [])
    assert set(await office.pass_all()) == {"GPU-0"}
    gate.set()
    await until(lambda: not office.supervisor._relay.running())
    await released(office)
    assert office.release.granted


async def test_whoever_asks_again_while_a_call_hangs_keeps_no_other_gpu_from_being_read(
    offices, desk, gpu
):
    office = offices(desk(gpu(0), gpu(1)))
    await office.pass_all()
    office.desk.hang("GPU-1")
    await office.pass_with_one_that_hangs()
    office.hand.now += RELEASE_PATIENCE_SECONDS
    for _ in range(3):
        office.release.ask("signal")
        assert set(await office.pass_all()) == {"GPU-0"}
        assert not office.release.is_wanted()


async def test_a_call_that_is_merely_slow_is_waited_for(offices, desk, gpu):
    office = offices(desk(gpu(0), gpu(1)))
    await office.pass_all()
    gate = office.desk.hang("GPU-1")
    await office.pass_with_one_that_hangs()
    await released(office, ticks=2)
    assert not office.release.granted
    gate.set()
    await until(lambda: not office.supervisor._relay.running())
    await office.pass_all()
    assert office.release.granted
    assert office.desk.stops == 1


async def test_a_start_that_hangs_is_named(offices, desk, gpu):
    office = offices(desk(gpu()))
    gate = office.desk.hang("start")
    await office.pass_all(0.01)
    async with asyncio.TaskGroup() as group:
        task = await asking(group, office.release, "request")
        while office.release.is_wanted():
            await office.pass_all(0.01)
    assert "NVML is still starting" in task.result()
    gate.set()
    assert set(await office.pass_all()) == {"GPU-0"}


async def test_a_shutdown_that_hangs_is_named_and_nvml_starts_once_it_is_over(offices, desk, gpu):
    office = offices(desk(gpu()))
    await office.pass_all()
    gate = office.desk.hang("stop")
    async with asyncio.TaskGroup() as group:
        task = await asking(group, office.release, "request")
        while office.release.is_wanted():
            await office.pass_all(0.01)
    assert "NVML is still stopping" in task.result()
    assert await office.pass_all(0.01) == {}
    assert office.supervisor.down_reason == "released"
    gate.set()
    assert set(await office.pass_all()) == {"GPU-0"}
    assert (office.desk.starts, office.desk.stops) == (2, 1)


async def test_a_release_during_the_start_follows_it(offices, desk, gpu):
    office = offices(desk(gpu()))
    gate = office.desk.hang("start")
    await office.pass_all(0.01)
    office.release.ask("signal")
    await office.pass_all(0.01)
    assert not office.release.granted
    gate.set()
    await office.pass_all()
    assert office.release.granted
    assert office.desk.starts == office.desk.stops == 1


async def test_without_a_driver_a_release_is_granted_and_no_start_is_tried(offices, desk, gpu):
    office = offices(desk(gpu()))
    office.desk.refusal = NO_DRIVER
    await office.pass_all()
    await released(office, "request", 30, ticks=29)
    assert office.release.granted
    assert office.ended == ["no_driver"]
    office.desk.refusal = None
    office.hand.now += 5
    assert set(await office.pass_all()) == {"GPU-0"}
    assert office.desk.stops == 0


async def test_a_driver_that_is_gone_after_the_release_is_told(offices, desk, gpu):
    office = offices(desk(gpu()))
    await office.pass_all()
    await released(office, "request", 2, ticks=2)
    office.desk.refusal = NO_DRIVER
    await office.pass_all()
    assert office.ended == ["no_driver"]
    assert office.supervisor.down_reason == "no_driver"


async def test_a_mig_mode_that_waits_for_a_reset_releases_the_driver(offices, desk, gpu):
    office = offices(desk(gpu(0), gpu(1)))
    office.desk.mig_change_pending = {"GPU-1"}
    await office.pass_all()
    await office.pass_all()
    assert office.held == ["mig_pending"]
    office.desk.mig_change_pending = set()
    for _ in range(61):
        found = await office.pass_all()
    assert set(found) == {"GPU-0", "GPU-1"}
    for _ in range(200):
        await office.pass_all()
    assert office.held == ["mig_pending"]


async def test_a_reset_that_never_comes_costs_ever_fewer_readings(offices, desk, gpu):
    office = offices(desk(gpu()))
    office.desk.mig_change_pending = {"GPU-0"}
    ticks = 2 * HOUR
    read = sum([bool(await office.pass_all()) for _ in range(ticks)])
    assert len(office.held) == 7
    assert read > ticks * 0.9


@pytest.mark.parametrize("place", [None, "stop"])
async def test_closing_in_a_release_ends_at_once(offices, desk, gpu, place, monkeypatch):
    monkeypatch.setattr("exporter.nvml.supervisor.CLOSE_SECONDS", 0.05)
    office = offices(desk(gpu()))
    await office.pass_all()
    if place:
        office.desk.hang(place)
    office.release.ask("request")
    await office.pass_all(0.05)
    async with asyncio.timeout(5):
        await office.supervisor.close()
    assert office.desk.stops == (0 if place else 1)


class TestBoard:
    """What is known of the GPUs while nobody asks them."""

    @pytest.fixture
    def board(self, gpu):
        board = Board(
            run="r", node="n", labels={}, window_seconds=15, tick_seconds=1, stale_seconds=5,
            reject=lambda _: None,
        )  # fmt: skip
        self.slots = [Slot(index=index, gpu=Value(gpu(index))) for index in (0, 1)]
        board.begin("580", self.slots, 0.0)
        return board

    def test_no_gpu_goes_down_and_after_it_each_has_the_time_that_it_had_left(self, board):
        board.hold(3.0)
        assert board.silent(500.0) == {}
        board.begin("580", self.slots, 500.0)
        assert board.silent(502.0) == {}
        assert len(board.silent(502.1)) == 2

    def test_a_gpu_that_was_down_before_stays_down(self, board):
        board.hold(6.0)
        assert len(board.silent(6.0)) == len(board.silent(500.0)) == 2

    def test_a_driver_that_is_gone_after_it_is_told(self, board):
        board.hold(3.0)
        board.end("no_driver")
        assert set(board.silent(4.0).values()) == {"no_driver"}

    def test_a_gpu_that_is_gone_after_it_is_told(self, board):
        board.hold(3.0)
        board.begin("580", self.slots[:1], 100.0)
        assert list(board.silent(100.0).values()) == ["gpu_not_found"]


def test_the_reasons_that_we_give_are_words():
    for name in ("MIG_PENDING", "MIG_CONFIG", "SIGNAL", "REQUEST"):
        assert releasing.check_reason(getattr(releasing, name))
