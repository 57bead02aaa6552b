"""What the monitors have written, read with the caller's rights."""

from datetime import UTC, datetime, timedelta

import pytest

from cli.health import status
from cli.health.status import ILL, WELL, NoStatusError, report
from health import names
from health.budget import CONFIG_MAP_NAME
from slicewatch.kube.errors import ForbiddenError
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.nodes import WHOLE_NODE
from slicewatch.kube.objects import CONFIG_MAP

NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
NAMESPACE = "monitoring"


def condition(kind, said, *, age_seconds=60, message="3 of 4 GPUs healthy"):
    at = (NOW - timedelta(seconds=age_seconds)).isoformat()
    return {
        "type": kind, "status": said, "reason": "GPULost", "message": message,
        "lastHeartbeatTime": at, "lastTransitionTime": at,
    }  # fmt: skip


async def cluster(*nodes):
    kube = FakeKube()
    for name, annotations, conditions, unschedulable in nodes:
        await kube.create(
            WHOLE_NODE,
            {
                "metadata": {"name": name, "annotations": annotations},
                "spec": {"unschedulable": unschedulable},
                "status": {"conditions": conditions},
            },
        )
    return kube


ILL_NODE = (
    "gpu-2",
    {names.CORDONED: "gpu_lost/GPU-1/1800000000", names.STATE: "{}"},
    [condition("GPUUnhealthy", "True"), {"type": "Ready", "status": "True"}],
    True,
)
WELL_NODE = ("gpu-1", {}, [condition("GPUUnhealthy", "False")], False)
PLAIN_NODE = ("cpu-1", {}, [{"type": "Ready", "status": "True"}], True)


async def test_all_nodes_with_a_monitor_are_listed_and_no_others():
    code, text = await report(await cluster(ILL_NODE, WELL_NODE, PLAIN_NODE), "", NAMESPACE, NOW)
    assert code == ILL
    assert "gpu-2: cordoned by its monitor for gpu_lost/GPU-1/1800000000" in text
    assert "gpu-1: not cordoned" in text
    assert "GPUUnhealthy=True GPULost: 3 of 4 GPUs healthy (since 2027-01-15 07:59 UTC)" in text
    assert "cpu-1" not in text
    assert "Ready" not in text


async def test_nodes_that_are_well_end_with_0():
    assert (await report(await cluster(WELL_NODE), "", NAMESPACE, NOW))[0] == WELL


async def test_one_node_is_shown_even_if_no_monitor_wrote_to_it():
    code, text = await report(await cluster(PLAIN_NODE), "cpu-1", NAMESPACE, NOW)
    assert code == WELL
    assert "cpu-1: cordoned by somebody else" in text
    assert "no monitor has written a condition" in text


async def test_a_condition_that_nobody_keeps_up_is_called_old():
    old = condition("GPUDegraded", "True", age_seconds=status.OLD_SECONDS + 60)
    _, text = await report(await cluster(("n", {}, [old], False)), "n", NAMESPACE, NOW)
    assert "OLD: last written 2027-01-15 07:44 UTC" in text


async def test_what_humans_have_asked_for_is_shown():
    annotations = {names.HOLD: "true", names.CLEAR: "gpu_lost"}
    _, text = await report(await cluster(("n", annotations, [], False)), "n", NAMESPACE, NOW)
    assert f"on hold by a human ({names.HOLD}=true)" in text
    assert f"faults are to be cleared ({names.CLEAR}=gpu_lost)" in text


async def test_a_node_that_does_not_exist_is_an_error():
    with pytest.raises(NoStatusError, match="gpu-9"):
        await report(await cluster(), "gpu-9", NAMESPACE, NOW)


class TestBudget:
    async def said(self, data=None):
        kube = await cluster(WELL_NODE)
        if data is not None:
            body = {"metadata": {"name": CONFIG_MAP_NAME}, "data": data}
            await kube.create(CONFIG_MAP, body, NAMESPACE)
        return (await report(kube, "", NAMESPACE, NOW))[1]

    async def test_its_slots_and_switches_are_shown(self):
        text = await self.said(
            {
                "slots": '{"gpu-2":{"uid":"u","since":1800000000,"check":"gpu_lost"}}',
                "paused": "true",
                "paused-reason": "roll-out",
                "paused-pools": "h100 l40s",
                "allow": "xid_fatal",
            }
        )
        assert f"(ConfigMap {NAMESPACE}/{CONFIG_MAP_NAME}): slots held: 1\n" in text
        assert "gpu-2 for gpu_lost since 2027-01-15 08:00 UTC" in text
        assert "new cordons are paused: roll-out" in text
        assert "paused for pools h100, l40s" in text
        assert "bursts are let through for xid_fatal" in text

    async def test_one_that_is_not_there_holds_nobody(self):
        assert "so no node holds a slot" in await self.said()

    async def test_one_that_cannot_be_read_is_said_and_the_nodes_are_shown(self):
        text = await self.said({"slots": "{broken"})
        assert "Budget: cannot be read: " in text
        assert "gpu-1: not cordoned" in text

    async def test_one_that_may_not_be_read_is_said(self):
        kube = await cluster(WELL_NODE)
        read = kube.get

        async def get(kind, name, namespace=""):
            if kind is CONFIG_MAP:
                raise ForbiddenError("get configmaps: 403")
            return await read(kind, name, namespace)

        kube.get = get
        assert "cannot be read: get configmaps: 403" in (await report(kube, "", NAMESPACE, NOW))[1]
