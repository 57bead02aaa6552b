"""What the monitor shows of itself on ``/metrics``. It counts; it decides nothing."""

import time
from collections.abc import Callable

from health.checks.model import Action
from health.decision import Decision, Wish
from health.ledger import Standing
from slicewatch.catalog import health
from slicewatch.service.own_metrics import OwnMetrics
from slicewatch.wire.evidence import Evidence

HEARD = "heard"


class Observation:
    """The metrics of one monitor."""

    def __init__(
        self,
        metrics: OwnMetrics,
        *,
        dry_run: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.metrics = metrics
        self._clock = clock
        self._heard_at = clock()
        self._index: dict[str, int] = {}
        self._polls = metrics.counter(health.POLLS)
        self._missed = metrics.counter(health.MISSED_EVENTS)
        self._states = metrics.gauge(health.CHECK_STATE)
        self._faults = metrics.gauge(health.FAULTS)
        self._conditions = metrics.gauge(health.CONDITION)
        self._decisions = metrics.counter(health.DECISIONS)
        self._steps = metrics.counter(health.STEPS)
        self._writes = metrics.counter(health.WRITES)
        self._failures = metrics.counter(health.STEP_FAILURES)
        self._budget = metrics.gauge(health.BUDGET_NODES)
        self._paused = metrics.gauge(health.BUDGET_PAUSED)
        self._cordon = metrics.gauge(health.CORDON)
        metrics.gauge(health.EVIDENCE_AGE).set_function(lambda: clock() - self._heard_at)
        metrics.gauge(health.DRY_RUN).set(float(dry_run))
        for wish in Wish:
            self._decisions.labels(wish)

    def heard(self, evidence: Evidence) -> None:
        """Count an answer of the exporter."""
        self._heard_at = self._clock()
        self._index |= {gpu.device.uuid: gpu.device.gpu for gpu in evidence.gpus}
        self._polls.labels(HEARD).inc()
        self._missed.inc(evidence.missed)

    def silent(self, why: str) -> None:
        """Count a question that brought no evidence."""
        self._polls.labels(why).inc()

    def decided(self, decision: Decision) -> None:
        """Show a decision, and nothing of the one before."""
        self._decisions.labels(decision.wish).inc()
        self._show_states(decision)
        for action in Action:
            count = sum(fault.action is action for fault in decision.faults)
            self._faults.labels(action.name.lower()).set(count)
        self._conditions.clear()
        for condition, said in decision.conditions.items():
            if said.present is not None:
                self._conditions.labels(condition).set(float(said.present))

    def stepped(self, kind: str, outcome: str) -> None:
        """Count what was done with the node."""
        self._steps.labels(kind, outcome).inc()

    def wrote(self, kind: str, outcome: str) -> None:
        """Count a write, or one that a dry run left out."""
        self._writes.labels(kind, outcome).inc()

    def cordoned(self, whose: str) -> None:
        """Show whose cordon the node carries: ``ours``, ``foreign`` or ``none``."""
        self._cordon.clear()
        self._cordon.labels(whose).set(1)

    def budgeted(self, standing: Standing, pool: str) -> None:
        """Show the budget of the cluster as it was last seen, from a node of that pool."""
        for kind, nodes in (("used", standing.used), ("limit", standing.limit)):
            self._budget.labels(kind).set(nodes)
        paused = {"fleet": standing.paused, "pool": pool in standing.paused_pools}
        for kind, is_paused in paused.items():
            self._paused.labels(kind).set(float(is_paused))

    def failed(self, part: str, error: BaseException) -> None:
        """Count a part of a poll that did not get to its end."""
        self._failures.labels(part, type(error).__name__).inc()

    def _show_states(self, decision: Decision) -> None:
        self._states.clear()
        for (check, uuid), state in decision.states.items():
            self._states.labels(check, self._gpu(uuid), uuid, state).set(1)

    def _gpu(self, uuid: str) -> str:
        index = self._index.get(uuid)
        return "" if index is None else str(index)
