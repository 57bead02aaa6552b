"""The health monitors: whether they see, whether they may act, and what stays cordoned."""

from typing import Final

from alerts.model import Alert, Group, Severity, Source
from alerts.series import HEALTH_JOB, PER_CLUSTER, PER_NODE
from alerts.thresholds import EVIDENCE_SECONDS, UNWELL_NODES, UNWELL_RATIO

_HEALTH: Final = frozenset({Source.HEALTH})
_UNWELL: Final = 'slicewatch_health_condition{condition="GPUUnhealthy"}'

GROUP: Final = Group(
    name="cordons",
    title="Health monitors and cordons",
    intent="A monitor cannot see or act, or a node has been out of service for long.",
    rules=(
        Alert(
            name="GPUManyNodesUnhealthy",
            expr=f"""
            count by ({PER_CLUSTER}) ({_UNWELL} == 1) > {UNWELL_NODES}
            and on ({PER_CLUSTER})
              count by ({PER_CLUSTER}) ({_UNWELL} == 1) / count by ({PER_CLUSTER}) ({_UNWELL})
              > {UNWELL_RATIO}
            """,
            hold="5m",
            severity=Severity.CRITICAL,
            summary="GPUs of {{ $value }} nodes are unhealthy at once.",
            description="So many at a time have a common cause: a driver, a rack's power or cooling,"
            " a switch. Pause cordons if it is none of the GPUs' own.",
            sources=_HEALTH,
        ),
        Alert(
            name="SlicewatchHealthDown",
            expr=f"max by ({PER_NODE}, instance) (up{{{HEALTH_JOB}}}) == 0",
            hold="15m",
            severity=Severity.WARNING,
            summary="The health monitor of {{ $labels.node }} does not answer.",
            description="Nobody judges the GPUs of that node. What it had cordoned stays so.",
            sources=frozenset({Source.PROMETHEUS}),
        ),
        Alert(
            name="SlicewatchEvidenceStale",
            expr=f"""
            max by ({PER_NODE}) (slicewatch_health_evidence_age_seconds) > {EVIDENCE_SECONDS}
            """,
            hold="5m",
            severity=Severity.WARNING,
            summary="The health monitor of {{ $labels.node }} gets no evidence.",
            description="The exporter has not answered it for {{ $value | humanizeDuration }}. What"
            " is not known is judged as unknown: nothing is cordoned, nothing released.",
            sources=_HEALTH,
        ),
        Alert(
            name="SlicewatchHealthWritesFailing",
            expr=f"""
            sum by ({PER_NODE}, kind, outcome)
              (increase(slicewatch_health_writes_total{{outcome!~"done|dry_run|conflict"}}[30m])) > 3
            """,
            hold="15m",
            severity=Severity.WARNING,
            summary="The health monitor of {{ $labels.node }} cannot write {{ $labels.kind }}.",
            description="The API server's answer: {{ $labels.outcome }}. Rights, the admission"
            " policy or the API server itself; the monitor's log says which.",
            sources=_HEALTH,
        ),
        Alert(
            name="SlicewatchCordonHeld",
            expr=f"""
            sum by ({PER_NODE}, outcome)
              (increase(slicewatch_health_steps_total{{kind="cordon",outcome=~"held_.*"}}[15m])) > 0
            """,
            hold="5m",
            severity=Severity.CRITICAL,
            summary="Node {{ $labels.node }} should be cordoned and is not ({{ $labels.outcome }}).",
            description="It has a failed GPU and takes pods. The budget is used up, cordons are"
            " paused, or many nodes failed at once: decide by hand.",
            sources=_HEALTH,
        ),
        Alert(
            name="SlicewatchCordonBudgetExhausted",
            expr=f"""
            max by ({PER_CLUSTER}) (slicewatch_health_budget_nodes{{kind="used"}})
            >= max by ({PER_CLUSTER}) (slicewatch_health_budget_nodes{{kind="limit"}})
            """,
            hold="15m",
            severity=Severity.WARNING,
            summary="The budget of cordons is used up: {{ $value }} nodes.",
            description="The next node with a failed GPU stays in service. Repair and release some,"
            " or raise the budget.",
            sources=_HEALTH,
        ),
        Alert(
            name="SlicewatchCordonsPaused",
            expr=f"max by ({PER_CLUSTER}, kind) (slicewatch_health_budget_paused == 1)",
            hold="24h",
            severity=Severity.WARNING,
            summary="Cordons have been paused for a day ({{ $labels.kind }}).",
            description="Nodes with failed GPUs stay in service. Take the pause back if whoever set"
            " it has finished.",
            sources=_HEALTH,
        ),
        Alert(
            name="GPUNodeCordonedLong",
            expr=f"""
            max by ({PER_NODE}, state) (slicewatch_health_cordon{{state=~"ours|foreign"}} == 1)
            """,
            hold="24h",
            severity=Severity.WARNING,
            summary="Node {{ $labels.node }} has been cordoned for a day.",
            description="The cordon is {{ $labels.state }}. Its GPUs take no new work: repair it, or"
            " uncordon it.",
            sources=_HEALTH,
        ),
        Alert(
            name="SlicewatchHealthDryRun",
            expr=f"max by ({PER_CLUSTER}) (slicewatch_health_dry_run) == 1",
            hold="7d",
            severity=Severity.INFO,
            summary="Health monitors have only watched for a week.",
            description="They run with a dry run: they log what they would do and cordon nothing."
            " If what they logged is right, let them act.",
            sources=_HEALTH,
        ),
    ),
)
