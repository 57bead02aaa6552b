"""Every name that exporters' values are served under, and how each is made of their columns.

Declared by the catalog; nothing here knows of readings, pods or requests.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from adapter.api.paths import Kind
from slicewatch.catalog import CATALOG
from slicewatch.catalog.dcgm import OnMig
from slicewatch.catalog.model import Attribution, Combine, Metric, Probe, Scope, Serve

# A tenant's busy share of its device, 0 to 1: what all attribution of time is made of.
BUSY: Final = "gpu_tenant_busy_ratio"
# Where a layout says why the shares of a device's tenants cannot be known.
REASONS_OF_SHARES: Final = "gpu_contention_ratio"


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A name that objects are asked about.

    Attributes:
        metric: what it is made of.
        help, unit: of what is served, for people.
        column: of the devices' values; empty of what only tenants have.
        tenant_column: of what each tenant has of it; empty where that is never known.
        reasons: the metric whose reasons for being unsupported hold for it.
        combine: how the devices of an object become one value.
        fold: how containers of one object on one device do.
        kinds: the objects that have it.
        factor: of the metric's unit.
        on_mig: what a MIG device has of it.
        has_exporters_window: it is a mean over that, of which longer ones can be made.
        window_seconds: of a value with a window of its own.
        interval_seconds: how much older than its device's last reading it may be, since it is
            not read with each; its age is dated by that, and not held against it.
        dcgm: it is dcgm-exporter's, and so are the labels that its devices are chosen by.
    """

    name: str
    metric: Metric[Any]
    help: str
    unit: str
    column: str
    tenant_column: str = ""
    reasons: str
    combine: Combine
    fold: Combine = Combine.SUM
    attribution: Attribution
    kinds: frozenset[Kind]
    factor: float = 1.0
    on_mig: OnMig = OnMig.OWN
    has_exporters_window: bool
    window_seconds: float | None = None
    interval_seconds: float = 0.0
    dcgm: bool = False


def interval_seconds(metric: Metric[Any]) -> float:
    """Return the longest time between two readings of a metric beyond a tick."""
    return metric.origin.interval_seconds if isinstance(metric.origin, Probe) else 0.0


def _of(metric: Metric[Any], serve: Serve) -> Iterator[Served]:
    of_tenants = metric.scopes == {Scope.TENANT}
    tenant_column = metric.name if of_tenants else metric.name.replace("gpu_", "gpu_tenant_", 1)
    served = Served(
        name=metric.name,
        metric=metric,
        help=metric.help,
        unit=str(metric.unit),
        column="" if of_tenants else metric.name,
        tenant_column=tenant_column if tenant_column in CATALOG else "",
        reasons=REASONS_OF_SHARES if of_tenants else metric.name,
        combine=serve.combine,
        fold=Combine.MAX if serve.combine is Combine.MAX else Combine.SUM,
        attribution=serve.attribution,
        kinds=frozenset(Kind(str(kind)) for kind in serve.objects),
        has_exporters_window=serve.window_seconds is None,
        window_seconds=serve.window_seconds,
        interval_seconds=interval_seconds(metric),
    )
    yield served
    if serve.device_name:
        yield Served(
            name=serve.device_name,
            metric=metric,
            help=metric.help,
            unit=str(metric.unit),
            column=metric.name,
            reasons=metric.name,
            combine=serve.combine,
            attribution=Attribution.DEVICE,
            kinds=served.kinds,
            has_exporters_window=served.has_exporters_window,
            interval_seconds=served.interval_seconds,
        )


NATIVE: Final = tuple(
    served for metric in CATALOG.served() if metric.serve for served in _of(metric, metric.serve)
)


def families(served: Iterable[Served]) -> frozenset[str]:
    """Return the families of the columns that the values of some names are made of."""
    columns = {column for one in served for column in (one.column, one.tenant_column, BUSY)}
    return frozenset(column.partition("{")[0] for column in columns if column)
