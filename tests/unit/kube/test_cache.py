"""The cache of a selection: single passes, and how the loop goes through every fault."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from slicewatch.kube import errors
from slicewatch.kube.backoff import Backoff
from slicewatch.kube.cache import Cache
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.objects import CONFIG_MAP, ConfigMap, Kind, Selection
from slicewatch.kube.protocol import Change, Event

SECONDS = 10.0


def body(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


def names(cache: Cache[ConfigMap]) -> set[str]:
    return {name for _, name in cache.objects}


async def put(kube: FakeKube, *new: str) -> None:
    for name in new:
        await kube.create(CONFIG_MAP, body(name), "ns")


@asynccontextmanager
async def running(cache: Cache[ConfigMap]) -> AsyncIterator[None]:
    task = asyncio.ensure_future(cache.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(condition: Any, what: str) -> None:
    deadline = asyncio.get_running_loop().time() + SECONDS
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, f"waited in vain for {what}"
        await asyncio.sleep(0.005)


def quick(kube: FakeKube) -> Cache[ConfigMap]:
    return Cache(kube, CONFIG_MAP, Selection(), Backoff(first_seconds=0.002, most_seconds=0.02))


async def test_a_refresh_takes_all_pages_and_tells_what_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("slicewatch.kube.cache.PAGE_SIZE", 2)
    kube = FakeKube()
    await put(kube, "a", "b", "c", "d", "e")
    cache = quick(kube)
    told: list[tuple[str | None, str | None]] = []
    cache.listen(
        lambda old, new: told.append((old and old.metadata.name, new and new.metadata.name))
    )
    assert not cache.synced
    await cache.refresh()
    assert cache.synced
    assert names(cache) == set("abcde")
    assert sorted(told) == [(None, n) for n in "abcde"]


async def test_a_second_refresh_tells_only_differences() -> None:
    kube = FakeKube()
    await put(kube, "stays", "goes", "changes")
    cache = quick(kube)
    await cache.refresh()
    kube.delete(CONFIG_MAP, "goes", "ns")
    await kube.patch(CONFIG_MAP, "changes", {"data": {"n": "1"}}, namespace="ns")
    await put(kube, "comes")
    told: dict[str, tuple[bool, bool]] = {}

    def listener(old: ConfigMap | None, new: ConfigMap | None) -> None:
        either = old or new
        assert either is not None
        told[either.metadata.name] = (old is not None, new is not None)

    cache.listen(listener)
    await cache.refresh()
    assert told == {"goes": (True, False), "changes": (True, True), "comes": (False, True)}


async def test_a_failed_page_leaves_what_was_held() -> None:
    kube = FakeKube()
    await put(kube, "a", "b", "c")
    cache = quick(kube)
    await cache.refresh()
    kube.delete(CONFIG_MAP, "a", "ns")
    kube.fail_next(errors.Unavailable("away"))
    with pytest.raises(errors.Unavailable):
        await cache.refresh()
    assert names(cache) == {"a", "b", "c"}


async def test_changes_arrive_while_the_loop_runs() -> None:
    kube = FakeKube()
    cache = quick(kube)
    async with running(cache):
        await until(lambda: cache.synced, "the list")
        await put(kube, "a", "b")
        kube.delete(CONFIG_MAP, "a", "ns")
        await until(lambda: names(cache) == {"b"}, "both changes")


@pytest.mark.parametrize("fault", [errors.Unavailable("away"), errors.Forbidden("no role")])
async def test_the_loop_outlives_failing_lists_and_watches(fault: errors.KubeError) -> None:
    kube = FakeKube()
    await put(kube, "a")
    cache = quick(kube)
    kube.fail_next(fault, times=3)
    async with running(cache):
        await until(lambda: names(cache) == {"a"}, "the list after three failures")
        kube.fail_next(fault, times=2)
        kube.break_watches(fault)
        await until(lambda: cache.fault == str(fault), "the fault to be said")
        assert cache.synced
        await until(lambda: not kube._faults and not cache.fault, "the watch to be open again")
        await put(kube, "b")
        await until(lambda: names(cache) == {"a", "b"}, "the change after the fault")


async def test_a_forgotten_version_is_listed_anew_and_deletions_are_found() -> None:
    kube = FakeKube()
    await put(kube, "a", "b")
    cache = quick(kube)
    async with running(cache):
        await until(lambda: names(cache) == {"a", "b"}, "the list")
        kube.fail_next(errors.Unavailable("away"), times=2)
        kube.break_watches(errors.Unavailable("away"))
        await until(lambda: cache.fault != "", "the broken watch")
        kube.delete(CONFIG_MAP, "a", "ns")
        kube.compact()
        await until(lambda: names(cache) == {"b"}, "the deletion that no watch told")


async def test_a_watch_that_ends_normally_goes_on_where_it_was() -> None:
    kube = FakeKube()
    await put(kube, "a")
    cache = quick(kube)
    lists = 0
    listed = kube.list

    async def counted(*args: Any, **named: Any) -> Any:
        nonlocal lists
        lists += 1
        return await listed(*args, **named)

    kube.list = counted  # type: ignore[method-assign]
    async with running(cache):
        await until(lambda: cache.synced, "the list")
        kube.end_watches()
        await put(kube, "b")
        await until(lambda: names(cache) == {"a", "b"}, "the change in the next watch")
    assert lists == 1


class Bookmarking(FakeKube):
    """Sends one bookmark, then ends; remembers where each watch began."""

    def __init__(self) -> None:
        super().__init__()
        self.began: list[str] = []

    async def watch(
        self,
        kind: Kind[Any],  # noqa: ARG002 - the seam's signature
        selection: Selection,  # noqa: ARG002
        *,
        version: str,
    ) -> AsyncGenerator[Event[Any], None]:
        self.began.append(version)
        yield Event(change=Change.BOOKMARK, version="777")


async def test_a_bookmark_moves_the_version_on() -> None:
    kube = Bookmarking()
    cache = quick(kube)
    await cache.refresh()
    await cache.follow()
    await cache.follow()
    assert kube.began[1] == "777"


async def test_a_watch_that_is_refused_again_and_again_stays_a_fault() -> None:
    kube = FakeKube()
    cache = quick(kube)
    await cache.refresh()
    refused = errors.Forbidden("may list, may not watch")
    kube.fail_next(refused, times=8)
    seen: set[str] = set()
    async with running(cache):
        await until(lambda: cache.fault == str(refused), "the first refusal")
        while kube._faults:
            seen.add(cache.fault)
            await asyncio.sleep(0)
        await until(lambda: not cache.fault, "the watch to be open")
    assert seen == {str(refused)}


def test_waits_grow_to_their_limit_and_differ() -> None:
    waits = Backoff(first_seconds=1.0, most_seconds=8.0)
    taken = [waits.next_seconds() for _ in range(2000)]
    assert all(0.5 * s <= t <= s for s, t in zip([1, 2, 4, 8, 8], taken[:5], strict=True))
    assert max(taken) <= 8.0
    assert len(set(taken[10:])) > 1900
    waits.reset()
    assert waits.next_seconds() <= 1.0
