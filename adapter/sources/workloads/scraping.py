"""Pods that autoscalers ask about, scraped for as long as they do.

Nothing is scraped that nobody asked for in the last minutes, and no more pods than a fixed number.
``scrape`` is the single pass for one pod; ``run`` repeats it for all.
"""

import asyncio
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from adapter.cluster.pods import Pods
from adapter.sources.workloads.calculation import outcome
from adapter.sources.workloads.declaration import Configuration, Type
from adapter.sources.workloads.fetching import Fetch, FetchError, Reason, fetching
from adapter.sources.workloads.growth import Counters
from adapter.sources.workloads.outcome import Outcome
from adapter.sources.workloads.page import PageReader
from adapter.sources.workloads.target import Address, Target, is_pod_address, of_pod
from slicewatch.catalog.own import WORKLOAD_FAILURES, WORKLOAD_SCRAPE_SECONDS, WORKLOAD_TARGETS
from slicewatch.kube.objects import Pod
from slicewatch.service import logs
from slicewatch.service.own_metrics import OwnMetrics

log = logs.logger(__name__)

# An autoscaler asks every 15 s, and less often when it has much to do.
INTEREST_SECONDS: Final = 120.0
MOST_PODS: Final = 2000
MOST_CONNECTIONS: Final = 64
# How late a scrape may begin.
_PAUSE_SECONDS: Final = 0.2
# Pods that hang hold connections: each time, the pause before the next try is doubled.
_MOST_DOUBLINGS: Final = 3
# What the log says of one pod: one that fails every other time would fill it.
_MOST_LOGGED: Final = 10

Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """A page that was read.

    Attributes:
        at: when it was asked for, on the monotonic clock; its values are not older.
        read_at: the same in seconds since the epoch.
        outcomes: by metric.
        names: of samples in the page, if some metric was not found in it.
    """

    at: float
    read_at: float
    size_bytes: int
    outcomes: dict[str, Outcome]
    names: frozenset[str]


@dataclass(slots=True, kw_only=True)
class Followed:
    """A pod that is scraped.

    Attributes:
        wanted_until, due_at: on the monotonic clock.
        tried: its page has been read, or could not be.
        busy: a scrape is under way or waits for a connection.
        fault: why the last scrape failed; empty if it did not.
        hung: how many scrapes in a row took too long.
        logged: how often the log has said that it fails, or does no longer.
        counters: by metric.
        latest: the last page that could be read.
        items: what others have encoded of that page; discarded with it.
    """

    pod: Pod
    target: Target
    wanted_until: float
    due_at: float
    tried: bool = False
    busy: bool = False
    fault: str = ""
    hung: int = 0
    logged: int = 0
    counters: dict[str, Counters] = field(default_factory=dict)
    latest: Scrape | None = None
    items: dict[Any, bytes] = field(default_factory=dict)


