"""``python -m testbed.chain.ramp``: the users' HPA from 2 to 20 replicas and back, nothing hastened.

The manifest is applied as it stands in gpu-hpa.yaml; Kubernetes and our processes keep their own
rhythms. That takes more than an hour, so no test does it: tests/e2e/test_hpa.py shows the same in
less time. Each pool needs all its replicas for another reason: GPU time, latency, or both.
"""

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, ClassVar, Final

import yaml

from testbed.chain import manifests, policies, pools
from testbed.chain.course import Course, Moment
from testbed.chain.manifests import Manifest
from testbed.chain.pools import MANIFEST, Equipment, Pool, PoolChain, autoscaler, hpa_name
from testbed.chain.rows import HEADER, Rows
from testbed.chain.traffic import Traffic
from testbed.cluster import waiting
from testbed.cluster.cluster import Cluster
from testbed.cluster.waiting import ClusterError

HPA: Final[Manifest] = yaml.safe_load(MANIFEST.read_text())
LEAST: Final[int] = HPA["spec"]["minReplicas"]
MOST: Final[int] = HPA["spec"]["maxReplicas"]
METRICS: Final = len(HPA["spec"]["metrics"])

SYNC_SECONDS: Final = 15.0  # kube-controller-manager's default.
LOOK_SECONDS: Final = 5.0
_KEEP_EVENTS: Final = "--event-ttl=3h"  # By default, those of the way up were gone in the end.

QUIET_SECONDS: Final = 300.0
UP_SECONDS: Final = 1500.0
HOLD_SECONDS: Final = 300.0
DOWN_SECONDS: Final = 3300.0

WHOLE: Final = Pool(name="whole", resource=manifests.GPU, namespace="ai-inference")
SLICED: Final = Pool(name="sliced", resource=pools.SHARED, namespace="ai-inference-sliced")
MIG: Final = Pool(name="mig", resource=pools.MIG, namespace="ai-inference-mig")
POOLS: Final = (WHOLE, SLICED, MIG)

MODERATE: Final = Traffic(requests_per_second=4, gpu_seconds=0.12)
FULL: Final = {
    # 78 % of nineteen devices, 74 % of twenty: the tolerance is a tenth of the target.
    WHOLE: Traffic(requests_per_second=14.8, gpu_seconds=1),
    # 227 ms in nineteen queues, 200 in twenty, on GPUs that have little to do.
    SLICED: Traffic(requests_per_second=233, gpu_seconds=0.005),
    # As whole GPUs, and queues as long as there are few.
    MIG: Traffic(requests_per_second=59.2, gpu_seconds=0.25),
}
NONE: Final = Traffic()


class RampChain(PoolChain):
    """Pools on a node with devices for all their replicas; our processes have their own defaults."""

    equipment: ClassVar = Equipment(whole=MOST, sliced={pools.SHARED: 5}, partitioned=3)
    workload_metrics: ClassVar = """
workloadMetrics:
  metrics:
    - {name: request_latency_ms, series: request_latency_ms, type: average, idle: zero}
"""
    refreshes_per_second: ClassVar = 3.0  # Of 28 GPUs, which are read once a second.

    def _window_flags(self) -> list[str]:
        return []


class Ramp:
    """One run: quiet, up, hold, down.

    Attributes:
        faults: what autoscalers did that they should not have done.
    """

    def __init__(self, chain: RampChain, course: Course, rows: Rows) -> None:
        self._chain = chain
        self._course = course
        self._rows = rows
        self.faults: list[str] = []

    def run(self) -> None:
        """Take all pools up and down again.

        Raises:
            ClusterError: a part of the way was not done within its deadline.
        """
        self._load(lambda _: MODERATE)
        self._until(self._quiet, what=f"{LEAST} replicas and values", seconds=QUIET_SECONDS)
        self._leg(policies.UP, FULL.__getitem__, MOST, seconds=UP_SECONDS)
        self._hold()
        self._leg(policies.DOWN, lambda _: NONE, LEAST, seconds=DOWN_SECONDS)

    def _leg(
        self, direction: str, traffic: Callable[[Pool], Traffic], replicas: int, *, seconds: float
    ) -> None:
        begun = self._course.seconds()
        self._rows.say(direction)
        self._load(traffic)
        self._until(lambda: self._stand(replicas), what=f"{replicas} ready", seconds=seconds)
        self._rows.say(f"{replicas} replicas are ready in each pool")
        for pool in self._chain.pools:
            moments = [m for m in self._course.of(pool) if m.at_seconds >= begun]
            found = [*_breaches(moments, direction, begun), *_blind(moments)]
            self.faults += [f"{pool.name}: {fault}" for fault in found]

    def _hold(self) -> None:
        begun = self._course.seconds()
        end = begun + HOLD_SECONDS
        over = 2 * HOLD_SECONDS
        self._until(
            lambda: self._course.seconds() >= end, what="the end of the hold", seconds=over
        )
        for pool in self._chain.pools:
            held = [m for m in self._course.of(pool) if m.at_seconds >= begun]
            left = {m.wanted for m in held} - {MOST}
            found = [f"{one} wanted while {MOST} are needed" for one in sorted(left)]
            self.faults += [f"{pool.name}: {fault}" for fault in [*found, *_blind(held)]]
        self._rows.say(f"held; {_memory()}")

    def _load(self, traffic: Callable[[Pool], Traffic]) -> None:
        self._chain.feed.traffic |= {pool.name: traffic(pool) for pool in self._chain.pools}

    def _quiet(self) -> bool:
        latest = [moments[-1] for pool in self._chain.pools if (moments := self._course.of(pool))]
        calm = [m for m in latest if m.active and m.wanted == LEAST and len(m.values) == METRICS]
        return len(calm) == len(self._chain.pools)

    def _stand(self, replicas: int) -> bool:
        latest = [self._course.of(pool)[-1] for pool in self._chain.pools]
        if any(moment.replicas != replicas for moment in latest):
            return False
        within = {pool.namespace for pool in self._chain.pools}
        found = self._chain.cluster.get("deployments", "--all-namespaces")["items"]
        ours = [one for one in found if one["metadata"]["namespace"] in within]
        return all(one["status"].get("readyReplicas") == replicas for one in ours)

    def _until(self, reached: Callable[[], bool], *, what: str, seconds: float) -> None:
        def followed() -> bool:
            self._rows.follow()
            return reached()

        waiting.until(followed, what=what, seconds=seconds, every_seconds=LOOK_SECONDS)


