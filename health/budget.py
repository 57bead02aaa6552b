"""Whether the cluster can spare one more node, by what the agents' shared object says. Pure.

Only new cordons are limited: whoever recovers is released whatever stands here. People stop new
cordons by ``paused`` or ``paused-pools``, and let a burst through by ``allow``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from health.book import ALL, ALLOW, CONFIG_MAP_NAME, PAUSED, PAUSED_POOLS, Book, Slot
from health.checks.model import CheckId

FEWEST_OF_A_BURST: Final = 3
BURST_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the operator chose.

    Attributes:
        nodes: the most that may be out of service.
        percent: of the nodes that run an agent.
        burst_percent: of the nodes that run an agent; so many with the same finding within ten
            minutes have a cause that no cordon removes.
    """

    nodes: int = 10
    percent: float = 10.0
    burst_percent: float = 10.0

    def limit(self, agents: int | None) -> int:
        """Return how many nodes may be out of service; at least one, also of unknown many."""
        return max(1, min(self.nodes, int(self.percent * (agents or 1) / 100)))

    def burst(self, agents: int | None) -> int:
        """Return how many nodes with the same finding are a burst."""
        return max(FEWEST_OF_A_BURST, int(self.burst_percent * (agents or 1) / 100))


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A node that is to be cordoned.

    Attributes:
        found: seconds since 1970, of each check whose fault asks for it; at least one.
    """

    node: str
    uid: str
    found: Mapping[CheckId, float]
    pool: str = ""

    @property
    def check(self) -> CheckId:
        """Return the check that found something first."""
        return min(self.found, key=lambda check: (self.found[check], check))

    @property
    def slot(self) -> Slot:
        """Return the slot that it is for."""
        check = self.check
        return Slot(uid=self.uid, since=self.found[check], check=check, pool=self.pool)


class Refusal(StrEnum):
    """Why there is no new cordon; the value is a label."""

    PAUSED = "paused"
    BURST = "burst"
    FULL = "full"
    UNREADABLE = "unreadable"
    CONTENDED = "contended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """No cordon for now; ``message`` says why and who can change that."""

    refusal: Refusal
    message: str


def settle(
    book: Book, claim: Claim, agents: int | None, policy: Policy, wall: float
) -> tuple[Book, Held | None]:
    """Return the book after a claim, and why the cordon has to wait; None where it may be.

    Args:
        book: without slots of nodes that are no longer out of service.
        claim: of a node that is not out of service because of us.
        agents: how many nodes run one; None where that is not known.
        policy: the operator's.
        wall: seconds since 1970.
    """
    burst = _burst(book, claim, policy.burst(agents), wall)
    # A burst that stands without us needs no further witness: thousands would rewrite the object.
    if not burst:
        book = book.with_findings(claim.node, claim.found).without_oldest_findings()
        burst = _burst(book, claim, policy.burst(agents), wall)
    held = _paused(book, claim) or burst or _full(book, claim, policy.limit(agents))
    return (book, held) if held else (book.with_slot(claim.node, claim.slot), None)


def _paused(book: Book, claim: Claim) -> Held | None:
    if not book.paused and claim.pool not in book.paused_pools:
        return None
    what = f"{PAUSED}: {book.paused_reason or 'no reason given'}"
    if not book.paused:
        what = f"{PAUSED_POOLS}: {claim.pool}"
    return Held(
        refusal=Refusal.PAUSED,
        message=f"cordons are paused ({what}); change it in ConfigMap {CONFIG_MAP_NAME}",
    )


def _full(book: Book, claim: Claim, limit: int) -> Held | None:
    others = len(book.slots.keys() - {claim.node})
    if others < limit:
        return None
    return Held(
        refusal=Refusal.FULL,
        message=f"{others} of at most {limit} nodes are cordoned for their GPUs already"
        f" ({_some(book.slots.keys() - {claim.node})}); repair one, or raise the limit",
    )


def _burst(book: Book, claim: Claim, many: int, wall: float) -> Held | None:
    """Return what holds the cordon: all checks that ask for it came in a burst."""
    if book.allowed & {ALL, *claim.found}:
        return None
    bursts = {check: _together(book, check, claim, wall) for check in claim.found}
    if any(len(nodes) < many for nodes in bursts.values()):
        return None
    nodes = bursts[claim.check]
    return Held(
        refusal=Refusal.BURST,
        message=f"{len(nodes)} nodes found {claim.check} within {BURST_SECONDS / 60:.0f} minutes"
        f" of each other ({_some(nodes)}): that is rarely their GPUs; to cordon them all the same,"
        f" set {ALLOW}: {claim.check} in ConfigMap {CONFIG_MAP_NAME}",
    )


def _together(book: Book, check: CheckId, claim: Claim, wall: float) -> set[str]:
    """Return the nodes that found it about when this one did, of which it may be one.

    Each writes the time of its own clock. One that is ahead is taken for now; one that is wrong
    by more than the window hides its node from the others' count and makes nobody count more.
    """
    ours = min(claim.found[check], wall)
    times = ((node, book.found(node).get(check)) for node in book.findings)
    return {
        node for node, at in times if at is not None and abs(min(at, wall) - ours) <= BURST_SECONDS
    }


def _some(nodes: set[str]) -> str:
    shown = sorted(nodes)[:3]
    return ", ".join(shown) + (f" and {len(nodes) - 3} more" if len(nodes) > len(shown) else "")
