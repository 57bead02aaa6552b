"""The course of autoscalers: what they saw and did, noted once per their own look at the metrics."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Self

from testbed.chain.chain import quantity
from testbed.chain.pools import Pool, PoolChain, hpa_name
from testbed.cluster import waiting
from testbed.cluster.waiting import ClusterError

EVERY_SECONDS: Final = 2.0
_TIME: Final = 5
"""Width of the first column."""
UTILIZATION: Final = "gpu_utilization"
LATENCY: Final = "request_latency_ms"
HEADER: Final = (
    "    t  requests/s  busy devices  replicas  wanted  utilization  latency    limited by"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One line of an HPA's course.

    Attributes:
        busy: shares of the devices that pools of this resource keep busy, at the driver.
        replicas, wanted: as the HPA counts and as it decided last.
        values: by metric, the mean over the pods as the HPA read it.
        limit: the reason of its condition ScalingLimited while that holds.
        active: whether it can read its metrics.
    """

    at_seconds: float
    requests_per_second: float
    busy: tuple[float, ...]
    replicas: int
    wanted: int
    values: dict[str, float]
    limit: str
    active: bool

    def __str__(self) -> str:
        busy = "+".join(f"{100 * share:.0f}" for share in self.busy) or "–"
        utilization, latency = (self.values.get(name) for name in (UTILIZATION, LATENCY))
        return (
            f"{self.at_seconds:5.0f}  {self.requests_per_second:10.1f}  {busy:>12}  "
            f"{self.replicas:8}  {self.wanted:6}  {_shown(utilization, '%'):>11}  "
            f"{_shown(latency, 'ms'):>7}    {self.limit}"
        )


def _changes(lines: Sequence[str]) -> list[str]:
    """Return the lines that differ from the one before in more than their time."""
    before = ["", *lines]
    return [
        line for line, last in zip(lines, before, strict=False) if line[_TIME:] != last[_TIME:]
    ]


def _shown(value: float | None, unit: str) -> str:
    return "–" if value is None else f"{value:.0f} {unit}"


class Course:
    """Notes the course of all autoscalers of a chain. A context manager."""

    def __init__(self, chain: PoolChain, *, every_seconds: float = EVERY_SECONDS) -> None:
        self._chain = chain
        self._every_seconds = every_seconds
        self._began = time.monotonic()
        self._moments: dict[str, list[Moment]] = {pool.name: [] for pool in chain.pools}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="course", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=30)

    def seconds(self) -> float:
        """Return what time it is on the course's own clock."""
        return time.monotonic() - self._began

    def of(self, pool: Pool) -> Sequence[Moment]:
        """Return what was noted of a pool so far."""
        return tuple(self._moments[pool.name])

    def until(
        self, pool: Pool, reached: Callable[[Moment], bool], *, what: str, seconds: float
    ) -> Moment:
        """Wait for a moment from now on that has been reached, and return it."""
        seen = len(self._moments[pool.name])

        def found() -> Moment | None:
            return next((one for one in self.of(pool)[seen:] if reached(one)), None)

        return waiting.until(found, what=f"{pool.name}: {what}", seconds=seconds)

    @contextmanager
    def shown(self, pools: Iterable[Pool], *, whole: bool = False) -> Iterator[None]:
        """Print in the end what became of pools meanwhile, with what kubectl describes of each.

        Args:
            pools: which.
            whole: print everything since the course began.
        """
        begun = {pool: 0 if whole else len(self._moments[pool.name]) for pool in pools}
        try:
            yield
        finally:
            for pool, first in begun.items():
                lines = _changes([str(one) for one in self.of(pool)[first:]])
                title = f"{pool.namespace}/{pool.deployment} on {pool.resource}"
                print("", title, HEADER, *lines, sep="\n", flush=True)
                print(f"\n{self.described(pool)}", flush=True)

    def described(self, pool: Pool) -> str:
        """Return what ``kubectl describe hpa`` says."""
        within = f"--namespace={pool.namespace}"
        return self._chain.cluster.kubectl("describe", "hpa", hpa_name(pool), within)

    def rescales(self, pool: Pool) -> list[str]:
        """Return the HPA's own words on every change of the replicas, the first one first."""
        chosen = f"--field-selector=reason=SuccessfulRescale,involvedObject.name={hpa_name(pool)}"
        within = f"--namespace={pool.namespace}"
        events = self._chain.cluster.get("events", chosen, within)["items"]
        events.sort(key=lambda event: event["metadata"]["creationTimestamp"])
        return [str(event["message"]) for event in events]

    def _run(self) -> None:
        while not self._stop.wait(self._every_seconds):
            try:
                found = self._chain.cluster.get("hpa", "--all-namespaces")["items"]
            except ClusterError as error:
                print(f"no course: {error}", flush=True)
                continue
            by_name = {(o["metadata"]["namespace"], o["metadata"]["name"]): o for o in found}
            for pool in self._chain.pools:
                status = by_name.get((pool.namespace, hpa_name(pool)), {}).get("status", {})
                if "conditions" in status:
                    self._moments[pool.name].append(self._moment(pool, status))

    def _moment(self, pool: Pool, status: dict[str, Any]) -> Moment:
        traffic = self._chain.feed.traffic.get(pool.name)
        held = self._chain.devices()[pool.resource]
        conditions = {c["type"]: c for c in status["conditions"]}
        limited = conditions.get("ScalingLimited", {"status": "False"})
        return Moment(
            at_seconds=self.seconds(),
            requests_per_second=traffic.requests_per_second if traffic else 0.0,
            busy=tuple(share for uuid in held if (share := self._chain.feed.gpus.get(uuid))),
            replicas=status.get("currentReplicas", 0),
            wanted=status.get("desiredReplicas", 0),
            values=_values(status.get("currentMetrics") or []),
            limit=limited["reason"] if limited["status"] == "True" else "",
            active=conditions.get("ScalingActive", {}).get("status") == "True",
        )


def _values(metrics: list[dict[str, Any]]) -> dict[str, float]:
    """Return the means by metric; one that could not be read stands there without a name."""
    read = [one["pods"] for one in metrics if one.get("pods", {}).get("metric", {}).get("name")]
    return {one["metric"]["name"]: quantity(one["current"]["averageValue"]) for one in read}
