"""What the fleet page shows of one node, made from its latest reading and its object in Kubernetes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from adapter.sources.source import Reading
from slicewatch.kube.objects import Node
from slicewatch.pages.message import Finding, Health, NodeRow, NodeState, Totals
from slicewatch.pages.node import Rows, node_state, worst
from slicewatch.wire.layout import Layout

# The conditions of our health monitors, worst first; docs/reference/health-contract.md has them.
CONDITIONS: Final = {
    "GPUUnhealthy": Health.BAD,
    "GPUResetRequired": Health.WARNING,
    "GPUDegraded": Health.WARNING,
    "GPUMonitoringUnavailable": Health.UNKNOWN,
}
# A node holds a few hundred containers at most; more text than that is not searched.
MOST_SEARCHED: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A node in short.

    Attributes:
        searched: lower-case names that it is found by.
    """

    pool: str
    row: NodeRow
    searched: str


def summary_of(
    name: str, reading: Reading | None, node: Node | None, *, age: float | None, pool: str,
    most_age: float,
) -> Summary:  # fmt: skip
    """Return a node in short.

    Args:
        name: of the node.
        reading: the latest of its exporter; None if there is none.
        node: its object; None if it is not known.
        age: seconds since the reading came; what is older than ``most_age`` is not shown.
        pool: that it belongs to.
        most_age: as of what HPAs get.
    """
    found = tuple(_of_conditions(node))
    cordoned = node is not None and node.spec.unschedulable
    if reading is None or age is None or age > most_age:
        return _silent(name, found, age, pool, cordoned=cordoned)
    layout, rows = reading.layout, Rows(reading.layout, reading.snapshot)
    lost = sum(_lost(rows))
    if lost:
        text = f"{lost} of its GPUs do not answer"
        found = (Finding(health=Health.BAD, text=text, runbook="GPULost"), *found)
    health = worst([finding.health for finding in found]) if found else Health.GOOD
    totals, busy = _totals(rows, cordoned=cordoned, unwell=lost)
    return Summary(
        pool=pool,
        row=NodeRow(
            node=name,
            health=health,
            totals=totals,
            cordoned=cordoned,
            finding=found[0].text if found else "",
            age_seconds=round(age, 1),
            utilizations=tuple(busy),
        ),
        searched=_searched(name, layout),
    )


def detail_of(
    name: str, reading: Reading | None, node: Node | None, *, age: float | None, pool: str,
    most_age: float,
) -> NodeState:  # fmt: skip
    """Return a node in full; without GPUs where nothing recent is known of them."""
    found = tuple(_of_conditions(node))
    cordoned = None if node is None else node.spec.unschedulable
    if reading is None or age is None or age > most_age:
        silent = Finding(
            health=Health.UNKNOWN, text=_silence(age), runbook="SlicewatchExporterDown"
        )
        found = (*found, silent)
        return NodeState(
            node=name, health=worst([f.health for f in found]), findings=found, cordoned=cordoned,
            pool=pool, age_seconds=age,
        )  # fmt: skip
    state = node_state(reading.layout, reading.snapshot, passed_seconds=age)
    healths = [state.health, *(finding.health for finding in found)]
    return msgspec.structs.replace(
        state, node=name, findings=found, cordoned=cordoned, pool=pool, health=worst(healths)
    )


def _of_conditions(node: Node | None) -> Iterator[Finding]:
    said = {} if node is None else {c.type: c for c in node.status.conditions}
    for name, health in CONDITIONS.items():
        condition = said.get(name)
        if condition is not None and condition.status == "True":
            text = f"{name}: {condition.message}" if condition.message else name
            yield Finding(health=health, text=text)


def _silent(
    name: str, found: tuple[Finding, ...], age: float | None, pool: str, *, cordoned: bool
) -> Summary:
    health = worst([Health.UNKNOWN, *(finding.health for finding in found)])
    return Summary(
        pool=pool,
        row=NodeRow(
            node=name,
            health=health,
            totals=Totals(nodes=1, silent=1, cordoned=int(cordoned)),
            cordoned=cordoned,
            finding=found[0].text if found else _silence(age),
            age_seconds=None if age is None else round(age, 1),
        ),
        searched=name.lower(),
    )


def _silence(age: float | None) -> str:
    if age is None:
        return "its exporter has sent nothing yet"
    return f"its exporter has sent nothing for {age:.0f} s"


def _lost(rows: Rows) -> Iterator[bool]:
    for device, up in zip(rows.layout.devices, rows.snapshot.up, strict=True):
        if not device.is_mig:
            yield not up


def _totals(
    rows: Rows, *, cordoned: bool, unwell: int
) -> tuple[Totals, Sequence[float | None]]:  # fmt: skip
    layout = rows.layout
    whole = [n for n, device in enumerate(layout.devices) if not device.is_mig]
    counted = [
        n for n, device in enumerate(layout.devices) if device.is_mig or not device.mig_enabled
    ]
    busy = [rows.value("gpu_utilization", n) for n in counted]
    known = [value for value in busy if value is not None]
    held = {tenant.device for tenant in layout.tenants if tenant.allocated}
    contention = [rows.value("gpu_contention_ratio", n) for n in counted]
    return (
        Totals(
            nodes=1,
            gpus=len(whole),
            devices=len(counted),
            known=len(known),
            allocated=sum(layout.devices[n].uuid in held for n in counted)
            if layout.tenants_known
            else None,
            unwell=unwell,
            cordoned=int(cordoned),
            utilization=sum(known) / len(known) if known else None,
            memory_used_bytes=_sum(rows.value("gpu_memory_used_bytes", n) for n in whole),
            memory_total_bytes=_sum(rows.value("gpu_memory_total_bytes", n) for n in whole),
            power_watts=_sum(rows.value("gpu_power_usage_watts", n) for n in whole),
            contention_max_ratio=max((v for v in contention if v is not None), default=None),
        ),
        [None if value is None else round(value, 1) for value in busy],
    )


def _sum(values: Iterator[float | None]) -> float | None:
    """Return the sum of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _searched(name: str, layout: Layout) -> str:
    words = [name, *{device.model for device in layout.devices}]
    words += [device.uuid for device in layout.devices]
    words += {f"{tenant.namespace}/{tenant.pod}" for tenant in layout.tenants if tenant.pod}
    return " ".join(words).lower()[:MOST_SEARCHED]
