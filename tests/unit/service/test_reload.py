"""Reload: what files say takes effect, once; what is wrong with them changes nothing."""

import asyncio
import os
import threading

import pytest
from structlog.testing import capture_logs

from slicewatch.service.reload import Reload, Watched


class Thing:
    """Something made of one file, and how often it was made."""

    def __init__(self, path):
        self.path = path
        self.applied = []
        self.watched = Watched("thing", self.load, self.apply)

    def load(self):
        text = self.path.read_text(encoding="utf-8")
        if "?" in text:
            raise ValueError(f"{self.path}: what is {text}")
        return text

    def apply(self, loaded):
        if loaded == "unfit":
            raise ValueError("it does not fit")
        self.applied.append(loaded)


@pytest.fixture
def thing(tmp_path):
    """Return a thing, started, whose file says ``one``."""
    made = Thing(tmp_path / "file")
    made.path.write_text("one", encoding="utf-8")
    made.watched.start()
    return made


async def write_and_check(thing, text):
    thing.path.write_text(text, encoding="utf-8")
    return await thing.watched.check()


def test_the_first_load_raises_what_is_wrong(tmp_path):
    with pytest.raises(FileNotFoundError):
        Thing(tmp_path / "missing").watched.start()


async def test_a_change_is_applied_once(thing):
    assert not await thing.watched.check()
    assert await write_and_check(thing, "two")
    assert not await thing.watched.check()
    assert thing.applied == ["one", "two"]


async def test_a_file_that_is_written_anew_with_the_same_content_is_no_change(thing):
    assert not await write_and_check(thing, "one")
    assert thing.applied == ["one"]


async def test_a_configmap_that_is_swapped_is_noticed_with_its_times_unchanged(tmp_path):
    """dcgm-exporter #248, and its watcher, which compares names and never sees ``..data`` move."""
    for number in ("one", "two"):
        (tmp_path / number).mkdir()
        (tmp_path / number / "file").write_text(number, encoding="utf-8")
        os.utime(tmp_path / number / "file", (1, 1))
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "file").symlink_to("..data/file")
    thing = Thing(tmp_path / "file")
    thing.watched.start()
    (tmp_path / "..data_tmp").symlink_to("two")
    (tmp_path / "..data_tmp").rename(tmp_path / "..data")
    assert await thing.watched.check()
    assert thing.applied == ["one", "two"]


@pytest.mark.parametrize("fault", ["what?", "unfit"])
async def test_a_faulty_file_changes_nothing_and_is_said_once(thing, fault):
    with capture_logs() as logs:
        for _ in range(3):
            assert not await write_and_check(thing, fault)
    assert thing.applied == ["one"]
    assert thing.watched.fault
    (entry,) = logs
    assert entry["log_level"] == "error"
    assert entry["fault"] == thing.watched.fault


async def test_a_file_that_is_gone_and_comes_back_is_valid_again(thing):
    thing.path.unlink()
    assert not await thing.watched.check()
    assert "No such file" in thing.watched.fault
    assert not await write_and_check(thing, "one")
    assert not thing.watched.fault
    assert await write_and_check(thing, "two")


async def test_a_fault_that_lies_elsewhere_is_over_when_it_is_over_elsewhere(thing, tmp_path):
    """The new file names another one that comes later: the file itself does not change again."""
    other = tmp_path / "other"
    watched = Watched("pair", lambda: thing.load() + other.read_text(), thing.apply)
    other.write_text("+")
    watched.start()
    other.unlink()
    thing.path.write_text("two", encoding="utf-8")
    assert not await watched.check()
    other.write_text("-")
    assert await watched.check()
    assert thing.applied[-1] == "two-"


async def until(condition, seconds=10):
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the code has no event for tests
            await asyncio.sleep(0.005)


async def test_success_and_failure_are_reported_as_they_come(thing):
    reports = []
    at_once = asyncio.Event()
    reload = Reload(thing.watched, report=reports.append, at_once=at_once, every_seconds=3600)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(reload.run())
        await until(lambda: reports == [True])
        for text, expected in (("what?", False), ("two", True)):
            thing.path.write_text(text, encoding="utf-8")
            at_once.set()
            before = len(reports)
            await until(lambda before=before: len(reports) > before)
            assert reports[-1] is expected
        task.cancel()
    assert thing.applied == ["one", "two"]


async def test_files_are_looked_at_without_being_asked_to(thing):
    reload = Reload(thing.watched, report=lambda _: None, every_seconds=0.01)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(reload.run())
        thing.path.write_text("two", encoding="utf-8")
        await until(lambda: thing.applied == ["one", "two"])
        task.cancel()


async def test_asking_when_nothing_changed_is_answered_in_the_log(thing):
    at_once = asyncio.Event()
    reload = Reload(thing.watched, report=lambda _: None, at_once=at_once, every_seconds=3600)
    with capture_logs() as logs:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(reload.run())
            at_once.set()
            await until(lambda: logs)
            task.cancel()
    assert "nothing to reload" in logs[0]["event"]
    assert thing.applied == ["one"]


async def test_a_file_that_cannot_be_read_to_an_end_is_a_fault_and_is_waited_for(
    thing, monkeypatch
):
    monkeypatch.setattr("slicewatch.service.reload.PATIENCE_SECONDS", 0.05)
    thing.path.unlink()
    os.mkfifo(thing.path)
    threads = threading.active_count()
    for _ in range(3):
        assert not await thing.watched.check()
        assert "within 0.05 s" in thing.watched.fault
    # It hangs on one thread, however often somebody looks, and that one is a daemon.
    assert threading.active_count() == threads + 1
    assert all(t.daemon for t in threading.enumerate() if t is not threading.main_thread())
    monkeypatch.setattr("slicewatch.service.reload.PATIENCE_SECONDS", 10)
    pipe = os.open(thing.path, os.O_WRONLY)
    os.write(pipe, b"two")
    os.close(pipe)
    assert await thing.watched.check()
    assert thing.applied == ["one", "two"]
    assert not thing.watched.fault
