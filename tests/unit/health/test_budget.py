"""Whether the cluster can spare one more node."""

import msgspec
import pytest

from health import book, budget
from health.book import Book, BookError, Slot
from health.budget import Claim, Policy, Refusal
from health.checks.model import CheckId

WALL = 1_800_000_000.0
LOST, HOT = CheckId("gpu_lost"), CheckId("too_hot")
POLICY = Policy(nodes=5, percent=10, burst_percent=10)


def claim(node: str = "a", *, at: float = WALL, check: CheckId = LOST, pool: str = "") -> Claim:
    return Claim(node=node, uid=f"uid-{node}", found={check: at}, pool=pool)


def slots(*nodes: str) -> str:
    return msgspec.json.encode({n: {"uid": f"uid-{n}", "since": WALL} for n in nodes}).decode()


def findings(**times: float) -> str:
    return msgspec.json.encode({n: {str(LOST): at} for n, at in times.items()}).decode()


def settle(
    data: dict[str, str], wanted: Claim | None = None, *, agents: int | None = 30
) -> tuple[Book, budget.Held | None]:
    return budget.settle(book.read(data), wanted or claim(), agents, POLICY, WALL)


def refusal(
    data: dict[str, str], wanted: Claim | None = None, *, agents: int | None = 30
) -> Refusal | None:
    held = settle(data, wanted, agents=agents)[1]
    return held.refusal if held else None


@pytest.mark.parametrize(
    ("agents", "limit"), [(None, 1), (0, 1), (3, 1), (19, 1), (20, 2), (50, 5), (5000, 5)]
)
def test_the_limit_is_the_smaller_one_and_never_none(agents: int | None, limit: int) -> None:
    """A fifth of three nodes was none, and blocked all repair (karpenter #2134, #2321)."""
    assert POLICY.limit(agents) == limit


@pytest.mark.parametrize(("agents", "burst"), [(None, 3), (3, 3), (30, 3), (100, 10)])
def test_a_burst_is_a_share_and_at_least_three(agents: int | None, burst: int) -> None:
    assert POLICY.burst(agents) == burst


def test_the_first_node_gets_a_slot_that_says_why() -> None:
    settled, held = settle({}, claim(pool="h100"))
    assert held is None
    assert settled.slot("a") == Slot(uid="uid-a", since=WALL, check="gpu_lost", pool="h100")


def test_a_full_budget_holds_and_names_who_is_out() -> None:
    settled, held = settle({"slots": slots("x", "y", "z")})
    assert held is not None
    assert held.refusal is Refusal.FULL
    assert "3 of at most 3" in held.message
    assert "x, y, z" in held.message
    assert settled.slot("a") is None


def test_an_own_slot_is_as_good_as_a_new_one() -> None:
    before = {"slots": slots("a", "y", "z")}
    settled, held = settle(before)
    assert held is None
    assert settled.slots == book.read(before).slots


def test_a_slot_of_a_node_that_was_replaced_is_taken_over() -> None:
    old = {"slots": '{"a": {"uid": "another"}}'}
    settled, held = settle(old)
    assert held is None
    assert settled.slot("a") == claim().slot


def test_a_slot_without_its_time_counts_like_any_other() -> None:
    """Entries of before had none, and never ended (kured #478)."""
    assert refusal({"slots": '{"x": {}, "y": {}, "z": {}}'}) is Refusal.FULL


@pytest.mark.parametrize(
    "data", [{"paused": "true", "paused-reason": "driver upgrade"}, {"paused-pools": "a30, h100"}]
)
def test_a_pause_holds_new_cordons_and_says_who_asked(data: dict[str, str]) -> None:
    _, held = settle(data, claim(pool="h100"))
    assert held is not None
    assert held.refusal is Refusal.PAUSED
    assert next(iter(data)) in held.message
    assert data.get("paused-reason", "h100") in held.message


