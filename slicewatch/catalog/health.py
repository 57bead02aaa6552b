"""What the health monitor of a node says about what it judges, wants and does."""

from typing import Final

from slicewatch.catalog.model import Kind, Label, Own, Unit

HEALTH: Final = Own(name="health")

CHECK_STATE: Final = HEALTH.metric(
    Kind.GAUGE,
    "gpu_health_check_state",
    help="1 for the state in which the check is with the GPU, or with the node if it names none.",
    labels=(Label.CHECK, Label.GPU, Label.UUID, Label.STATE),
)
FAULTS: Final = HEALTH.metric(
    Kind.GAUGE,
    "slicewatch_health_faults",
    help="Faults that there are, by what they lead to.",
    labels=(Label.ACTION,),
)
CONDITION: Final = HEALTH.metric(
    Kind.GAUGE,
    "slicewatch_health_condition",
    help="1 while the node condition says that there is the problem, 0 while it says there is none.",
    labels=(Label.CONDITION,),
)
CORDON: Final = HEALTH.metric(
    Kind.GAUGE,
    "slicewatch_health_cordon",
    help="1 for whose cordon the node carries, as last seen: ours, foreign or none.",
    labels=(Label.STATE,),
)
DECISIONS: Final = HEALTH.metric(
    Kind.COUNTER,
    "slicewatch_health_decisions_total",
    help="Decisions, by what the node should become: cordon, release or keep.",
    labels=(Label.KIND,),
)
STEPS: Final = HEALTH.metric(
    Kind.COUNTER,
    "slicewatch_health_steps_total",
    help="What was to be done with the node after a decision, by how far that came.",
    labels=(Label.KIND, Label.OUTCOME),
)
WRITES: Final = HEALTH.metric(
    Kind.COUNTER,
    "slicewatch_health_writes_total",
    help="Writes to the API server, and those that a dry run only logged, by kind and outcome.",
    labels=(Label.KIND, Label.OUTCOME),
)
POLLS: Final = HEALTH.metric(
    Kind.COUNTER,
    "slicewatch_health_polls_total",
    help="Times that the exporter was asked for evidence, by what came of it.",
    labels=(Label.OUTCOME,),
)
EVIDENCE_AGE: Final = HEALTH.metric(
    Kind.GAUGE,
    "slicewatch_health_evidence_age_seconds",
    help="Time since the exporter last answered, or since the start if it never has.",
    unit=Unit.SECONDS,
)
MISSED_EVENTS: Final = HEALTH.metric(
    Kind.COUNTER,
    "slicewatch_health_missed_events_total",
    help="Events that the exporter no longer had when it was asked for them.",
)
STEP_FAILURES: Final = HEALTH.metric(
    Kind.COUNTER,
    "slicewatch_health_failures_total",
    help="Polls that ended before their time, by the part that failed and why.",
    labels=(Label.KIND, Label.REASON),
)
BUDGET_NODES: Final = HEALTH.metric(
    Kind.GAUGE,
    "slicewatch_health_budget_nodes",
    help="Nodes that hold a slot of the cluster's budget (used), and how many may (limit).",
    labels=(Label.KIND,),
)
BUDGET_PAUSED: Final = HEALTH.metric(
    Kind.GAUGE,
    "slicewatch_health_budget_paused",
    help="1 while somebody has paused new cordons, of the fleet or of the node's pool.",
    labels=(Label.KIND,),
)
DRY_RUN: Final = HEALTH.metric(
    Kind.GAUGE,
    "slicewatch_health_dry_run",
    help="1 where nothing is written, only logged and counted.",
)

METRICS: Final = (
    CHECK_STATE, FAULTS, CONDITION, CORDON, DECISIONS, STEPS, WRITES, POLLS, EVIDENCE_AGE,
    MISSED_EVENTS, STEP_FAILURES, BUDGET_NODES, BUDGET_PAUSED, DRY_RUN,
)  # fmt: skip
