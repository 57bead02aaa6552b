"""What the exporter's page has to say of tenants, compared with what it says. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from testbed.chain.page import BUSY_RATIO, BUSY_SECONDS, MEMORY, Page, Row, Served
from testbed.load.processes import Demand

# NVML cuts percentages to whole ones, once a second and process; a window ends within a period.
TOLERANCE: Final = 0.04

_MEBIBYTE: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A container with one load program, and what is to be served of it.

    Attributes:
        labels: some of those of ``gpu_tenant_info``.
        devices: on how many it works.
        shares_known: not so on MIG instances, where NVML attributes no time to processes.
    """

    demand: Demand
    labels: Mapping[str, str] = field(default_factory=dict)
    devices: int = 1
    shares_known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """One row that has to be served."""

    pid: int
    case: Case

    def faults(self, served: Served | None) -> Iterator[str]:
        """Yield what is wrong with what is served of the row; None is no row."""
        if served is None:
            yield "no row"
            return
        ratio, memory = served.values.get(BUSY_RATIO), served.values.get(MEMORY)
        if self.case.shares_known:
            if ratio is None or abs(ratio - self.case.demand.share) > TOLERANCE:
                yield f"{BUSY_RATIO} {ratio}"
        elif {BUSY_RATIO, BUSY_SECONDS} & served.values.keys():
            yield f"shares that nobody can know: {served.values}"
        if memory != self.case.demand.memory_bytes:
            yield f"{MEMORY} {memory}"
        if not self.case.labels.items() <= served.labels.items():
            yield f"labels {served.labels}"


def differences(rows: Mapping[Row, Expected], page: Page) -> list[str]:
    """Return everything in which a page differs from the rows that it has to serve."""
    served = page.tenants
    found = [f"{row}: a row too many" for row in served.keys() - rows.keys()]
    for row, expected in rows.items():
        found += [f"{row}: {fault}" for fault in expected.faults(served.get(row))]
    return found


def table(rows: Mapping[Row, Expected], page: Page) -> str:
    """Return a line for each row: who, which process and device, expected and served."""
    title = f"{'container':<24}{'PID':>6}  {'device':<12}{'expected':>20}{'served':>20}  counted"
    served = page.tenants
    ordered = sorted(rows.items(), key=lambda item: item[0][1:])
    lines = [_line(row, one, served.get(row)) for row, one in ordered]
    return "\n".join(["", title, *lines])


def _line(row: Row, expected: Expected, served: Served | None) -> str:
    name = f"{row.pod}/{row.container}" if row.pod else "(host)"
    case, values = expected.case, served.values if served else {}
    due = _use(case.demand.share if case.shares_known else None, case.demand.memory_bytes)
    found, seconds = _use(values.get(BUSY_RATIO), values.get(MEMORY)), values.get(BUSY_SECONDS)
    counted = "–" if seconds is None else f"{seconds:.1f} s"
    device = row.device[:12]
    return f"{name:<24}{expected.pid:>6}  {device:<12}{due:>20}{found:>20}  {counted:>7}"


def _use(ratio: float | None, memory_bytes: float | None) -> str:
    memory = "–" if memory_bytes is None else f"{memory_bytes / _MEBIBYTE:.0f} MiB"
    return f"{'–' if ratio is None else f'{ratio:.2f}'}, {memory}"
