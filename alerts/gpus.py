"""GPUs that are lost or ill, and what their driver has said about it.

The health monitor judges; where it runs, its word is the page (``GPUUnhealthy``), and the alerts
on raw readings carry ``layer: device``, so that Alertmanager can keep them back for the same GPU.
"""

from typing import Final

from alerts.model import DEVICE, Alert, Group, Severity, Source
from alerts.series import PER_GPU, PER_NODE
from alerts.thresholds import XID_REPEATS, XID_REPEATS_SECONDS, XID_SHOWN_SECONDS
from slicewatch.hardware.xids import XIDS, Tier

_EXPORTER: Final = frozenset({Source.EXPORTER})
_HEALTH: Final = frozenset({Source.HEALTH})


def _numbers(*tiers: Tier) -> str:
    return "|".join(str(fact.number) for fact in XIDS.values() if fact.tier in tiers)


def _seen(selector: str) -> str:
    """Return the seconds since such an Xid, while that is lately; a counter's first 1 is no rise."""
    return (
        f"time() - max by ({PER_GPU}, xid) (gpu_xid_last_seen_timestamp_seconds{{{selector}}})"
        f" < {XID_SHOWN_SECONDS}"
    )


def _condition(name: str) -> str:
    """Return the checks that have found something, on nodes with that condition."""
    return (
        f'max by ({PER_GPU}, check) (gpu_health_check_state{{state=~"unhealthy|recovering"}} == 1)\n'
        f'and on ({PER_NODE}) (slicewatch_health_condition{{condition="{name}"}} == 1)'
    )


GROUP: Final = Group(
    name="gpus",
    title="GPUs",
    intent="A GPU is lost, or ill by the word of the health monitor or of its driver.",
    rules=(
        Alert(
            name="GPULost",
            expr=f"""
            max by ({PER_GPU}) (gpu_up == 0)
            unless on ({PER_NODE}) (slicewatch_released == 1)
            """,
            hold="2m",
            severity=Severity.CRITICAL,
            summary="GPU {{ $labels.gpu }} of node {{ $labels.node }} does not answer.",
            description="The driver cannot reach {{ $labels.uuid }}, or its calls hang. What ran on"
            " it has failed. See that the node takes no new pods, then reboot it.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
        Alert(
            name="GPUUnhealthy",
            expr=_condition("GPUUnhealthy"),
            severity=Severity.CRITICAL,
            summary="Node {{ $labels.node }}: {{ $labels.check }} on GPU {{ $labels.gpu }}.",
            description="The health monitor has set GPUUnhealthy on the node and cordons it if it"
            " may. The page of the check {{ $labels.check }} says what to do.",
            sources=_HEALTH,
        ),
        Alert(
            name="GPUResetRequired",
            expr=_condition("GPUResetRequired"),
            hold="15m",
            severity=Severity.WARNING,
            summary="Node {{ $labels.node }}: GPU {{ $labels.gpu }} needs a reset.",
            description="{{ $labels.check }} has found what only a reset of the GPU heals. Running"
            " work may go on; reset it at a convenient time this week.",
            sources=_HEALTH,
        ),
        Alert(
            name="GPUDegraded",
            expr=_condition("GPUDegraded")
            + f'\nunless on ({PER_NODE}) (slicewatch_health_condition{{condition="GPUUnhealthy"}} == 1)',
            hold="15m",
            severity=Severity.WARNING,
            summary="Node {{ $labels.node }}: {{ $labels.check }} on GPU {{ $labels.gpu }}.",
            description="Work goes on, slower or with a risk. The page of the check"
            " {{ $labels.check }} says what to do.",
            sources=_HEALTH,
        ),
        Alert(
            name="GPUXidFatal",
            expr=_seen(f'xid=~"{_numbers(Tier.CORDON)}"'),
            severity=Severity.CRITICAL,
            summary="Fatal Xid {{ $labels.xid }} on GPU {{ $labels.gpu }} of {{ $labels.node }}.",
            description="What ran on {{ $labels.uuid }} has been ended. Give it no new work until"
            " it was reset: cordon the node unless the health monitor has.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
        Alert(
            name="GPUXidReset",
            expr=_seen(f'xid=~"{_numbers(Tier.RESET)}"'),
            severity=Severity.WARNING,
            summary="Xid {{ $labels.xid }} on GPU {{ $labels.gpu }} of {{ $labels.node }}.",
            description="The GPU has set a fault aside and heals with its next reset. Plan one.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
        Alert(
            name="GPUXidLink",
            expr=_seen(f'xid=~"{_numbers(Tier.LINK)}"'),
            severity=Severity.WARNING,
            summary="NVLink Xid {{ $labels.xid }} on GPU {{ $labels.gpu }} of {{ $labels.node }}.",
            description="Jobs over several GPUs may have ended or become slow. See whether all"
            " links of {{ $labels.uuid }} are up.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
        Alert(
            name="GPUXidWarning",
            # Those of no other class: a number that is not known yet is one of these.
            expr=_seen(f'xid!~"{_numbers(*(t for t in Tier if t is not Tier.WARN))}"'),
            severity=Severity.INFO,
            summary="Xid {{ $labels.xid }} on GPU {{ $labels.gpu }} of {{ $labels.node }}.",
            description="Something is not right with a program, the driver or the board. One alone"
            " rarely needs anybody.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
        Alert(
            name="GPUXidRepeated",
            expr=f"""
            sum by ({PER_GPU}, xid) (
              increase(gpu_xid_errors_total{{xid=~"{_numbers(Tier.REPEAT)}"}}[{XID_REPEATS_SECONDS}s])
            ) >= {XID_REPEATS}
            """,
            severity=Severity.WARNING,
            summary="Xid {{ $labels.xid }} again and again on GPU {{ $labels.gpu }} of"
            " {{ $labels.node }}.",
            description="It happened {{ $value | humanize }} times within an hour. Programs cause"
            " these; on one GPU only, under several programs, it is the GPU.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
        Alert(
            name="GPURecoveryWanted",
            expr=f'max by ({PER_GPU}, action) (gpu_recovery_action{{action!="none"}} == 1)',
            hold="5m",
            severity=Severity.WARNING,
            summary="The driver wants {{ $labels.action }} for GPU {{ $labels.gpu }} of"
            " {{ $labels.node }}.",
            description="Until then {{ $labels.uuid }} may refuse work or give wrong results.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
    ),
)
