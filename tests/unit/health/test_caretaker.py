"""Decisions carried out on a node of a fake cluster, from evidence to the objects that change."""

import pytest

from health import names
from health.budget import CONFIG_MAP_NAME
from health.checks.model import Action, Check, CheckId, Condition, Healthy, Unhealthy, Unknown
from health.source import Silence
from slicewatch.kube.errors import ConflictError, ForbiddenError, UnavailableError
from slicewatch.kube.nodes import WHOLE_NODE
from slicewatch.kube.objects import CONFIG_MAP
from tests.unit.health.house import BROKEN, FOREIGN, NAMESPACE, House, labelled_samples


async def test_a_fault_cordons_and_its_end_uncordons():
    house = await House.made()
    house.ill.finds["broken"] = BROKEN
    await house.pass_turns()
    node = await house.node()
    assert node.spec.unschedulable
    assert node.annotations[names.CORDONED].startswith("broken/GPU-")
    assert node.condition(Condition.UNHEALTHY).status == "True"
    assert await house.slots() == ["node-1"]
    house.ill.finds["broken"] = Healthy()
    await house.pass_turns(6)
    node = await house.node()
    assert not node.spec.unschedulable
    assert names.CORDONED not in node.annotations
    assert node.condition(Condition.UNHEALTHY).status == "False"
    assert await house.slots() == []
    assert {"GPUBroken", "GPUNodeCordoned", "GPUNodeUncordoned"} <= set(await house.reasons())


async def test_what_others_say_of_the_node_stays_to_the_letter():
    house = await House.made()
    house.ill.finds["broken"] = BROKEN
    await house.pass_turns(3)
    ready = (await house.node()).condition("Ready")
    assert {key: getattr(ready, key) for key in FOREIGN} == FOREIGN


async def test_a_warning_is_shown_and_the_node_stays_in_service():
    house = await House.made()
    house.ill.finds["warm"] = Unhealthy(message="it is warm", at_once=True)
    await house.pass_turns(3)
    node = await house.node()
    assert node.condition(Condition.DEGRADED).status == "True"
    assert not node.spec.unschedulable


async def test_a_healthy_node_is_written_to_for_heartbeats_alone():
    house = await House.made()
    await house.pass_turns(5)
    before = (await house.node()).metadata.resource_version
    await house.pass_turns(60)
    written = int((await house.node()).metadata.resource_version) - int(before)
    assert 8 <= written <= 12


async def test_a_restart_takes_nothing_back_before_it_has_seen_enough():
    """Each restart said that all was well (node-problem-detector #304)."""
    house = await House.made()
    house.ill.finds["broken"] = BROKEN
    await house.pass_turns(2)
    house.restart()
    house.ill.finds["broken"] = Unknown(why="not read yet")
    await house.pass_turns(4)
    node = await house.node()
    assert node.spec.unschedulable
    assert node.condition(Condition.UNHEALTHY).status == "True"


async def test_the_end_of_the_process_leaves_every_mark():
    house = await House.made(taint=True)
    house.ill.finds["broken"] = BROKEN
    await house.pass_turns(2)
    before = await house.node()
    del house.agent
    assert before.has_taint(names.TAINT)
    assert await house.node() == before


async def test_a_node_that_somebody_else_has_cordoned_stays_so():
    """Such nodes were uncordoned when a fault of theirs was over (NVSentinel #1424)."""
    house = await House.made(node={"spec": {"unschedulable": True}})
    house.ill.finds["broken"] = BROKEN
    await house.pass_turns(3)
    house.ill.finds["broken"] = Healthy()
    await house.pass_turns(10)
    node = await house.node()
    assert node.spec.unschedulable
    assert names.CORDONED not in node.annotations
    assert ("nothing", "preexisting") in house.steps()


async def test_a_human_who_uncordons_is_not_contradicted():
    """Marks stayed behind (NVSentinel #1872), or the node was cordoned anew (draino #17)."""
    house = await House.made()
    house.ill.finds["broken"] = BROKEN
    await house.pass_turns(2)
    await house.uncordon()
    await house.pass_turns(5)
    node = await house.node()
    assert not node.spec.unschedulable
    assert names.CORDONED not in node.annotations
    assert await house.slots() == []
    assert "GPUNodeCordonGivenUp" in await house.reasons()
    house.restart()
    await house.pass_turns(3)
    assert not (await house.node()).spec.unschedulable


async def test_on_hold_nothing_changes_in_either_direction():
    """Tools ended others' cordons (k8s-driver-manager #212, system-upgrade-controller #341)."""
    house = await House.made()
    await house.human(hold="true")
    house.ill.finds["broken"] = BROKEN
    await house.pass_turns(3)
    assert not (await house.node()).spec.unschedulable
    await house.human(hold=None)
    await house.pass_turns()
    await house.human(hold="true")
    house.ill.finds["broken"] = Healthy()
    await house.pass_turns(10)
    assert (await house.node()).spec.unschedulable


