"""Our conditions on a node, beside those of others."""

import copy
import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.actions.conditions import HEARTBEAT_SECONDS, Conditions
from health.checks.model import Condition
from health.decision import NodeCondition
from health.names import PREFIX
from slicewatch.kube import errors
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.nodes import WHOLE_NODE

WALL = 1_800_000_000.0
NODE = "a"
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "KubeletReady",
    "lastHeartbeatTime": "2026-01-01T00:00:00Z",
    "lastTransitionTime": "2025-01-01T00:00:00Z",
    "unknownToUs": [1, {"a": None}],
}


class CountingKube(FakeKube):
    def __init__(self) -> None:
        super().__init__()
        self.patches = 0

    async def patch(self, *arguments, **options):
        self.patches += 1
        return await super().patch(*arguments, **options)


@dataclass
class Scene:
    kube: CountingKube = field(default_factory=CountingKube)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self, **options: object) -> None:
        self.conditions = Conditions(self.kube, NODE, **options)

    async def show(self, *, present: bool | None = True, **more: str) -> None:
        said = {"reason": "GPULost", "message": "GPU 0: lost"} | more
        wanted = {Condition.UNHEALTHY: NodeCondition(present=present, **said)}
        node = await self.kube.get(WHOLE_NODE, NODE)
        await self.conditions.show(node, wanted, now=self.now, wall=WALL + self.now)

    def stored(self, kind: str) -> dict[str, object] | None:
        found = self.kube._bodies["nodes", "", NODE]["status"]["conditions"]
        return next((one for one in found if one["type"] == kind), None)


@pytest.fixture
async def scene() -> Scene:
    made = Scene()
    body = {"metadata": {"name": NODE}, "status": {"conditions": [copy.deepcopy(READY)]}}
    await made.kube.create(WHOLE_NODE, body)
    return made


@pytest.mark.parametrize(
    ("present", "status"), [(True, "True"), (False, "False"), (None, "Unknown")]
)
async def test_a_problem_is_true_and_what_is_not_known_unknown(
    scene: Scene, present: bool | None, status: str
) -> None:
    await scene.show(present=present)
    assert scene.stored("GPUUnhealthy") == {
        "type": "GPUUnhealthy",
        "status": status,
        "reason": "GPULost",
        "message": "GPU 0: lost",
        "lastHeartbeatTime": "2027-01-15T08:00:00Z",
        "lastTransitionTime": "2027-01-15T08:00:00Z",
    }


async def test_the_time_of_the_transition_moves_only_with_the_status(scene: Scene) -> None:
    """Repair waits from it on, and never came (eks-node-monitoring-agent #39)."""
    await scene.show()
    first = scene.stored("GPUUnhealthy")["lastTransitionTime"]
    for scene.now, reason in ((60.0, "GPUHot"), (120.0, "GPULost"), (4000.0, "GPULost")):
        await scene.show(reason=reason)
        assert scene.stored("GPUUnhealthy")["lastTransitionTime"] == first
    assert scene.stored("GPUUnhealthy")["lastHeartbeatTime"] == "2027-01-15T09:06:40Z"
    scene.now = 5000.0
    await scene.show(present=False)
    assert scene.stored("GPUUnhealthy")["lastTransitionTime"] == "2027-01-15T09:23:20Z"


async def test_a_restart_keeps_the_time_of_the_transition(scene: Scene) -> None:
    await scene.show()
    first = scene.stored("GPUUnhealthy")["lastTransitionTime"]
    scene.now = 1000.0
    scene.restart()
    await scene.show(reason="GPUHot")
    assert scene.stored("GPUUnhealthy")["lastTransitionTime"] == first


async def test_the_conditions_of_others_stay_to_the_letter(scene: Scene) -> None:
    """They were wiped (container-engine-accelerators PR #516, virtual-kubelet #807)."""
    for scene.now in (0.0, 400.0, 800.0):
        await scene.show(present=scene.now != 400)
        assert scene.stored("Ready") == READY


