"""What has lived for a while is spared by the garbage collector, and is still found in the end."""

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from adapter import garbage


class Node:
    """Something that can be in a cycle."""

    def __init__(self) -> None:
        self.other: Node | None = None


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


async def test_the_collector_works_only_when_it_is_told_to_while_the_task_runs() -> None:
    task = asyncio.ensure_future(garbage.run())
    await asyncio.sleep(0)
    assert not gc.isenabled()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


async def test_many_new_objects_are_looked_at_before_the_time_is_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(garbage, "MOST_NEW", 1000)
    monkeypatch.setattr(garbage, "LOOK_SECONDS", 0.01)
    task = asyncio.ensure_future(garbage.run())
    await asyncio.sleep(0)
    kept = [Node() for _ in range(5000)]
    async with asyncio.timeout(5):
        while any(one is kept[0] for one in gc.get_objects()):  # noqa: ASYNC110 - as below
            await asyncio.sleep(0.01)
    task.cancel()


async def test_what_is_alive_is_set_aside_and_freed_all_the_same_when_it_is_let_go() -> None:
    kept = Node()
    seen = weakref.ref(kept)
    task = asyncio.ensure_future(garbage.run())
    await asyncio.sleep(0)
    assert gc.get_freeze_count() > 1000
    assert not any(one is kept for one in gc.get_objects())
    del kept
    assert seen() is None
    task.cancel()


async def test_a_cycle_that_was_set_aside_is_found_within_the_hour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(garbage, "ALL_SECONDS", 0.02)
    monkeypatch.setattr(garbage, "SECONDS", 0.01)
    monkeypatch.setattr(garbage, "LOOK_SECONDS", 0.01)
    one, two = Node(), Node()
    one.other, two.other = two, one
    seen = weakref.ref(one)
    task = asyncio.ensure_future(garbage.run())
    await asyncio.sleep(0)
    del one, two
    async with asyncio.timeout(5):
        while seen() is not None:  # noqa: ASYNC110 - polls what has no event, with a deadline
            await asyncio.sleep(0.01)
    task.cancel()