async def test_a_human_clears_a_fault_once():
    """There was no way to take a fault back (gpud #1072)."""
    house = await House.made()
    await house.pass_turns()
    house.ill.finds["broken"] = BROKEN
    await house.pass_turns(2)
    house.ill.finds["broken"] = Unknown(why="nothing says that it is over")
    await house.human(clear="broken")
    await house.pass_turns()
    node = await house.node()
    assert names.CLEAR not in node.annotations
    assert node.condition(Condition.UNHEALTHY).status != "True"
    house.ill.finds["broken"] = Healthy()
    await house.pass_turns(5)
    assert not (await house.node()).spec.unschedulable


async def test_to_clear_what_does_not_exist_is_answered_and_clears_nothing():
    house = await House.made()
    house.ill.finds["broken"] = BROKEN
    await house.pass_turns()
    await house.human(clear="brokenn")
    await house.pass_turns(2)
    assert (await house.node()).spec.unschedulable
    assert "GPUHealthClearRefused" in await house.reasons()


async def test_without_the_right_to_cordon_conditions_are_shown_all_the_same():
    house = await House.made()
    await house.pass_turns()
    refuse = house.kube.patch

    async def patch(kind, name, patch, *, subresource="", **options):
        if kind is WHOLE_NODE and not subresource:
            raise ForbiddenError("patch nodes: 403")
        return await refuse(kind, name, patch, subresource=subresource, **options)

    house.kube.patch = patch
    house.ill.finds["broken"] = BROKEN
    await house.pass_turns()
    node = await house.node()
    assert not node.spec.unschedulable
    assert node.condition(Condition.UNHEALTHY).status == "True"
    assert house.agent.ready() == "act: patch nodes: 403"


async def test_who_is_overtaken_by_another_writer_decides_on_what_that_wrote():
    """Such annotations were lost (NVSentinel #915, #790, #445)."""
    house = await House.made()
    await house.pass_turns()
    overtaken = house.kube.patch
    conflicts = []

    async def patch(kind, name, patch, **options):
        if kind is WHOLE_NODE and "unschedulable" in patch.get("spec", {}) and not conflicts:
            conflicts.append(patch)
            await house.human(hold="true")
            raise ConflictError("patch: 409")
        return await overtaken(kind, name, patch, **options)

    house.kube.patch = patch
    house.ill.finds["broken"] = BROKEN
    await house.pass_turns()
    assert len(conflicts) == 1
    assert not (await house.node()).spec.unschedulable
    assert ("nothing", "held") in house.steps()


@pytest.mark.parametrize("failing", range(1, 13))
async def test_whichever_request_fails_the_next_turns_make_up_for_it(failing):
    """A cordon outlived a failed hand-over (NVSentinel #1854) or a restart (kured #955, #1409)."""
    house = await House.made()
    await house.pass_turns()
    requests = []

    async def counted(real, *given, **options):
        requests.append(real)
        if len(requests) == failing:
            raise UnavailableError("503")
        return await real(*given, **options)

    for verb in ("get", "create", "patch"):
        real = getattr(house.kube, verb)
        setattr(house.kube, verb, lambda *a, _r=real, **o: counted(_r, *a, **o))
    house.ill.finds["broken"] = BROKEN
    await house.pass_turns(3)
    node = await house.node()
    assert node.spec.unschedulable
    assert names.CORDONED in node.annotations
    assert await house.slots() == ["node-1"]
    house.restart()
    house.ill.finds["broken"] = Healthy()
    await house.pass_turns(8)
    assert not (await house.node()).spec.unschedulable
    assert await house.slots() == []


async def test_without_the_api_server_nothing_is_done_and_nothing_repeated_later():
    """Nodes were drained that had recovered meanwhile (draino #50, #116)."""
    house = await House.made()
    await house.pass_turns()
    house.ill.finds["broken"] = BROKEN
    house.kube.fail_next(UnavailableError("down"), 3)
    await house.pass_turns(3)
    house.ill.finds["broken"] = Healthy()
    await house.pass_turns(3)
    node = await house.node()
    assert not node.spec.unschedulable
    assert ("cordon", "done") not in house.steps()


async def test_what_was_found_without_the_api_server_is_told_when_it_is_back():
    house = await House.made()
    await house.pass_turns()
    house.ill.finds["warm"] = Unhealthy(message="it is warm", at_once=True)
    house.kube.fail_next(UnavailableError("down"), 1)
    await house.pass_turns()
    house.ill.finds["warm"] = Healthy()
    assert "GPUWarm" not in await house.reasons()
    await house.pass_turns(3)
    assert {"GPUWarm", "GPUWarmOver"} <= set(await house.reasons())


