"""What an HPA does over time, written down once a second as it happens."""

import datetime
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from testbed.chain import manifests
from testbed.chain.chain import Chain

HEADER = "   t  demand  replicas  ready  utilization  age of value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One line of the timeline.

    Attributes:
        replicas, ready: of the Deployment, asked for and running.
        values: ``gpu_utilization`` by pod, as served.
        age_seconds: of the oldest value served, by its timestamp (whole seconds).
    """

    at_seconds: float
    demand_gpus: float
    replicas: int
    ready: int
    values: tuple[float, ...]
    age_seconds: float | None

    @property
    def mean(self) -> float | None:
        """Return what the HPA compares with its target."""
        return sum(self.values) / len(self.values) if self.values else None

    def __str__(self) -> str:
        mean = "      –" if self.mean is None else f"{self.mean:6.1f}%"
        age = "–" if self.age_seconds is None else f"{self.age_seconds:.0f} s"
        return (
            f"{self.at_seconds:4.0f}  {self.demand_gpus:6.2f}  {self.replicas:8}  {self.ready:5}"
            f"  {mean:>11}  {age:>12}"
        )


@dataclass(slots=True)
class Timeline:
    """Watches one Deployment of a chain and prints a line a second."""

    chain: Chain
    deployment: str
    moments: list[Moment] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    _rhythm: threading.Event = field(default_factory=threading.Event)

    def watch(self, seconds: float) -> Iterator[Moment]:
        """Yield moments, about one a second, until the time is over."""
        if not self.moments:
            print(f"\n{HEADER}", flush=True)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begun = time.monotonic()
            moment = self._now()
            self.moments.append(moment)
            print(moment, flush=True)
            yield moment
            self._rhythm.wait(max(0.0, 1.0 - (time.monotonic() - begun)))

    def _now(self) -> Moment:
        status: dict[str, Any] = self.chain.cluster.get(
            "deployment", self.deployment, f"--namespace={manifests.WORKLOADS}"
        )
        readings = list(self.chain.utilization().values())
        return Moment(
            at_seconds=time.monotonic() - self.began,
            demand_gpus=self.chain.demand.gpus,
            replicas=status["spec"]["replicas"],
            ready=status.get("status", {}).get("readyReplicas", 0),
            values=tuple(r.value for r in readings),
            age_seconds=max((_age(r.timestamp) for r in readings), default=None),
        )


def _age(timestamp: str) -> float:
    then = datetime.datetime.fromisoformat(timestamp)
    return (datetime.datetime.now(tz=datetime.UTC) - then).total_seconds()
