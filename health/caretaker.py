"""Carries decisions out on the monitor's own node: reads it, weighs, and has written what follows.

Everything is weighed against a node that was read in the same turn, and anew when somebody else
has changed it meanwhile. A part that fails does not keep the others from being done: a condition
is shown even if the budget cannot be read.
"""

from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, TypeVar

from health import ownership
from health.actions.conditions import Conditions
from health.actions.cordon import Cordon
from health.actions.cordoning import Cordoning
from health.actions.events import Events, of_node
from health.agent import Clocks
from health.budget import Held, Policy
from health.checks.model import Check
from health.decision import Decision
from health.engine import Engine, UnknownCheckError
from health.ledger import Ledger, Place
from health.names import CLEAR, CORDONED, STATE
from health.node import now_of, policy, standing, thresholds, whose_cordon
from health.observation import Observation
from health.ownership import GiveUp, Nothing, Step, Uncordon
from health.settings import HealthSettings
from slicewatch.kube.errors import ConflictError, KubeError
from slicewatch.kube.nodes import WHOLE_NODE, WholeNode
from slicewatch.kube.protocol import Kube
from slicewatch.service import logs

# Others write to a node a few times a minute; who meets them that often decides in the next turn.
ATTEMPTS: Final = 4
CLEAR_REFUSED: Final = "GPUHealthClearRefused"
DONE: Final = "done"

log = logs.logger(__name__)

T = TypeVar("T")


