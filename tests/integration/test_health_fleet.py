"""Monitors with their real checks over days of a fleet: noise leads to nothing, every fault is found."""

import pytest
from structlog.testing import capture_logs

from health.checks.model import Action
from health.settings import HealthSettings
from testbed.health_fleet import fleet, schedule
from testbed.health_fleet.ailments import BY_NAME, FAULTS, NOISE
from testbed.health_fleet.clusters import Cluster
from testbed.health_fleet.fleet import Plan
from testbed.health_fleet.life import Life
from testbed.health_fleet.machine import DAY_SECONDS
from testbed.health_fleet.schedule import Happening

pytestmark = pytest.mark.timeout(600)
SETTINGS = HealthSettings(node_name="any")
HOUR_SECONDS = 3600.0


@pytest.fixture(autouse=True)
def quiet():
    with capture_logs():
        yield


async def strongest_of(ailment, seconds, **machine):
    """Return what a monitor comes to within that time, and whether it has cordoned the node."""
    cluster = Cluster(1, 2, SETTINGS, **machine)
    await cluster.set_up()
    for _ in range(6):
        await cluster.turn()
    cluster.machines[0].fall_ill(0, ailment)
    strongest = Action.RECORD
    # The first poll may come as late as a poll can.
    for _ in range(int(seconds // 60)):
        await cluster.turn()
        faults = cluster.wardens[0].decision.faults
        strongest = max([strongest, *(fault.action for fault in faults)])
    return strongest, cluster.kube.out() == {"node-0"}


@pytest.mark.parametrize("kernel_log", [False, True])
@pytest.mark.parametrize("name", [one.name for one in FAULTS])
async def test_a_fault_leads_to_what_it_warrants_in_time(name, kernel_log):
    fault = BY_NAME[name]
    found, cordoned = await strongest_of(fault, fault.within_seconds, kernel_log=kernel_log)
    assert found is fault.asks
    assert cordoned is (fault.asks is Action.CORDON)


@pytest.mark.parametrize("kernel_log", [False, True])
@pytest.mark.parametrize("name", [one.name for one in NOISE])
async def test_noise_leads_to_no_more_than_a_warning(name, kernel_log):
    noise = BY_NAME[name]
    found, cordoned = await strongest_of(
        noise, max(600, noise.lasts_seconds), kernel_log=kernel_log
    )
    assert found <= noise.asks <= Action.WARN
    assert not cordoned


async def test_two_days_of_a_healthy_fleet_bring_no_cordon_and_few_writes():
    outcome = await fleet.run(Plan(nodes=50, days=2))
    assert not outcome.harms()
    assert not outcome.cordons
    assert outcome.writes_per_hour() <= 12


async def test_faults_of_a_fleet_are_found_repaired_and_forgotten(monkeypatch):
    # As many in a day as there are in a year.
    monkeypatch.setattr(schedule, "COUNTED_GPU_DAYS", schedule.COUNTED_GPU_DAYS / 300)
    monkeypatch.setattr(schedule, "LEMONS_SHARE", 0.5)
    outcome = await fleet.run(Plan(nodes=12, days=3, faults=True, seed="sample"))
    assert not outcome.unfounded
    assert not outcome.left
    assert len(outcome.found) > 5
    assert outcome.cordons == outcome.uncordons > 0


def eventful():
    """Return two days in which everything happens to one node, with hours of nothing between."""
    kinds = [
        "xid_45_storm",
        "call_hangs",
        "contained",
        "brake_of_the_site",
        "program_faults_again",
    ]
    for hour, name in enumerate(kinds, start=1):
        at = 4 * hour * HOUR_SECONDS + 17
        yield schedule._befalls(at, 0, BY_NAME[name])
        yield schedule._ends(at + 5400, 0, BY_NAME[name])
        yield Happening(at=at + 5400, does=lambda one: one.restart_exporter(silent=70))
    yield Happening(
        at=30 * HOUR_SECONDS, boots=True,
        does=lambda one: one.boot(down=40, driver=100, training=200),
    )  # fmt: skip


async def lived(*, skips):
    cluster = Cluster(1, 1, SETTINGS)
    await cluster.set_up()
    life = Life(cluster, 0, eventful(), phase=5, skips=skips)
    writes = 0
    while life.next_at < 2 * DAY_SECONDS:
        writes += (await life.poll()).writes.total()
    life.end(2 * DAY_SECONDS)
    return life, cluster, writes


async def test_time_that_is_left_out_would_have_changed_nothing():
    whole, whole_cluster, whole_writes = await lived(skips=False)
    some, some_cluster, some_writes = await lived(skips=True)
    assert some.polls < whole.polls / 3
    assert some.polls * 60 + some.skipped_seconds == pytest.approx(whole.polls * 60)
    assert some.changes == whole.changes
    assert len(whole.changes) > 8
    assert [f.seconds for f in some.found] == [f.seconds for f in whole.found]
    assert some_cluster.kube.flips == whole_cluster.kube.flips
    assert some_cluster.kube.cordons == whole_cluster.kube.cordons == ["node-0"]
    left_out = some.skipped_seconds / fleet.SECONDS_BETWEEN_HEARTBEATS
    assert some_writes + left_out == pytest.approx(whole_writes, rel=0.03)
