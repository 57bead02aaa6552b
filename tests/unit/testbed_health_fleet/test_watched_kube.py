"""The watch over monitors' writes sees each kind of harm; otherwise timelines without one mean nothing."""

import pytest

from health.names import CLEAR, CORDONED, HOLD, STATE, TAINT
from health.settings import HealthSettings
from slicewatch.kube.errors import UnavailableError
from slicewatch.kube.nodes import WHOLE_NODE
from testbed.health_fleet.clusters import FOREIGN, Cluster
from testbed.health_fleet.watched_kube import Deeds, HarmError, KilledError, Trouble

CORDON = {"metadata": {"annotations": {CORDONED: "x/y/1"}}, "spec": {"unschedulable": True}}
UNCORDON = {"metadata": {"annotations": {CORDONED: None}}, "spec": {"unschedulable": None}}


def annotated(**values):
    return {"metadata": {"annotations": values}}


@pytest.fixture
async def cluster():
    settings = HealthSettings(node_name="any", budget_absolute=1, budget_percent=100)
    made = Cluster(2, 1, settings)
    await made.set_up()
    return made


async def write(cluster, *patches, node="node-0", strategic=False, **deeds):
    with cluster.kube.acting(Deeds("node-0", **deeds)) as done:
        for patch in patches:
            await cluster.kube.patch(WHOLE_NODE, node, patch, strategic=strategic)
    return done


@pytest.mark.parametrize(
    ("harm", "before", "patches"),
    [
        ("without our mark", [], [{"spec": {"unschedulable": True}}]),
        ("mark without a cordon", [], [annotated(**{CORDONED: "x/y/1"})]),
        ("uncordon without our mark", [{"spec": {"unschedulable": True}}], [UNCORDON]),
        ("mark without its cordon", [CORDON], [{"spec": {"unschedulable": None}}]),
        ("second cordon or uncordon", [], [CORDON, UNCORDON]),
        ("just uncordoned", [CORDON, {"spec": {"unschedulable": None}}], [CORDON]),
        ("on hold", [annotated(**{HOLD: "true"})], [CORDON]),
        ("on hold", [CORDON, annotated(**{HOLD: "true"})], [UNCORDON]),
        ("not ours", [annotated(**{HOLD: "true"})], [annotated(**{HOLD: None})]),
        ("not ours", [], [annotated(**{"example.com/seen": None})]),
        ("not ours", [], [{"metadata": {"labels": {"example.com/rack": "r2"}}}]),
        ("not ours", [], [{"spec": {"taints": FOREIGN["taints"][:1]}}]),
        ("not ours", [], [{"spec": {"podCIDR": None}}]),
        ("not ours", [], [{"status": {"conditions": FOREIGN["conditions"][:1]}}]),
        ("too long", [], [annotated(**{STATE: "x" * 2048})]),
    ],
)
async def test_a_write_that_does_harm_is_seen(cluster, harm, before, patches):
    for patch in before:
        await cluster.kube.patch(WHOLE_NODE, "node-0", patch)
    with pytest.raises(HarmError, match=harm):
        await write(cluster, *patches)
    assert cluster.kube.harms


async def test_a_write_to_another_node_is_seen(cluster):
    with pytest.raises(HarmError, match="another node"):
        await write(cluster, annotated(**{STATE: "x"}), node="node-1")


async def test_a_cordon_that_is_paused_and_a_write_in_a_dry_run_are_seen(cluster):
    with pytest.raises(HarmError, match="paused"):
        await write(cluster, CORDON, may_cordon=False)
    with pytest.raises(HarmError, match="dry run"):
        await write(cluster, annotated(**{STATE: "x"}), may_write=False)


async def test_a_cordon_more_than_the_budget_has_is_seen(cluster):
    await cluster.kube.patch(WHOLE_NODE, "node-1", CORDON)
    with pytest.raises(HarmError, match="budget"):
        await write(cluster, CORDON)


async def test_a_transition_time_that_moves_without_a_transition_is_seen(cluster):
    said = {
        "type": "GPUUnhealthy",
        "status": "False",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    patch = {"status": {"conditions": [said]}}
    later = {"status": {"conditions": [said | {"lastTransitionTime": "2026-01-02T00:00:00Z"}]}}
    with pytest.raises(HarmError, match="transition"):
        await write(cluster, patch, later, strategic=True)


async def test_what_monitors_have_to_do_is_no_harm(cluster):
    taints = [*FOREIGN["taints"], {"key": TAINT, "effect": "NoSchedule"}]
    tainting = CORDON | {"spec": {"unschedulable": True, "taints": taints}}
    await cluster.kube.patch(WHOLE_NODE, "node-0", annotated(**{CLEAR: "true"}))
    done = await write(cluster, tainting, annotated(**{STATE: "x" * 2047, CLEAR: None}))
    assert done.specs == 1
    assert cluster.kube.out() == {"node-0"}
    await write(cluster, UNCORDON)
    assert not cluster.kube.harms


@pytest.mark.parametrize(
    ("trouble", "error", "is_done"),
    [
        (Trouble.UNAVAILABLE, UnavailableError, False),
        (Trouble.KILLED_BEFORE, KilledError, False),
        (Trouble.ANSWER_LOST, UnavailableError, True),
        (Trouble.KILLED_AFTER, KilledError, True),
    ],
)
async def test_trouble_comes_before_a_write_or_after_it(cluster, trouble, error, is_done):
    cluster.kube.troubles.append(trouble)
    with pytest.raises(error):
        await write(cluster, CORDON)
    assert (cluster.kube.out() == {"node-0"}) is is_done


async def test_people_may_do_what_monitors_may_not(cluster):
    cluster.kube.troubles.append(Trouble.UNAVAILABLE)
    await cluster.cordon(0)
    await cluster.cordon(1)
    assert not cluster.kube.harms
