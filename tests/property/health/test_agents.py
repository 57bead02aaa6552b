"""Whole monitors with their real checks through anything: no harm is done, and all of it ends well.

Three nodes share a budget. Faults and noise of all kinds come and go, machines, exporters and
monitors begin anew, people write to the nodes, and the API server fails in every way that it can.
The rules for each single write are in ``testbed.health_fleet.watched_kube``.
"""

import asyncio
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from testbed.health_fleet.ailments import FAULTS, NOISE
from testbed.health_fleet.stories import GPUS, NODES, Story
from testbed.health_fleet.watched_kube import Trouble

# Of each, about two hundred turns of monitors are taken over all tests: twenty thousand and more.
TIMELINES = int(os.environ.get("TIMELINES", "85"))
pytestmark = pytest.mark.timeout(max(600, 12 * TIMELINES))

node = st.integers(0, NODES - 1)
gpu = st.integers(0, GPUS - 1)
away = st.sampled_from([20.0, 90.0, 200.0, 400.0])
down = st.sampled_from(["no_driver", "released", "version_mismatch", "unknown"])
cleared = st.sampled_from([None, "true", "gpu_lost", "xid_fatal", "nonsense"])


def deed(name, *arguments):
    return st.tuples(st.just(name), st.tuples(*arguments))


machines = st.one_of(
    deed("recover", node, gpu),
    deed("boot", node, away, away, away),
    deed("reload_driver", node, down, away),
    deed("restart_exporter", node, away),
    deed("fall_silent", node, away),
    deed("replace_board", node, gpu),
)
processes = st.one_of(
    deed("restart_monitor", node),
    deed("sleep", node, st.booleans()),
    deed("pass_time", st.sampled_from([400.0, 4000.0, 90_000.0])),
)
people = st.one_of(
    deed("cordon", node, st.booleans()),
    deed("say", node, st.just("true"), st.none()),
    deed("say", node, st.none(), cleared),
    deed("pause", st.booleans(), st.sampled_from(["", "all", "gpu_lost"])),
    deed("report", node),
    deed("replace_node", node, st.booleans()),
)
trouble = deed("trouble", st.lists(st.sampled_from(Trouble), min_size=1, max_size=12))
noise = st.sampled_from([one.name for one in NOISE])
anything = st.sampled_from([one.name for one in (*FAULTS, *NOISE)])


def timelines(ailments, *others):
    """Return strategies of timelines: half of what happens befalls GPUs."""
    ill = deed("fall_ill", node, gpu, ailments)
    happenings = st.booleans().flatmap(
        lambda is_ill: ill if is_ill else st.one_of(machines, processes, *others)
    )
    return st.lists(
        st.tuples(happenings, st.sampled_from([0, 1, 1, 2, 3, 6])), min_size=6, max_size=30
    )


chosen = st.fixed_dictionaries({
    "kernel_log": st.booleans(),
    "budget_absolute": st.integers(1, 2),
    "taint": st.booleans(),
})  # fmt: skip


def limits(share):
    return settings(
        max_examples=max(1, int(TIMELINES * share)),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@pytest.fixture(autouse=True)
def quiet():
    with capture_logs():
        yield


@limits(1)
@given(timelines(anything, people, trouble), chosen)
def test_whatever_happens_no_harm_is_done_and_all_of_it_ends_well(timeline, chosen):
    async def run():
        story = Story(**chosen)
        await story.live(timeline)
        await story.end_with_help()

    asyncio.run(run())


@limits(0.25)
@given(timelines(anything, people, trouble), chosen)
def test_once_all_machines_are_well_again_nobody_has_to_help(timeline, chosen):
    async def run():
        # What came too often would wait for a human, as it should.
        story = Story(flapping_limit=100, **chosen)
        await story.live(timeline)
        await story.end_alone()

    asyncio.run(run())


@limits(0.5)
@given(timelines(noise, people, trouble), chosen)
def test_noise_of_whatever_kind_never_takes_a_node_out_of_service(timeline, chosen):
    async def run():
        story = Story(**chosen)
        await story.live(timeline)
        await story.turns(3)
        assert not story.cluster.kube.cordons

    asyncio.run(run())


@limits(0.25)
@given(timelines(anything, people, trouble), chosen)
def test_a_dry_run_asks_for_no_write_at_all(timeline, chosen):
    async def run():
        story = Story(dry_run=True, **chosen)
        await story.live(timeline)
        assert not story.cluster.kube.cordons

    asyncio.run(run())
