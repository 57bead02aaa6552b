"""The users' own HPA on a real Kubernetes: from requests to pods, on devices of every kind.

The manifest is testbed/chain/gpu-hpa.yaml, its names, targets, limits and numbers to the letter.
Only its stabilisation windows and policy periods are divided by ``HASTENED`` here, so that a step
takes seconds: 12 s for one up instead of 120 s, 30 s for one down instead of 300 s.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from testbed import require
from testbed.binaries import Unavailable
from testbed.chain import manifests, pools
from testbed.chain.course import EVERY_SECONDS, LATENCY, UTILIZATION, Course, Moment
from testbed.chain.pools import Pool, PoolChain, autoscaler
from testbed.chain.traffic import Traffic
from testbed.cluster import waiting
from testbed.cluster.cluster import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

HASTENED = 10
TARGET = 70
LATENCY_TARGET_MS = 200
TOLERANCE = 0.1
HOLD_SECONDS = 45  # Longer than the stabilisation of changes down and a period of its policy.

WHOLE = Pool(name="whole", resource=manifests.GPU, namespace="ai-inference")
SLICED = Pool(name="sliced", resource=pools.SHARED, namespace="ai-inference-sliced")
MIG = Pool(name="mig", resource=pools.MIG, namespace="ai-inference-mig")
MODES = (WHOLE, SLICED, MIG)
OWN = Pool(name="own", resource=pools.OWN, namespace="ai-inference-own", replicas=4)
IDLE = Pool(name="idle", resource=pools.BESIDE, namespace="ai-inference-idle")
BUSY = Pool(
    name="busy", resource=pools.BESIDE, namespace="strangers", deployment="busy", measured=False
)
CROWD = tuple(
    Pool(
        name=f"crowd-{letter}", resource=pools.CROWD, namespace="strangers",
        deployment=f"crowd-{letter}", replicas=1, least=1, measured=False,
    )
    for letter in "abcd"
)  # fmt: skip
SCALED = (*MODES, OWN, IDLE, *CROWD)

MODERATE = Traffic(requests_per_second=4, gpu_seconds=0.12)  # half of one GPU
HEAVY = Traffic(requests_per_second=8.4, gpu_seconds=0.25)  # 70 % of three, and no queue
NONE = Traffic()


def light(pods: int) -> Traffic:
    """Return requests that leave GPUs nearly idle, and wait even if there is one more pod."""
    return Traffic(requests_per_second=(pods + 1) * 0.85 / 0.06, gpu_seconds=0.01)


@pytest.fixture(scope="module")
def chain() -> Iterator[PoolChain]:
    try:
        Cluster.prepare()
    except Unavailable as missing:
        require.skip_or_fail(str(missing))
    with Cluster.start(hpa_sync_seconds=2) as cluster, PoolChain(cluster, SCALED) as chain:
        chain.feed.traffic |= dict.fromkeys((pool.name for pool in MODES), MODERATE)
        chain.feed.traffic |= {
            IDLE.name: Traffic(requests_per_second=1, gpu_seconds=0.04),
            BUSY.name: Traffic(requests_per_second=1, gpu_seconds=2),
            OWN.name: Traffic(requests_per_second=4, gpu_seconds=TARGET / 100 / 4),
        }
        chain.deploy([*SCALED, BUSY])
        # What is left for the pods to come is another GPU.
        chain.offer(pools.CROWD)
        cluster.apply([autoscaler(pool, hastened=HASTENED) for pool in SCALED])
        yield chain


@pytest.fixture(scope="module")
def course(chain: PoolChain) -> Iterator[Course]:
    with Course(chain) as course:
        yield course


def met(moment: Moment) -> bool:
    """Tell whether the utilization is within the HPA's tolerance of the target."""
    value = moment.values.get(UTILIZATION)
    return value is not None and abs(value / TARGET - 1) <= TOLERANCE


def scaled_out_on_either_metric(chain: PoolChain, course: Course) -> None:
    """Load all modes by GPU time, and by requests that wait as soon as each has grown by that."""
    grown: dict[Pool, int] = {}
    for pool in MODES:
        chain.feed.traffic[pool.name] = HEAVY

    def stepped() -> bool:
        for pool in MODES:
            wanted = course.of(pool)[-1].wanted
            if wanted > 2 and pool not in grown:
                grown[pool] = wanted
                chain.feed.traffic[pool.name] = light(wanted)
        return len(grown) == len(MODES)

    waiting.until(stepped, what="a step of each mode", seconds=40)
    for pool in MODES:
        course.until(pool, lambda m: m.replicas > 4, what="further steps", seconds=60)