async def test_what_the_kubelet_writes_meanwhile_is_kept(scene: Scene) -> None:
    node = await scene.kube.get(WHOLE_NODE, NODE)
    newer = {"status": {"conditions": [READY | {"status": "Unknown"}]}}
    await scene.kube.patch(WHOLE_NODE, NODE, newer, subresource="status", strategic=True)
    wanted = {Condition.UNHEALTHY: NodeCondition(present=True, reason="R", message="m")}
    await scene.conditions.show(node, wanted, now=0.0, wall=WALL)
    assert scene.stored("Ready")["status"] == "Unknown"


async def test_conditions_of_an_earlier_release_go_and_no_others(scene: Scene) -> None:
    """They stayed for weeks (node-problem-detector #470, #1011, kubernetes-manifests #2731)."""
    old = [{"type": kind, "status": "True"} for kind in ("GPUOld", "GPUMissing", f"{PREFIX}x")]
    patch = {"status": {"conditions": old}}
    await scene.kube.patch(WHOLE_NODE, NODE, patch, subresource="status", strategic=True)
    scene.restart(former=("GPUOld",))
    await scene.show()
    assert scene.stored("GPUOld") is None
    assert scene.stored("GPUMissing") is not None
    assert scene.stored(f"{PREFIX}x") is not None


async def test_what_nobody_can_say_yet_stays_as_it_is(scene: Scene) -> None:
    await scene.show()
    before = scene.stored("GPUUnhealthy")
    scene.restart()
    scene.kube.patches = 0
    for scene.now in (1000.0, 2000.0):
        node = await scene.kube.get(WHOLE_NODE, NODE)
        await scene.conditions.show(node, {}, now=scene.now, wall=WALL + scene.now)
    assert scene.kube.patches == 0
    assert scene.stored("GPUUnhealthy") == before


async def test_a_condition_that_somebody_removed_comes_back(scene: Scene) -> None:
    await scene.show()
    gone = {"status": {"conditions": [{"$patch": "delete", "type": "GPUUnhealthy"}]}}
    await scene.kube.patch(WHOLE_NODE, NODE, gone, subresource="status", strategic=True)
    scene.now = 60.0
    await scene.show()
    assert scene.stored("GPUUnhealthy") is not None


@given(seed=st.integers(0, 1 << 30))
async def test_a_healthy_node_costs_at_most_twelve_writes_an_hour(seed: int) -> None:
    """Every poll was a write (node-problem-detector #37, #661)."""
    scene = Scene()
    await scene.kube.create(WHOLE_NODE, {"metadata": {"name": NODE}})
    scene.restart(spread=random.Random(seed).uniform)  # noqa: S311 - what hypothesis can repeat
    await scene.show(present=False)
    scene.kube.patches = 0
    for minute in range(1, 61):
        scene.now = minute * 60.0
        await scene.show(present=False)
    assert 9 <= scene.kube.patches <= 12


async def test_a_fleet_that_started_together_does_not_write_together(scene: Scene) -> None:
    await scene.show(present=False)
    dues = set()
    for seed in range(20):
        scene.restart(spread=random.Random(seed).uniform)  # noqa: S311 - no secret
        await scene.show(present=False)
        dues.add(scene.conditions._due)
    assert len(dues) == 20
    assert all(0 <= due <= HEARTBEAT_SECONDS for due in dues)


async def test_a_write_that_failed_is_made_up_for(scene: Scene) -> None:
    node = await scene.kube.get(WHOLE_NODE, NODE)
    wanted = {Condition.UNHEALTHY: NodeCondition(present=True, reason="R", message="m")}
    scene.kube.fail_next(errors.UnavailableError("down"))
    with pytest.raises(errors.UnavailableError):
        await scene.conditions.show(node, wanted, now=0.0, wall=WALL)
    await scene.show()
    assert scene.stored("GPUUnhealthy") is not None