def _breaches(moments: Sequence[Moment], direction: str, begun: float) -> Iterator[str]:
    return policies.violations(
        policies.steps([(m.at_seconds, m.wanted) for m in moments]),
        policies.Rules.of(HPA, direction),
        since_seconds=begun - SYNC_SECONDS,
        late_seconds=2 * LOOK_SECONDS,
    )


def _blind(moments: Sequence[Moment]) -> Iterator[str]:
    """Yield when a metric could not be read: the HPA must know both all the time."""
    for m in moments:
        if not m.active or len(m.values) < METRICS:
            yield f"at {m.at_seconds:.0f} s it knew only {sorted(m.values)}"


def manifests_of(chosen: Sequence[Pool]) -> Iterator[Manifest | str]:
    """Yield the HPA of each pool: the users' file byte for byte, elsewhere with another namespace."""
    for pool in chosen:
        yield MANIFEST.read_text() if pool is WHOLE else autoscaler(pool, hastened=1)


def _memory() -> str:
    lines = Path("/proc/meminfo").read_text().splitlines()
    kilobytes = {name: int(rest.split()[0]) for name, rest in (one.split(":") for one in lines)}
    free, total = (kilobytes[name] / 2**20 for name in ("MemAvailable", "MemTotal"))
    return f"{free:.1f} of {total:.1f} GiB of the machine's memory are available"


def _require_room(cluster: Cluster, chosen: Sequence[Pool]) -> int:
    most = int(cluster.get("node", cluster.node_name)["status"]["allocatable"]["pods"])
    if most < MOST * len(chosen):
        raise ClusterError(
            f"{cluster.node_name} takes {most} pods, and {len(chosen)} pools need {MOST} each:"
            " name fewer with --pools"
        )
    return most


def _run(chosen: Sequence[Pool], file: IO[str]) -> Sequence[str]:
    with ExitStack() as undo:
        cluster = undo.enter_context(
            Cluster.start(hpa_sync_seconds=SYNC_SECONDS, apiserver_flags=[_KEEP_EVENTS])
        )
        limit = _require_room(cluster, chosen)
        chain = undo.enter_context(RampChain(cluster, chosen))
        chain.deploy(chosen)
        for made in manifests_of(chosen):
            cluster.apply(made if isinstance(made, str) else [made])
        course = undo.enter_context(Course(chain, every_seconds=LOOK_SECONDS))
        rows = Rows(course, chosen, file)
        rows.write(f"begun {time.strftime('%F %T')}; the node takes {limit} pods\n{HEADER}")
        ramp = Ramp(chain, course, rows)
        try:
            ramp.run()
        finally:
            for pool in chosen:
                rows.write(f"\n{pool.namespace}/{hpa_name(pool)}\n{course.described(pool)}")
        return ramp.faults


def main() -> int:
    """Run it, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [pool.name for pool in POOLS]
    parser.add_argument("--pools", nargs="+", choices=names, default=names, help="all by default")
    place = Path(tempfile.gettempdir()) / "slicewatch-ramp.txt"
    parser.add_argument("--timeline", type=Path, default=place, help="file; default: %(default)s")
    wanted = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Nothing of the cluster stays.
    with wanted.timeline.open("w", encoding="utf-8") as file:
        faults = _run([pool for pool in POOLS if pool.name in wanted.pools], file)
        verdict = "\n".join(faults) or "each step is one that the policies allow"
        print(verdict, file=file)
    print(f"{verdict}\nthe timeline is in {wanted.timeline}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