class Scraper:
    """The pods that are scraped, by namespace and name.

    Attributes:
        revision: number of scrapes and of changes of the configuration so far.
    """

    def __init__(
        self,
        pods: Pods,
        metrics: OwnMetrics,
        *,
        opened: Callable[[], AbstractAsyncContextManager[Fetch]] = fetching,
        permitted: Callable[[Address], bool] = is_pod_address,
        most_pods: int = MOST_PODS,
        most_connections: int = MOST_CONNECTIONS,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._pods = pods
        self._opened = opened
        self._permitted = permitted
        self._most_pods = most_pods
        self._places = asyncio.Semaphore(most_connections)
        self.monotonic = monotonic
        self.wall = wall
        self.revision = 0
        self._followed: dict[Key, Followed] = {}
        self._woken, self._scraped = asyncio.Event(), asyncio.Event()
        self._seconds = metrics.histogram(WORKLOAD_SCRAPE_SECONDS)
        self._failures = metrics.counter(WORKLOAD_FAILURES)
        self._targets = metrics.gauge(WORKLOAD_TARGETS)
        self.configure(Configuration())

    def configure(self, configuration: Configuration) -> None:
        """Read pages for these metrics from now on; what was known by others is forgotten."""
        self.configuration = configuration
        self._reader = PageReader(configuration.metrics)
        self._followed.clear()
        self.revision += 1

    def want(self, pod: Pod) -> Followed | None:
        """Scrape a pod for some time, and return what is known of it.

        Returns:
            None if the adapter scrapes as many pods as it may.

        Raises:
            TargetError: it does not offer its page, or not in a way that can be used.
            NoAddressError: it will have one.
        """
        now = self.monotonic()
        followed = self._followed.get(pod.key)
        if followed is None or followed.pod is not pod:
            followed = self._admitted(pod, followed, now)
        if followed is not None:
            followed.wanted_until = now + INTEREST_SECONDS
        return followed

    async def tried(self, followed: Iterable[Followed], seconds: float) -> None:
        """Wait until each of these has been scraped once, or failed to be, but not longer."""
        waiting = [one for one in followed if not one.tried]
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while waiting:
                    await self._scraped.wait()
                    waiting = [one for one in waiting if not one.tried]

    async def run(self) -> None:
        """Scrape the wanted pods until cancelled."""
        async with self._opened() as fetch, asyncio.TaskGroup() as group:
            while True:
                self._woken.clear()
                for followed in self.due():
                    name = f"scrape {followed.target.url}"
                    group.create_task(self.scrape(followed, fetch), name=name)
                await self._pause()

    async def scrape(self, followed: Followed, fetch: Fetch) -> None:
        """Scrape a pod once, whatever becomes of it."""
        followed.busy = True
        async with self._places:
            began = time.perf_counter()
            try:
                await self._read(followed, fetch)
            except FetchError as error:
                self._failed(followed, error.reason, str(error))
            except Exception:  # The boundary: a bug costs one pod.
                log.exception("scrape failed", url=str(followed.target.url))
                self._failed(followed, Reason.INTERNAL, "the adapter failed; see its log")
            self._seconds.observe(time.perf_counter() - began)
        self._done(followed)

    async def _read(self, followed: Followed, fetch: Fetch) -> None:
        configuration, reader = self.configuration, self._reader
        at, read_at = self.monotonic(), self.wall()
        page = await fetch(followed.target.url, not configuration.insecure_skip_verify)
        found = reader.read(page)
        outcomes: dict[str, Outcome] = {}
        for metric, reading in zip(configuration.metrics, found.readings, strict=True):
            growth = None
            if metric.type is not Type.GAUGE and reading.announced and not reading.fault:
                counters = followed.counters.setdefault(metric.name, Counters(metric))
                counters.add(at, reading.series)
                growth = counters.growth()
            outcomes[metric.name] = outcome(metric, reading, growth)
        followed.latest = Scrape(
            at=at, read_at=read_at, size_bytes=len(page), outcomes=outcomes, names=found.names
        )
        followed.items.clear()
        followed.hung = 0
        self._say(followed, "")

    def _failed(self, followed: Followed, reason: Reason, fault: str) -> None:
        self._failures.labels(str(reason)).inc()
        followed.hung = followed.hung + 1 if reason is Reason.TIMEOUT else 0
        self._say(followed, fault)

    def _done(self, followed: Followed) -> None:
        followed.busy, followed.tried = False, True
        followed.due_at = self._next(followed)
        self.revision += 1
        self._scraped.set()
        self._scraped = asyncio.Event()

    def _say(self, followed: Followed, fault: str) -> None:
        changed = bool(fault) != bool(followed.fault) or (fault and not followed.tried)
        if changed and followed.logged < _MOST_LOGGED:
            followed.logged += 1
            event = "workload cannot be scraped" if fault else "workload scraped again"
            namespace, name = followed.pod.key
            log.info(
                event, namespace=namespace, pod=name, url=str(followed.target.url), error=fault
            )
        followed.fault = fault

    def _next(self, followed: Followed) -> float:
        """Return when the pod is due again: at its own place in the interval, after half of one.

        Pods that were first asked about together are scraped one after another from then on.
        """
        interval = self.configuration.interval_seconds
        place = interval * zlib.crc32(followed.target.uid.encode()) / 2**32
        after = self.monotonic() + interval / 2
        pause = interval * ((1 << min(followed.hung, _MOST_DOUBLINGS)) - 1)
        return after + (place - after) % interval + pause

    def _admitted(self, pod: Pod, former: Followed | None, now: float) -> Followed | None:
        """Return a new place for a pod, or that of its former state if its page is the same."""
        target = of_pod(pod, self._permitted)
        if former is not None and former.target == target:
            former.pod = pod
            return former
        if former is None and len(self._followed) >= self._most_pods:
            return None
        followed = Followed(pod=pod, target=target, wanted_until=now, due_at=now)
        self._followed[pod.key] = followed
        self._woken.set()
        return followed

    def due(self) -> Iterator[Followed]:
        """Yield the pods to be scraped now, and forget those that nobody asks about or are gone."""
        now = self.monotonic()
        for key, followed in list(self._followed.items()):
            if now >= followed.wanted_until or not self._is_there(key, followed):
                del self._followed[key]
            elif not followed.busy and now >= followed.due_at:
                yield followed
        self._targets.set(len(self._followed))

    def _is_there(self, key: Key, followed: Followed) -> bool:
        pod = self._pods.get(*key)
        return pod is not None and not pod.finished and pod.metadata.uid == followed.target.uid

    async def _pause(self) -> None:
        seconds = _PAUSE_SECONDS if self._followed else None
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
