"""The families of ``/metrics`` under dcgm-exporter's names, beside our own.

Each value is one of ours under another name; what is optional there is read for these. A device
that one container holds alone has that container's labels, as it has there; on a shared one
dcgm-exporter would repeat the device's value for each of them, which is what nobody can add up.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from exporter.dcgm.entities import Entity, entities, labels
from slicewatch.catalog import CATALOG
from slicewatch.catalog.dcgm import ALIASES, Alias, HostLabel
from slicewatch.catalog.model import Kind
from slicewatch.service.exposition import Format, Grouped, help_text, labels_text
from slicewatch.wire.layout import Device, Layout, Tenant
from slicewatch.wire.snapshot import Column

# Their counters do not end in _total, which a counter of OpenMetrics must.
_OPEN_METRICS_COUNTER: Final = "unknown"

# The native metrics that answer the names, shown or not: all have to be read.
NATIVE: Final = tuple(CATALOG[name] for name in dict.fromkeys(a.metric for a in ALIASES))


class AliasPage:
    """The families of one layout.

    Args:
        layout: the devices and their tenants.
        host: how the label with the node's name is written.
    """

    def __init__(self, layout: Layout, host: HostLabel = HostLabel.CAPITAL) -> None:
        shown = [(entity, _text(layout, entity, host)) for entity in entities(layout.devices)]
        self._families = [(alias, list(_series(alias, shown))) for alias in ALIASES]

    def render(self, columns: Grouped, form: Format) -> str:
        """Return the families whose values are known.

        Args:
            columns: by native family, pairs of the series' own label text and its column.
            form: what the scraper can receive.
        """
        parts = []
        for alias, series in self._families:
            chosen = [c for text, c in columns.get(alias.metric, ()) if _selects(alias, text)]
            lines = [
                f"{prefix}{value * alias.factor}\n"
                for prefix, row in series
                if (value := _sum(chosen, row)) is not None
            ]
            if lines:
                parts += [_header(alias, form), *lines]
        return "".join(parts)


def _series(alias: Alias, shown: Sequence[tuple[Entity, str]]) -> Iterator[tuple[str, int]]:
    for entity, text in shown:
        row = entity.row(alias)
        if row is not None:
            yield f"{alias.name}{text} ", row


def _text(layout: Layout, entity: Entity, host: HostLabel) -> str:
    own = layout.devices[entity.own]
    found = labels(
        layout.devices[entity.gpu], own, node=layout.node, driver=layout.driver, host=host
    )
    holder = _only_holder(layout, own)
    if holder is not None:
        found |= {
            "container": holder.container, "namespace": holder.namespace, "pod": holder.pod,
        }  # fmt: skip
    # A static label of such a name would make one series of several devices.
    found |= {name: value for name, value in layout.labels.items() if name not in found}
    return labels_text(found.items())


def _only_holder(layout: Layout, own: Device) -> Tenant | None:
    """Return who has all of a device: not whoever is left for a while on one that is shared."""
    parts = {d.uuid for d in layout.devices if d is own or _is_same_instance(d, own)}
    holders = [tenant for tenant in layout.tenants if tenant.device in parts and tenant.allocated]
    return holders[0] if len(holders) == 1 and not holders[0].replica else None


def _is_same_instance(one: Device, other: Device) -> bool:
    return one.is_mig and (one.parent, one.gpu_instance) == (other.parent, other.gpu_instance)


def _selects(alias: Alias, own_labels: str) -> bool:
    shown = own_labels[1:-1].split(",")
    return all(f'{label}="{value}"' in shown for label, value in alias.where.items())


def _sum(columns: Sequence[Column], row: int) -> float | None:
    # NaN is the one value that differs from itself.
    known = [v for column in columns if (v := column[row]) is not None and v == v]
    return sum(known) if known else None


def _header(alias: Alias, form: Format) -> str:
    kind = str(alias.kind)
    if form is Format.OPEN_METRICS:
        kind = _OPEN_METRICS_COUNTER if alias.kind is Kind.COUNTER else kind
        return f"# TYPE {alias.name} {kind}\n# HELP {alias.name} {help_text(alias.help, form)}\n"
    return f"# HELP {alias.name} {help_text(alias.help, form)}\n# TYPE {alias.name} {kind}\n"
