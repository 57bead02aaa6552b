"""The whole monitor through random days: faults, people, restarts, and an API server that fails."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from health import names
from health.checks.model import Condition, Healthy, Unhealthy, Unknown
from health.source import Silence
from slicewatch.kube.errors import ConflictError, UnavailableError
from slicewatch.kube.nodes import WHOLE_NODE
from tests.unit.health.house import BROKEN, FOREIGN, House

LONG_ENOUGH_TURNS = 15

FINDINGS = {
    "broken": BROKEN,
    "weaker": Unhealthy(message="it is a little broken", at_once=True),
    "well": Healthy(),
    "dark": Unknown(why="cannot be read"),
}


class People:
    """Those who also write to the node; what they did last counts at the end."""

    def __init__(self, house):
        self._house = house

    async def cordon(self):
        await self._house.kube.patch(WHOLE_NODE, "node-1", {"spec": {"unschedulable": True}})

    async def uncordon(self):
        await self._house.uncordon()

    async def hold(self):
        await self._house.human(hold="true")

    async def let_go(self):
        await self._house.human(hold=None)

    async def clear(self):
        await self._house.human(clear="true")


DEEDS = ("cordon", "uncordon", "hold", "let_go", "clear")
happenings = st.lists(
    st.one_of(
        st.sampled_from([("finds", name) for name in FINDINGS]),
        st.sampled_from([("people", deed) for deed in DEEDS]),
        st.tuples(st.just("fails"), st.integers(1, 6)),
        st.tuples(st.just("conflicts"), st.integers(1, 3)),
        st.tuples(st.just("silent"), st.integers(1, 8)),
        st.tuples(st.just("turns"), st.integers(1, 6)),
        st.just(("restarts", None)),
    ),
    max_size=25,
)


async def happen(house, kind, what):
    if kind == "finds":
        house.ill.finds["broken"] = FINDINGS[what]
    elif kind == "people":
        await getattr(People(house), what)()
    elif kind == "fails":
        house.kube.fail_next(UnavailableError("503"), what)
    elif kind == "conflicts":
        house.kube.fail_next(ConflictError("409"), what)
    elif kind == "silent":
        house.exporter.fail_next(Silence.TIMEOUT, what)
    elif kind == "restarts":
        house.restart()


async def a_turn(house):
    """Let a turn pass, and hold it against what the node was before."""
    before = await looked_at(house)
    await house.pass_turns()
    after = await looked_at(house)
    ours = names.CORDONED in before.annotations
    if before.spec.unschedulable and not after.spec.unschedulable:
        assert ours, "uncordoned without our mark"
        assert before.annotations.get(names.HOLD) != "true", "uncordoned on hold"
    if after.spec.unschedulable and not before.spec.unschedulable:
        assert names.CORDONED in after.annotations, "cordoned without our mark"
        assert before.annotations.get(names.HOLD) != "true", "cordoned on hold"
    if ours and not before.spec.unschedulable:
        assert not after.spec.unschedulable, "cordoned against who had just uncordoned"
    ready = after.condition("Ready")
    assert {key: getattr(ready, key) for key in FOREIGN} == FOREIGN
    assert len(after.annotations.get(names.STATE, "")) < 2048


async def looked_at(house):
    """Return the node without disturbing the faults that wait for the monitor."""
    faults = list(house.kube._faults)
    house.kube._faults.clear()
    node = await house.node()
    house.kube._faults.extend(faults)
    return node


async def a_day(story, **chosen):
    house = await House.made(**chosen)
    for kind, what in story:
        house_faults = list(house.kube._faults)
        if kind == "people":
            house.kube._faults.clear()
        await happen(house, kind, what)
        if kind == "people":
            house.kube._faults.extend(house_faults)
        for _ in range(what if kind == "turns" else 1):
            await a_turn(house)
    return house


@settings(max_examples=60, deadline=None)
@given(happenings)
def test_it_takes_back_and_makes_only_cordons_that_are_its_own(story):
    asyncio.run(a_day(story))


async def an_end(story):
    house = await a_day(story)
    house.kube._faults.clear()
    house.exporter._silences.clear()
    house.ill.finds["broken"] = Healthy()
    await house.human(hold=None, clear=None)
    # What came so often that it needs a human gets one.
    await house.human(clear="true")
    before = await house.node()
    for _ in range(LONG_ENOUGH_TURNS):
        await a_turn(house)
    after = await house.node()
    foreign = before.spec.unschedulable and names.CORDONED not in before.annotations
    assert after.spec.unschedulable == foreign
    assert names.CORDONED not in after.annotations
    assert after.condition(Condition.UNHEALTHY).status == "False"
    assert "node-1" not in await house.slots_if_any()


@settings(max_examples=60, deadline=None)
@given(happenings)
def test_when_all_is_well_nothing_of_it_is_left(story):
    asyncio.run(an_end(story))


async def a_rehearsal(story):
    deeds = [one for one in story if one[0] != "people"]
    house = await House.made(dry_run=True)
    before = await house.node()
    for kind, what in deeds:
        await happen(house, kind, what)
        await house.pass_turns(what if kind == "turns" else 1)
    assert await looked_at(house) == before


@settings(max_examples=30, deadline=None)
@given(happenings)
def test_a_dry_run_leaves_the_node_as_it_is_whatever_comes(story):
    asyncio.run(a_rehearsal(story))
