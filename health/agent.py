"""The loop of the monitor: hear the exporter, decide, do what follows; once a minute, for ever.

Nothing that goes wrong in one turn ends the loop, and nothing of a turn is kept for the next one
but what the engine remembers: what could not be done is decided anew, not repeated. The loop waits
for no driver, and its heartbeat depends on neither the exporter nor the API server.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

from health.decision import Decision
from health.observation import Observation
from health.source import Cursor, EvidenceSource, Silence, SilenceError
from slicewatch.kube.errors import KubeError
from slicewatch.service import logs
from slicewatch.wire.evidence import Evidence

# A turn that takes longer is given up: it asks one exporter and a handful of times the API server.
TURN_SECONDS: Final = 120.0
# However soon something is due, the exporter and the API server are left in peace for so long.
SHORTEST_PAUSE_SECONDS: Final = 1.0

log = logs.logger(__name__)


class Judge(Protocol):
    """What turns evidence into decisions; see ``health.engine``."""

    def heard(self, evidence: Evidence, now: float, wall: float) -> Decision:
        """Return what follows from an answer of the exporter."""
        ...

    def silent(self, why: str, now: float, wall: float) -> Decision:
        """Return what follows from there being none."""
        ...


class Hands(Protocol):
    """What knows the node and changes it; see ``health.caretaker``."""

    async def begin(self) -> Judge:
        """Return a judge that knows what was decided before the restart.

        Raises:
            KubeError: the node cannot be read.
        """
        ...

    async def carry_out(self, decision: Decision) -> None:
        """Do what follows from a decision.

        Raises:
            KubeError: some of it could not be done.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Where times come from, and how to wait.

    Attributes:
        monotonic: seconds that only grow.
        wall: seconds since 1970.
        rest: waits for so many seconds.
    """

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    rest: Callable[[float], Awaitable[object]] = asyncio.sleep


class Agent:
    """One monitor on one node.

    Args:
        node: its name; evidence of any other is no evidence.
        source: where it comes from.
        hands: what carries decisions out.
        observation: counts.
        interval_seconds: between two turns, unless something is due sooner.
        clocks: the real ones by default.
    """

    def __init__(
        self,
        *,
        node: str,
        source: EvidenceSource,
        hands: Hands,
        observation: Observation,
        interval_seconds: float,
        clocks: Clocks | None = None,
    ) -> None:
        self._node = node
        self._source = source
        self._hands = hands
        self._observation = observation
        self._interval_seconds = interval_seconds
        self._clocks = clocks or Clocks()
        self._judge: Judge | None = None
        self._cursor = Cursor()
        self._quiet = ""
        self._fault = "the node has not been read yet"
        self._due_seconds = interval_seconds
        self._beat = self._clocks.monotonic()

    async def run(self) -> None:
        """Take turns until cancelled. What is on the node then stays there."""
        while True:
            self._beat = self._clocks.monotonic()
            await self.turn()
            self._beat = self._clocks.monotonic()
            await self._clocks.rest(self._pause_seconds())

    async def turn(self) -> None:
        """Hear, decide and act once; what fails is logged and counted, and nothing is raised."""
        part = "begin"
        try:
            async with asyncio.timeout(TURN_SECONDS):
                judge = self._judge = self._judge or await self._hands.begin()
                part = "judge"
                decision = await self._decide(judge)
                part = "act"
                await self._hands.carry_out(decision)
        except (KubeError, TimeoutError) as error:
            # Expected while the API server is away: one line a turn, and the next turn is soon.
            log.warning("turn not finished", part=part, error=str(error) or "out of time")
            self._fail(part, error)
        except Exception as error:  # the boundary of a turn: whatever it is, the next one comes
            log.exception("turn failed", part=part)
            self._fail(part, error)
        else:
            self._fault = ""

    def alive(self) -> str | None:
        """Return why only a new start could help, or None: for ``/livez``."""
        age = self._clocks.monotonic() - self._beat
        limit = self._interval_seconds + 2 * TURN_SECONDS
        return None if age <= limit else f"the loop has stood still for {age:.0f} s"

    def ready(self) -> str | None:
        """Return why the last turn did not get to its end, or None: for ``/readyz``."""
        return self._fault or None

    async def _decide(self, judge: Judge) -> Decision:
        try:
            evidence = await self._ask()
        except SilenceError as silence:
            self._observation.silent(silence.why)
            self._say_silence(str(silence))
            decision = judge.silent(silence.why, *self._now())
        else:
            # Even if the judge fails on it: an event that it cannot take must not come for ever.
            self._cursor = Cursor.after(evidence)
            self._observation.heard(evidence)
            self._say_heard(evidence)
            decision = judge.heard(evidence, *self._now())
        self._due_seconds = decision.next_due_seconds
        self._observation.decided(decision)
        return decision

    async def _ask(self) -> Evidence:
        evidence = await self._source.ask(self._cursor)
        if evidence.node != self._node:
            # Whoever mixes up two nodes must not have one cordoned for the other's GPUs.
            raise SilenceError(
                Silence.OTHER_NODE,
                f"the exporter calls its node {evidence.node!r}, and this is the monitor of"
                f" {self._node!r}: set NODE_NAME of both from spec.nodeName",
            )
        return evidence

    def _now(self) -> tuple[float, float]:
        return self._clocks.monotonic(), self._clocks.wall()

    def _pause_seconds(self) -> float:
        return max(SHORTEST_PAUSE_SECONDS, min(self._interval_seconds, self._due_seconds))

    def _fail(self, part: str, error: BaseException) -> None:
        self._fault = f"{part}: {str(error) or type(error).__name__}"
        self._due_seconds = self._interval_seconds
        self._observation.failed(part, error)

    def _say_silence(self, why: str) -> None:
        if why != self._quiet:
            log.warning("no evidence", error=why)
        self._quiet = why

    def _say_heard(self, evidence: Evidence) -> None:
        if self._quiet:
            log.info("evidence again", run=evidence.run, gpus=len(evidence.gpus))
        self._quiet = ""
        if evidence.missed:
            log.warning("events missed", count=evidence.missed, run=evidence.run)