class Caretaker:
    """The hands of one agent; see ``health.agent.Hands``.

    Args:
        kube: through which all is read and written; for a dry run one that writes nothing.
        settings: the operator's.
        namespace: of the monitors.
        checks: what is looked for.
        observation: counts.
        clocks: as the agent's.
    """

    def __init__(
        self,
        kube: Kube,
        settings: HealthSettings,
        *,
        namespace: str,
        checks: Sequence[Check],
        observation: Observation,
        clocks: Clocks | None = None,
    ) -> None:
        self._kube = kube
        self._settings = settings
        self._namespace = namespace
        self._observation = observation
        self._clocks = clocks or Clocks()
        self._engine = Engine(checks, thresholds(settings, {}), policy(settings))
        self._cordon = Cordon(kube, taint=settings.taint)
        self._conditions = Conditions(kube, settings.node_name)
        self._events = Events(kube, settings.node_name)
        self._ledger: Ledger | None = None
        self._cordoning: Cordoning | None = None
        self._uid = ""
        self._node: WholeNode | None = None

    async def begin(self) -> Engine:
        """Return the judge, which knows what the node says was decided before.

        Raises:
            KubeError: the node cannot be read.
        """
        self._restore(await self._read())
        return self._engine

    async def carry_out(self, decision: Decision) -> None:
        """Do what follows from a decision.

        Raises:
            KubeError: some of it could not be done; all else was.
        """
        # Said before anything is asked: events wait, where the API server is away.
        known = self._node or await self._read()
        self._events.say_changes(known, decision.changes, now=self._now, wall=self._wall)
        node = await self._read()
        failures: list[KubeError] = []
        weighed = await self._try(failures, self._weighed(node, decision))
        node, decision, wanted = weighed or (node, decision, True)
        await self._try(failures, self._cordoning_of(node).settle(node, wanted=wanted))
        await self._try(
            failures,
            self._conditions.show(node, decision.conditions, now=self._now, wall=self._wall),
        )
        await self._try(failures, self._events.flush(self._now))
        self._observe(node)
        if failures:
            raise failures[0]
        if decision.read_only:
            # In case a human has taken the record away.
            self._restore(node)

    @property
    def _now(self) -> float:
        return self._clocks.monotonic()

    @property
    def _wall(self) -> float:
        return self._clocks.wall()

    async def _read(self) -> WholeNode:
        node = self._node = await self._kube.get(WHOLE_NODE, self._settings.node_name)
        self._engine.thresholds = thresholds(self._settings, node.metadata.labels)
        return node

    def _restore(self, node: WholeNode) -> None:
        problem = self._engine.restore(
            node.annotations.get(STATE, ""),
            mark=node.annotations.get(CORDONED, ""),
            standing=standing(node),
        )
        if problem:
            log.warning("record of the node not taken over", annotation=STATE, error=problem)

    async def _try(self, failures: list[KubeError], part: Awaitable[T]) -> T | None:
        """Return what a part returns, or None and its failure in the list."""
        try:
            return await part
        except KubeError as error:
            log.warning("not done", error=str(error))
            failures.append(error)
            return None

    async def _weighed(
        self, node: WholeNode, decision: Decision
    ) -> tuple[WholeNode, Decision, bool]:
        """Take the step that the node asks for; return both as they are then.

        The third is whether a cordon was wanted, be it there or held.

        Raises:
            ConflictError: others changed the node as often as it was tried.
            KubeError: the step could not be taken; the record is kept, as far as that is possible.
        """
        for attempt in range(1, ATTEMPTS + 1):
            decision, cleared = self._cleared(node, decision)
            step = ownership.decide(
                now_of(node), decision, allow_control_plane=self._settings.allow_control_plane
            )
            try:
                node, decision = await self._take(step, node, decision)
                node = await self._remember(node, decision, cleared=cleared)
            except ConflictError:
                if attempt == ATTEMPTS:
                    raise
                node = await self._read()
            except KubeError:
                # Such as of a budget that cannot be read: what is known outlives a restart anyhow.
                with suppress(KubeError):
                    await self._remember(node, decision, cleared=cleared)
                raise
            else:
                return node, decision, isinstance(step, ownership.Cordon)
        raise AssertionError("a range of at least one attempt")

    def _cleared(self, node: WholeNode, decision: Decision) -> tuple[Decision, bool]:
        """Forget what a human wants forgotten; return what follows, and whether it was done."""
        what = node.annotations.get(CLEAR, "")
        # Where the record is of a newer version, that one is to be asked and not this one.
        if not what or decision.read_only:
            return decision, False
        try:
            after = self._engine.clear(what, self._now)
        except UnknownCheckError as error:
            self._events.say(
                of_node(node), CLEAR_REFUSED, str(error), now=self._now, wall=self._wall
            )
            return decision, False
        log.info("faults cleared by a human", annotation=CLEAR, value=what)
        self._events.say_changes(node, after.changes, now=self._now, wall=self._wall)
        return after, True

    async def _take(
        self, step: Step, node: WholeNode, decision: Decision
    ) -> tuple[WholeNode, Decision]:
        """Take a step; return the node and the decision as they are then."""
        cordoning, clock = self._cordoning_of(node), {"now": self._now, "wall": self._wall}
        kind, outcome = type(step).__name__.lower(), DONE
        record = decision.record or node.annotations.get(STATE, "")
        if isinstance(step, Nothing):
            outcome = step.why
        elif isinstance(step, ownership.Cordon):
            after = await cordoning.cordon(node, step, record, **clock)
            if isinstance(after, Held):
                outcome = f"held_{after.refusal}"
            else:
                node = after
        elif isinstance(step, Uncordon):
            node = await cordoning.uncordon(node, record, **clock)
        else:
            decision = self._ignored(step, decision)
            node = await cordoning.give_up(node, decision.record or record, **clock)
        if not isinstance(step, Nothing):
            log.info("step taken", step=kind, outcome=outcome, node=node.metadata.name)
        self._observation.stepped(kind, outcome)
        return node, decision

    def _ignored(self, step: GiveUp, decision: Decision) -> Decision:
        """Return the decision without the faults that a human has decided are no reason."""
        return replace(self._engine.ignore(step.ignored, self._now), changes=decision.changes)

    async def _remember(self, node: WholeNode, decision: Decision, *, cleared: bool) -> WholeNode:
        record = decision.record or node.annotations.get(STATE, "")
        return await self._cordon.remember(node, record, cleared=cleared)

    def _cordoning_of(self, node: WholeNode) -> Cordoning:
        """Return what speaks for this node, which is another one if it was deleted and made anew."""
        if self._cordoning is None or self._uid != node.metadata.uid:
            settings, self._uid = self._settings, node.metadata.uid
            place = Place(
                namespace=self._namespace, daemon_set=settings.daemon_set,
                node=settings.node_name, uid=self._uid,
            )  # fmt: skip
            limits = Policy(nodes=settings.budget_absolute, percent=settings.budget_percent)
            self._ledger = Ledger(
                self._kube, place, limits, monotonic=self._clocks.monotonic, wall=self._clocks.wall
            )
            self._cordoning = Cordoning(
                self._ledger, self._cordon, self._events, pool_label=settings.pool_label
            )
        return self._cordoning

    def _observe(self, node: WholeNode) -> None:
        self._observation.cordoned(whose_cordon(now_of(node)))
        if self._ledger is not None and self._ledger.standing is not None:
            pool = node.metadata.labels.get(self._settings.pool_label, "")
            self._observation.budgeted(self._ledger.standing, pool)