def test_the_users_hpa_scales_on_either_metric_on_devices_of_every_kind(
    chain: PoolChain, course: Course
) -> None:
    with course.shown(MODES):
        for pool in MODES:
            course.until(pool, lambda m: m.active and m.wanted == 2, what="quiet", seconds=60)
        scaled_out_on_either_metric(chain, course)
    for pool in MODES:
        first, *others = course.rescales(pool)
        assert first == f"New size: 3; reason: pods metric {UTILIZATION} above target"
        assert others[-1].endswith(f"; reason: pods metric {LATENCY} above target")
        assert any(m.limit == "ScaleUpLimit" for m in course.of(pool)), "no policy was needed"
        highest = {
            metric: max(m.values.get(metric, 0) for m in course.of(pool))
            for metric in (UTILIZATION, LATENCY)
        }
        assert highest[UTILIZATION] > TARGET
        assert highest[LATENCY] > LATENCY_TARGET_MS
        assert "ValidMetricFound" in course.described(pool)


def test_when_the_traffic_stops_the_pools_come_back_to_two_by_the_policys_steps(
    chain: PoolChain, course: Course
) -> None:
    course.until(MIG, lambda m: m.active, what="values", seconds=60)
    if any(course.of(pool)[-1].wanted < 4 for pool in MODES):
        scaled_out_on_either_metric(chain, course)
    with course.shown(MODES):
        begun = {pool: len(course.of(pool)) for pool in MODES}
        for pool in MODES:
            chain.feed.traffic[pool.name] = NONE
        for pool in MODES:
            course.until(pool, lambda m: m.replicas == 2, what="two replicas", seconds=150)
    for pool, first in begun.items():
        down = course.of(pool)[first:]
        assert all(m.wanted >= least for m, least in zip(down, allowed(down), strict=True))
        assert course.rescales(pool)[-1] == "New size: 2; reason: All metrics below target"
        assert any(m.limit == "ScaleDownLimit" for m in down)
        # No request is a known latency, and not one that is missing.
        assert down[-1].values == {UTILIZATION: 0, LATENCY: 0}


def allowed(moments: Sequence[Moment]) -> Iterator[int]:
    """Yield for each moment the fewest replicas that the policy allows: 25 % less in a period."""
    period = 300 / HASTENED - 2 * EVERY_SECONDS  # A moment may be noted late.
    for now in moments:
        recent = [m for m in moments if now.at_seconds - period < m.at_seconds <= now.at_seconds]
        yield int(max(m.wanted for m in recent) * 0.75)


def test_four_saturated_workloads_on_one_gpu_all_scale_out(
    chain: PoolChain, course: Course
) -> None:
    device, other = chain.devices()[pools.CROWD]
    assert chain.feed.gpus.get(device, 0) == chain.feed.gpus.get(other, 0) == 0
    with course.shown(CROWD):
        for pool in CROWD:
            chain.feed.traffic[pool.name] = Traffic(requests_per_second=1, gpu_seconds=0.455)
        for pool in CROWD:
            course.until(pool, lambda m: m.replicas == 2, what="two replicas", seconds=60)
        for pool in CROWD:
            # Each has more than its quarter now, of two GPUs: nobody asks for a third one.
            course.until(pool, met, what="a load that meets the target", seconds=30)
    for pool in CROWD:
        assert [m.wanted for m in course.of(pool)][-1] == 2
        # Its own part was a quarter of the GPU's time: 25 would have been read as idle.
        assert max(m.values.get(UTILIZATION, 0) for m in course.of(pool)) > 85


def test_an_idle_pool_beside_busy_strangers_stays_at_its_minimum(
    chain: PoolChain, course: Course
) -> None:
    with course.shown([IDLE], whole=True):
        moments = waiting.until(
            lambda: watched(course, IDLE), what="enough of its course", seconds=HOLD_SECONDS + 10
        )
    assert {m.wanted for m in moments} == {2}
    assert all(m.active and m.values[UTILIZATION] < 20 for m in moments)
    assert all(m.busy == pytest.approx((1.0,)) for m in moments)


def watched(course: Course, pool: Pool) -> list[Moment] | None:
    """Return the last moments of a pool, once it has been watched for long enough."""
    moments = [m for m in course.of(pool) if m.values]
    recent = [m for m in moments if m.at_seconds > moments[-1].at_seconds - HOLD_SECONDS]
    return recent if len(recent) < len(moments) else None


def test_a_pool_that_shares_its_gpus_only_with_itself_keeps_them_at_the_target(
    chain: PoolChain, course: Course
) -> None:
    with course.shown([OWN], whole=True):
        kept = waiting.until(
            lambda: watched(course, OWN), what="enough of its course", seconds=HOLD_SECONDS + 10
        )
        # Four pods of 17.5 % each: by their own parts, two would have gone.
        assert {m.wanted for m in kept} == {4}
        assert all(met(m) and m.busy == pytest.approx((0.7,)) for m in kept)

        chain.offer(pools.OWN)
        before = chain.feed.traffic[OWN.name]
        chain.feed.traffic[OWN.name] = replace(before, gpu_seconds=2 * before.gpu_seconds)
        course.until(OWN, lambda m: m.wanted > 4, what="more replicas", seconds=30)
        course.until(
            OWN, lambda m: met(m) and m.replicas == m.wanted, what="the target again", seconds=60
        )
    assert course.of(OWN)[-1].busy == pytest.approx((0.7, 0.7), abs=0.25)
