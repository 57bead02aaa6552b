"""What a Node says that decisions are made of, taken from the object as it was just read. Pure."""

from collections.abc import Mapping

from health.case import Thresholds
from health.checks.model import Condition
from health.expectation import expected_gpus
from health.names import TAINT
from health.ownership import NodeNow
from health.policy import Policy
from health.settings import HealthSettings, TemperatureAction
from slicewatch.kube.nodes import WholeNode


def now_of(node: WholeNode) -> NodeNow:
    """Return whose cordon it is, as far as that can be seen."""
    return NodeNow(
        unschedulable=node.spec.unschedulable,
        tainted=node.has_taint(TAINT),
        annotations=node.annotations,
        labels=node.metadata.labels,
    )


def whose_cordon(now: NodeNow) -> str:
    """Return it as a label: ``ours``, ``foreign`` or ``none``."""
    if now.ours:
        return "ours"
    return "foreign" if now.unschedulable else "none"


def standing(node: WholeNode) -> frozenset[Condition]:
    """Return which conditions of ours are True."""
    said = ((kind, node.condition(kind)) for kind in Condition)
    return frozenset(kind for kind, one in said if one is not None and one.status == "True")


def thresholds(settings: HealthSettings, labels: Mapping[str, str]) -> Thresholds:
    """Return what the operator chose, and how many GPUs a node with these labels should have."""
    expected = settings.expected_gpus
    if expected is None:
        expected = expected_gpus(labels, settings.expected_gpus_label)
    return Thresholds(
        memory_errors=settings.memory_error_threshold,
        temperature_celsius=settings.temperature_threshold,
        hot_cordons=settings.temperature_action is TemperatureAction.CORDON,
        expected_gpus=expected,
        hang_seconds=settings.hang_seconds,
    )


def policy(settings: HealthSettings) -> Policy:
    """Return how patient the operator wants the monitor to be."""
    return Policy(
        interval_seconds=settings.check_interval,
        grace_seconds=settings.boot_grace,
        good_polls=settings.good_polls,
        flapping_raises=settings.flapping_limit,
        auto_cordon=settings.auto_cordon,
    )