def test_a_pause_of_another_pool_holds_nothing() -> None:
    assert refusal({"paused-pools": "h100"}, claim(pool="a30")) is None
    assert refusal({"paused-pools": "h100"}, claim()) is None
    assert refusal({"paused": "false"}) is None


def test_the_third_of_a_burst_is_held_and_told_how_to_go_on() -> None:
    data = {"findings": findings(x=WALL - 500, y=WALL - 20)}
    settled, held = settle(data)
    assert held is not None
    assert held.refusal is Refusal.BURST
    assert "allow: gpu_lost" in held.message
    assert settled.found("a") == {"gpu_lost": WALL}


def test_the_findings_of_one_check_hold_no_other() -> None:
    data = {"findings": findings(x=WALL, y=WALL)}
    assert refusal(data, claim(check=HOT)) is None


def test_a_node_with_another_reason_as_well_is_no_part_of_the_burst() -> None:
    both = Claim(node="a", uid="uid-a", found={LOST: WALL, HOT: WALL})
    assert refusal({"findings": findings(x=WALL, y=WALL)}, both) is None


def test_findings_that_lie_apart_are_no_burst() -> None:
    data = {"findings": findings(x=WALL - 601, y=WALL - 5)}
    assert refusal(data) is None


def test_a_burst_of_before_holds_who_was_in_it_and_nobody_later() -> None:
    old = WALL - 86_400
    data = {"findings": findings(x=old, y=old + 60)}
    assert refusal(data, claim(at=old + 100)) is Refusal.BURST
    assert refusal(data, claim(at=WALL)) is None


@pytest.mark.parametrize("allow", ["gpu_lost", "too_hot gpu_lost", "all"])
def test_an_allowed_burst_goes_through_to_the_limit(allow: str) -> None:
    data = {"findings": findings(x=WALL, y=WALL), "allow": allow}
    assert refusal(data) is None
    assert refusal(data | {"slots": slots("x", "y", "z")}) is Refusal.FULL


def test_a_clock_that_is_ahead_is_taken_for_now() -> None:
    data = {"findings": findings(x=WALL + 7200, y=WALL + 9000)}
    assert refusal(data) is Refusal.BURST
    assert refusal({"findings": findings(x=WALL, y=WALL)}, claim(at=WALL + 7200)) is Refusal.BURST


def test_thousands_of_a_burst_do_not_all_write() -> None:
    """Once it stands without them, their word changes nothing."""
    data = {"findings": findings(x=WALL, y=WALL, z=WALL)}
    settled, held = settle(data)
    assert held is not None
    assert settled.data() == book.read(data).data()


def test_what_others_wrote_stays_also_what_we_do_not_know() -> None:
    data = {"slots": '{"x":{"uid":"u","new":[1,2]}}', "findings": '{"y":{"later":3.5}}'}
    settled, held = settle(data)
    assert held is None
    assert '"x":{"uid":"u","new":[1,2]}' in settled.data()["slots"]
    assert '"y":{"later":3.5}' in settled.data()["findings"]
    assert settled.without("a").data() == data


def test_findings_of_nodes_that_never_came_back_give_way() -> None:
    old = findings(**{f"n{number}": float(number) for number in range(book.MOST_FINDINGS)})
    settled, _ = settle({"findings": old})
    assert len(settled.findings) == book.MOST_FINDINGS
    assert "n0" not in settled.findings
    assert settled.found("a")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"slots": "nonsense"}, "slots"),
        ({"slots": "[]"}, "slots"),
        ({"slots": '{"x": {"since": "monday"}}'}, "slots: x"),
        ({"findings": '{"y": 3}'}, "findings: y"),
        ({"findings": "[" * 5000}, "findings"),
        ({"paused": "yes please"}, "paused"),
    ],
)
def test_what_cannot_be_read_is_named(data: dict[str, str], says: str) -> None:
    with pytest.raises(BookError, match=says):
        book.read(data)
