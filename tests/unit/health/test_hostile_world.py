"""What the monitor does in a world that is not as it should be: clocks, labels, hands, budgets."""

import msgspec
import pytest

from health import names
from health.checks.model import Condition, Healthy
from health.expectation import expected_gpus
from health.ledger import CORDON_FOLLOWS_SECONDS, MOST_LOOKS
from health.source import Silence, SilenceError, decoded
from slicewatch.kube.nodes import WHOLE_NODE
from slicewatch.wire.evidence import encode
from testbed import evidence
from tests.unit.health.house import BROKEN, House
from tests.unit.health.test_ledger import Cluster, claim, slots
from tests.unit.health.ward import GOOD, NOW, Ward, check

YEAR_SECONDS = 365 * 86_400.0
LABEL = "nvidia.com/gpu.count"


@pytest.mark.parametrize("years", [-10, 10])
def test_faults_of_a_wrong_clock_do_not_count_as_flapping_once_it_is_right(years):
    """They would be of a day to come for ten years, and the next fault would never end."""
    ward = Ward(check("broken", clear_seconds=60.0))
    ward.wall += years * YEAR_SECONDS
    for _ in range(2):
        ward.says["broken", 0] = NOW
        ward.poll(2)
        ward.says["broken", 0] = GOOD
        ward.poll(5)
    ward.wall -= years * YEAR_SECONDS
    ward.says["broken", 0] = NOW
    ward.poll(2)
    assert ward.faults == [("broken", 0)]
    ward.says["broken", 0] = GOOD
    ward.poll(10)
    assert ward.faults == []


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_jumps_by_an_hour_hides_no_flapping(hours):
    ward = Ward(check("broken", clear_seconds=60.0))
    for _ in range(3):
        ward.says["broken", 0] = NOW
        ward.poll(2)
        ward.says["broken", 0] = GOOD
        ward.poll(5)
        ward.wall += hours * 3600.0
    assert ward.faults == [("broken", 0)]
    assert "flapping" in ward.message(Condition.UNHEALTHY)


@pytest.mark.parametrize("label", ["1025", "999999999", "9" * 63, "9" * 5000, "²", "8 ", "+8"])
def test_a_label_that_no_node_can_keep_promises_nothing(label):
    assert expected_gpus({LABEL: label}, LABEL) is None


async def test_what_a_human_wants_cleared_stays_for_the_version_that_knows_the_record():
    annotations = {names.STATE: '{"version":99}', names.CLEAR: "true"}
    house = await House.made(node={"metadata": {"name": "node-1", "annotations": annotations}})
    house.ill.finds["broken"] = BROKEN
    await house.pass_turns(3)
    assert (await house.node()).annotations == annotations
    await house.human(state=None)
    await house.pass_turns(3)
    node = await house.node()
    assert names.CLEAR not in node.annotations
    assert node.spec.unschedulable


@pytest.mark.parametrize(
    "wrong",
    [
        {"missed": -1},
        {"newest": -5},
        {"newest": 2**63},
        {"run": "r" * 10_000},
    ],
)
def test_evidence_that_nothing_could_be_asked_after_is_malformed(wrong):
    """Asked with such a number, an exporter answers 400 and is silent for ever."""
    said = msgspec.structs.replace(evidence.evidence([evidence.gpu(0)]), **wrong)
    with pytest.raises(SilenceError) as silence:
        decoded(encode(said), "/run/evidence.sock")
    assert silence.value.why is Silence.MALFORMED


async def test_a_budget_of_thousands_of_slots_costs_few_requests_and_is_still_cleaned_up():
    cluster = Cluster()
    await cluster.agents(20)
    await cluster.put(slots=slots(*(f"node-{number}" for number in range(1000))))
    ledger = cluster.ledger("a")
    asked = []
    real = cluster.kube.get

    async def get(kind, name, namespace=""):
        asked.extend([name] if kind is WHOLE_NODE else [])
        return await real(kind, name, namespace)

    cluster.kube.get = get
    assert await ledger.acquire(claim()) is not None
    assert 0 < len(asked) <= MOST_LOOKS
    for _ in range(1000 // MOST_LOOKS):
        if await ledger.acquire(claim()) is None:
            break
    assert "a" in await cluster.holders()


async def test_of_many_slots_those_without_a_cordon_are_found():
    cluster = Cluster()
    await cluster.agents(20)
    many = [f"node-{number}" for number in range(3 * MOST_LOOKS)]
    for name in many:
        await cluster.node(name)
    await cluster.put(slots=slots(*many))
    ledger = cluster.ledger("a")
    for _ in range(40):
        if await ledger.acquire(claim()) is None:
            break
        cluster.now += CORDON_FOLLOWS_SECONDS
    assert await cluster.holders() <= {"a", *many}
    assert "a" in await cluster.holders()


async def test_gpus_that_come_and_go_leave_no_more_than_their_faults():
    house = await House.made()
    for number in range(60):
        house.exporter.state = evidence.evidence(
            [
                evidence.gpu(0, uuid=f"GPU-{number}"),
                evidence.gpu(1, uuid=f"GPU-{number}-other"),
            ]
        )
        house.ill.finds["broken"] = BROKEN if number % 2 else Healthy()
        await house.pass_turns()
    node = await house.node()
    assert len(node.annotations[names.STATE]) <= 2000
    assert "of 2 GPUs healthy" in node.condition(Condition.UNHEALTHY).message
