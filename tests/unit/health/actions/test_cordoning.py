"""The way into the budget and out of it, whatever is interrupted where."""

from dataclasses import dataclass, field

import msgspec
import pytest

from health import names
from health.actions import cordon as patches
from health.actions import cordoning as reasons
from health.actions.cordon import Cordon
from health.actions.cordoning import Cordoning
from health.actions.events import Events
from health.book import CONFIG_MAP_NAME
from health.budget import Held, Policy, Refusal
from health.case import Since
from health.checks.model import Action, CheckId
from health.decision import Fault
from health.ledger import Ledger, Place
from health.ownership import Cordon as CordonStep
from slicewatch.kube import errors
from slicewatch.kube.events import EVENT
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.nodes import WHOLE_NODE, WholeNode
from slicewatch.kube.objects import CONFIG_MAP, Selection

WALL = 1_800_000_000.0
NAMESPACE = "gpu"
FOREIGN = {"key": "foreign", "effect": "NoExecute", "later": {"field": 1}}
MARK = {"key": names.TAINT, "effect": "NoSchedule"}


def fault(check: str = "gpu_lost", gpu: str = "GPU-1", at: float = WALL) -> Fault:
    return Fault(
        check=CheckId(check),
        reason="GPULost",
        message=f"{gpu} is lost",
        action=Action.CORDON,
        since=Since(boot_id="b", driver_run="r/1", at_seconds=at),
        gpu=gpu,
    )


STEP = CordonStep(grounds=(fault(),))
FULL = '{"a":{"uid":"uid-a"},"x":{},"y":{}}'


class FragileKube(FakeKube):
    """Fails the n-th write; ``late`` does so after it was made, as a timeout does."""

    def __init__(self) -> None:
        super().__init__()
        self.fail_in: int | None = None
        self.late = False

    async def create(self, kind, body, namespace=""):
        return await self._failing(super().create, kind, body, namespace)

    async def patch(self, kind, name, patch, **options):
        return await self._failing(super().patch, kind, name, patch, **options)

    async def _failing(self, write, *arguments, **options):
        fails = self.fail_in == 0
        self.fail_in = None if fails or self.fail_in is None else self.fail_in - 1
        if fails and not self.late:
            raise errors.UnavailableError("not made")
        made = await write(*arguments, **options)
        if fails:
            raise errors.UnavailableError("made, but nobody knows")
        return made


@dataclass
class Scene:
    kube: FragileKube = field(default_factory=FragileKube)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.events = Events(self.kube, "a")
        place = Place(namespace=NAMESPACE, daemon_set="d", node="a", uid="uid-a")
        ledger = Ledger(self.kube, place, Policy(), wall=lambda: WALL)
        self.cordoning = Cordoning(
            ledger, Cordon(self.kube, taint=True), self.events, pool_label="pool"
        )

    async def node(self) -> WholeNode:
        return await self.kube.get(WHOLE_NODE, "a")

    async def cordon(self) -> WholeNode | Held:
        return await self.cordoning.cordon(await self.node(), STEP, "record", now=0.0, wall=WALL)

    async def uncordon(self) -> WholeNode:
        return await self.cordoning.uncordon(await self.node(), "record", now=0.0, wall=WALL)

    async def settle(self, *, wanted: bool = False) -> None:
        await self.cordoning.settle(await self.node(), wanted=wanted)

    async def slots(self) -> set[str]:
        try:
            found = await self.kube.get(CONFIG_MAP, CONFIG_MAP_NAME, NAMESPACE)
        except errors.NotFoundError:
            return set()
        return set(msgspec.json.decode(found.data.get("slots", "{}")))

    async def told(self) -> list[str]:
        await self.events.flush(0.0)
        page = await self.kube.list(EVENT, Selection(), limit=100)
        return [event.reason for event in page.objects]


@pytest.fixture
async def scene() -> Scene:
    made = Scene()
    metadata = {"name": "a", "uid": "uid-a", "labels": {"pool": "h100"}}
    await made.kube.create(WHOLE_NODE, {"metadata": metadata, "spec": {"taints": [FOREIGN]}})
    return made


async def test_a_cordon_takes_a_slot_and_its_end_gives_it_back(scene: Scene) -> None:
    done = await scene.cordon()
    assert not isinstance(done, Held)
    assert done.spec.unschedulable
    assert await scene.slots() == {"a"}
    await scene.settle()
    assert await scene.slots() == {"a"}
    await scene.uncordon()
    await scene.settle()
    assert await scene.slots() == set()
    assert await scene.told() == [reasons.TAKEN, reasons.RETURNED]


async def test_a_held_cordon_touches_no_node_and_is_told_once(scene: Scene) -> None:
    data = {"paused": "true"}
    await scene.kube.create(
        CONFIG_MAP, {"metadata": {"name": CONFIG_MAP_NAME}, "data": data}, NAMESPACE
    )
    before = await scene.node()
    for _ in range(3):
        held = await scene.cordon()
        assert isinstance(held, Held)
        assert held.refusal is Refusal.PAUSED
        await scene.settle(wanted=True)
    assert await scene.node() == before
    page = await scene.kube.list(EVENT, Selection(), limit=100)
    assert not page.objects
    assert await scene.told() == [reasons.HELD]


@pytest.mark.parametrize("data", [{"paused": "true"}, {"slots": FULL}], ids=["paused", "full"])
async def test_neither_a_pause_nor_a_full_budget_keeps_a_node_from_coming_back(
    scene: Scene, data: dict[str, str]
) -> None:
    """A breaker that had tripped stopped that as well (NVSentinel PR #1852)."""
    await scene.cordon()
    patch = {"data": data}
    await scene.kube.patch(CONFIG_MAP, CONFIG_MAP_NAME, patch, namespace=NAMESPACE)
    await scene.uncordon()
    await scene.settle()
    assert not (await scene.node()).spec.unschedulable
    assert "a" not in await scene.slots()