async def test_a_paused_budget_holds_new_cordons_only():
    house = await House.made()
    house.ill.finds["broken"] = BROKEN
    body = {"metadata": {"name": CONFIG_MAP_NAME}, "data": {"paused": "true"}}
    await house.kube.create(CONFIG_MAP, body, NAMESPACE)
    await house.pass_turns(2)
    assert not (await house.node()).spec.unschedulable
    assert ("cordon", "held_paused") in house.steps()
    assert "GPUNodeCordonHeld" in await house.reasons()
    paused = labelled_samples(house.metrics, "slicewatch_health_budget_paused")
    assert paused == {("fleet",): 1, ("pool",): 0}
    await house.kube.patch(
        CONFIG_MAP, CONFIG_MAP_NAME, {"data": {"paused": None}}, namespace=NAMESPACE
    )
    await house.pass_turns()
    assert (await house.node()).spec.unschedulable


async def test_a_budget_that_cannot_be_read_holds_cordons_and_keeps_what_is_in_it():
    house = await House.made()
    body = {"metadata": {"name": CONFIG_MAP_NAME}, "data": {"slots": "{broken"}}
    await house.kube.create(CONFIG_MAP, body, NAMESPACE)
    house.ill.finds["broken"] = BROKEN
    await house.pass_turns(2)
    assert not (await house.node()).spec.unschedulable
    assert (await house.node()).condition(Condition.UNHEALTHY).status == "True"
    kept = await house.kube.get(CONFIG_MAP, CONFIG_MAP_NAME, NAMESPACE)
    assert kept.data == body["data"]


async def test_a_fault_outlives_a_restart_also_while_the_budget_may_not_be_read(monkeypatch):
    house = await House.made()
    await house.pass_turns()
    read = house.kube.get

    async def refused(kind, *asked):
        if kind is CONFIG_MAP:
            raise ForbiddenError("403")
        return await read(kind, *asked)

    monkeypatch.setattr(house.kube, "get", refused)
    house.ill.finds["broken"] = BROKEN
    await house.pass_turns()
    assert house.agent.ready()
    house.restart()
    house.ill.finds["broken"] = Unknown(why="told once")
    monkeypatch.undo()
    await house.pass_turns()
    assert (await house.node()).spec.unschedulable


async def test_without_auto_cordon_there_are_conditions_alone():
    house = await House.made(auto_cordon=False)
    house.ill.finds["broken"] = BROKEN
    await house.pass_turns(3)
    node = await house.node()
    assert not node.spec.unschedulable
    assert node.condition(Condition.UNHEALTHY).status == "True"


async def test_a_dry_run_changes_nothing_at_all():
    """A dry run tainted nodes (NVSentinel #286)."""
    house = await House.made(dry_run=True)
    before = await house.node()
    house.ill.finds |= {"broken": BROKEN, "warm": Unhealthy(message="warm", at_once=True)}
    await house.pass_turns(5)
    house.ill.finds |= {"broken": Healthy(), "warm": Healthy()}
    await house.pass_turns(10)
    assert await house.node() == before
    assert await house.reasons() == []
    written = labelled_samples(house.metrics, "slicewatch_health_writes_total")
    assert written
    assert {outcome for _, outcome in written} == {"dry_run"}


async def test_a_record_of_a_newer_version_is_left_alone_until_somebody_takes_it_away():
    record = '{"version":99}'
    annotations = {names.STATE: record}
    house = await House.made(node={"metadata": {"name": "node-1", "annotations": annotations}})
    house.ill.finds["broken"] = BROKEN
    await house.pass_turns(3)
    node = await house.node()
    assert node.annotations == annotations
    assert not node.spec.unschedulable
    await house.human(state=None)
    await house.pass_turns(2)
    assert (await house.node()).spec.unschedulable


async def test_silence_takes_nothing_back_and_is_said():
    house = await House.made()
    house.ill.finds["broken"] = BROKEN
    await house.pass_turns(2)
    house.exporter.fail_next(Silence.NO_SOCKET, 100)
    await house.pass_turns(30)
    node = await house.node()
    assert node.spec.unschedulable
    assert node.condition(Condition.UNHEALTHY).status == "True"
    assert node.condition(Condition.UNMONITORED).status == "True"


async def test_the_label_with_the_number_of_gpus_is_followed():
    house = await House.made()
    seen = []

    def judge(case):
        seen.append(case.thresholds.expected_gpus)
        return Healthy()

    check = Check(id=CheckId("count"), title="t", reason="R", action=Action.WARN, judge=judge)
    house.ill.checks = lambda: (check,)
    house.restart()
    await house.pass_turns()
    labels = {"metadata": {"labels": {"nvidia.com/gpu.count": "8"}}}
    await house.kube.patch(WHOLE_NODE, "node-1", labels)
    await house.pass_turns(2)
    assert seen[0] is None
    assert seen[-1] == 8
