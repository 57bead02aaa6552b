"""The cache of a selection: single passes, and how the loop goes through every fault."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from slicewatch.kube import errors
from slicewatch.kube.cache import Cache
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.objects import CONFIG_MAP, ConfigMap, Kind, Selection
from slicewatch.kube.protocol import Change, Event, Page
from slicewatch.service.backoff import Backoff

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
        assert asyncio.get_running_loop().time() < deadline, f"timed out waiting for {what}"
        await asyncio.sleep(0.005)


def quick(kube: FakeKube) -> Cache[ConfigMap]:
    return Cache(kube, CONFIG_MAP, Selection(), Backoff(first_seconds=0.002, most_seconds=0.02))


async def test_a_refresh_reads_all_pages_and_reports_what_changed(
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


async def test_a_second_refresh_reports_only_differences() -> None:
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
    kube.fail_next(errors.UnavailableError("away"))
    with pytest.raises(errors.UnavailableError):
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


@pytest.mark.parametrize(
    "fault", [errors.UnavailableError("away"), errors.ForbiddenError("no role")]
)
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
        kube.fail_next(errors.UnavailableError("away"), times=2)
        kube.break_watches(errors.UnavailableError("away"))
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
    refused = errors.ForbiddenError("may list, may not watch")
    kube.fail_next(refused, times=8)
    seen: set[str] = set()
    async with running(cache):
        await until(lambda: cache.fault == str(refused), "the first refusal")
        while kube._faults:
            seen.add(cache.fault)
            await asyncio.sleep(0)
        await until(lambda: not cache.fault, "the watch to be open")
    assert seen == {str(refused)}


class Counting(FakeKube):
    """Counts the lists; while told to, its watches break right after they have opened."""

    def __init__(self) -> None:
        super().__init__()
        self.lists = 0
        self.breaks_with: errors.KubeError | None = None

    async def list(self, *args: Any, **named: Any) -> Any:
        self.lists += 1
        return await super().list(*args, **named)

    async def watch(
        self, kind: Kind[Any], selection: Selection, *, version: str
    ) -> AsyncGenerator[Event[Any], None]:
        if self.breaks_with is not None:
            yield Event(change=Change.BOOKMARK, version=version)
            raise self.breaks_with
        async with aclosing(super().watch(kind, selection, version=version)) as events:
            async for event in events:
                yield event


@pytest.mark.parametrize(
    "fault",
    [
        errors.MalformedError("half an event"),
        errors.UnavailableError("away"),
        errors.ForbiddenError("no role"),
        errors.KubeError("400"),
    ],
    ids=lambda fault: type(fault).__name__,
)
async def test_a_watch_that_never_works_still_leaves_no_deleted_object(
    fault: errors.KubeError,
) -> None:
    kube = Counting()
    kube.breaks_with = fault
    await put(kube, "a", "b")
    cache = quick(kube)
    with capture_logs() as logged:
        async with running(cache):
            await until(lambda: names(cache) == {"a", "b"}, "the list")
            kube.delete(CONFIG_MAP, "a", "ns")
            await until(lambda: names(cache) == {"b"}, "the deletion that no watch told")
            await until(lambda: kube.lists >= 4, "more lists")
            kube.breaks_with = None
            await put(kube, "c")
            await until(lambda: names(cache) == {"b", "c"}, "the watch that works")
            assert cache.fault == ""
    assert [e["event"] for e in logged if e["log_level"] == "warning"] == ["watch failed"]


async def test_a_single_failure_costs_no_list() -> None:
    kube = Counting()
    cache = quick(kube)
    async with running(cache):
        await until(lambda: cache.synced and not cache.fault, "the watch")
        for number in range(5):
            kube.break_watches(errors.UnavailableError("away"))
            await put(kube, f"m{number}")
            await until(lambda: len(cache.objects) == number + 1, "the change")  # noqa: B023
    assert kube.lists == 1


class Endless(FakeKube):
    """Answers every page of a list with a token for one more."""

    def __init__(self, *, grows: bool) -> None:
        super().__init__()
        self.grows = grows
        self.pages = 0

    async def list(self, kind: Kind[Any], *_: Any, **__: Any) -> Any:
        self.pages += 1
        name = f"m{self.pages}" if self.grows else "m"
        made = msgspec.convert(body(name), kind.type)
        return Page(objects=(made,), version="1", more="more")


@pytest.mark.parametrize(("grows", "pages"), [(False, 2), (True, 20)])
async def test_a_list_that_does_not_end_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, grows: bool, pages: int
) -> None:
    monkeypatch.setattr("slicewatch.kube.cache.MOST_PAGES", 20)
    kube = Endless(grows=grows)
    with pytest.raises(errors.MalformedError, match="list of configmaps does not end"):
        await quick(kube).refresh()
    assert kube.pages == pages


def test_waits_grow_to_their_limit_and_differ() -> None:
    waits = Backoff(first_seconds=1.0, most_seconds=8.0)
    taken = [waits.next_seconds() for _ in range(2000)]
    assert all(0.5 * s <= t <= s for s, t in zip([1, 2, 4, 8, 8], taken[:5], strict=True))
    assert max(taken) <= 8.0
    assert len(set(taken[10:])) > 1900
    waits.reset()
    assert waits.next_seconds() <= 1.0