async def test_a_book_that_cannot_be_read_does_not_keep_a_node_out(scene: Scene) -> None:
    await scene.cordon()
    patch = {"data": {"slots": "{"}}
    await scene.kube.patch(CONFIG_MAP, CONFIG_MAP_NAME, patch, namespace=NAMESPACE)
    await scene.uncordon()
    await scene.settle()
    assert not (await scene.node()).spec.unschedulable
    mended = {"data": {"slots": '{"a": {"uid": "uid-a"}}'}}
    await scene.kube.patch(CONFIG_MAP, CONFIG_MAP_NAME, mended, namespace=NAMESPACE)
    await scene.settle()
    assert await scene.slots() == set()


@pytest.mark.parametrize("restarted", [True, False])
@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("fails", range(5))
async def test_whatever_fails_slots_and_cordons_agree_in_the_end(
    scene: Scene, fails: int, late: bool, restarted: bool
) -> None:
    """The n-th write fails, made or not, and perhaps the process ends there."""
    scene.kube.fail_in, scene.kube.late = fails, late
    for deed in (scene.cordon, scene.settle, scene.uncordon, scene.settle):
        try:
            await deed()
        except errors.UnavailableError:
            if restarted:
                scene.restart()
            break
    scene.kube.fail_in = None
    await scene.settle()
    marked = names.CORDONED in (await scene.node()).annotations
    assert marked == (await scene.node()).spec.unschedulable
    assert await scene.slots() == ({"a"} if marked else set())


async def test_a_node_that_changed_is_not_cordoned_on_old_news(scene: Scene) -> None:
    old = await scene.node()
    somebody = {"metadata": {"annotations": {names.HOLD: "true"}}}
    await scene.kube.patch(WHOLE_NODE, "a", somebody)
    with pytest.raises(errors.ConflictError):
        await scene.cordoning.cordon(old, STEP, "record", now=0.0, wall=WALL)
    assert not (await scene.node()).spec.unschedulable
    await scene.settle()
    assert await scene.slots() == set()


async def test_giving_up_leaves_the_node_as_the_human_made_it(scene: Scene) -> None:
    await scene.cordon()
    await scene.kube.patch(WHOLE_NODE, "a", {"spec": {"unschedulable": None}})
    left = await scene.cordoning.give_up(await scene.node(), "ignored", now=0.0, wall=WALL)
    assert not left.spec.unschedulable
    assert left.annotations == {names.STATE: "ignored"}
    assert left.spec.taints == (FOREIGN,)
    await scene.settle()
    assert await scene.slots() == set()


async def test_the_slot_says_which_check_found_it_first_and_the_pool(scene: Scene) -> None:
    grounds = (fault("b_check", "GPU-1", WALL), fault("a_check", "GPU-2", WALL - 9), fault())
    step = CordonStep(grounds=grounds)
    await scene.cordoning.cordon(await scene.node(), step, "record", now=0.0, wall=WALL)
    found = await scene.kube.get(CONFIG_MAP, CONFIG_MAP_NAME, NAMESPACE)
    (slot,) = msgspec.json.decode(found.data["slots"]).values()
    assert slot == {"uid": "uid-a", "since": WALL - 9, "check": "a_check", "pool": "h100"}


def whole(*taints: dict[str, object], **annotations: str) -> WholeNode:
    metadata = {"name": "a", "resourceVersion": "7", "annotations": annotations}
    return msgspec.convert({"metadata": metadata, "spec": {"taints": list(taints)}}, WholeNode)


def test_the_taint_comes_once_and_only_where_it_is_wanted() -> None:
    assert "taints" not in patches.cordoned(whole(FOREIGN), "r", "m", taint=False)["spec"]
    spec = patches.cordoned(whole(FOREIGN), "r", "m", taint=True)["spec"]
    assert spec["taints"] == [FOREIGN, MARK]
    assert "taints" not in patches.cordoned(whole(MARK), "r", "m", taint=True)["spec"]


def test_a_taint_of_ours_goes_even_if_it_is_no_longer_wanted() -> None:
    """Taints were never removed (dra-driver-nvidia-gpu #1455)."""
    assert patches.uncordoned(whole(MARK, FOREIGN), "r")["spec"]["taints"] == [FOREIGN]
    assert patches.uncordoned(whole(MARK), "r")["spec"]["taints"] is None
    assert "taints" not in patches.uncordoned(whole(FOREIGN), "r")["spec"]
    assert "spec" not in patches.given_up(whole(FOREIGN), "r")


@pytest.mark.parametrize(
    "patch",
    [
        patches.cordoned(whole(), "", "m", taint=False),
        patches.uncordoned(whole(), ""),
        patches.given_up(whole(), ""),
    ],
)
def test_without_a_record_the_one_that_is_there_stays(patch: patches.Patch) -> None:
    assert names.STATE not in patch["metadata"]["annotations"]
    assert patch["metadata"]["resourceVersion"] == "7"


def test_the_record_is_written_when_it_has_changed() -> None:
    kept = whole(**{names.STATE: "r", names.CLEAR: "true"})
    assert patches.remembered(kept, "r", cleared=False) is None
    assert patches.remembered(whole(), "", cleared=True) is None
    patch = patches.remembered(kept, "new", cleared=True)
    assert patch is not None
    assert patch["metadata"]["annotations"] == {names.STATE: "new", names.CLEAR: None}
    assert "spec" not in patch
