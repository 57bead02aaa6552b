"""dcgm-exporter's names as metrics of pods, so that autoscalers written for it go on working.

With its meaning: each pod has the values of its devices as dcgm-exporter's series of that pod show
them, whoever shares them, averaged over its devices as the usual rule for prometheus-adapter does.
Which names there are, and why others have no answer, the catalog says.
"""

from typing import Final

from adapter.api.paths import Kind
from adapter.served import Served, interval_seconds
from slicewatch.catalog import CATALOG
from slicewatch.catalog.dcgm import ALIASES, UNANSWERED, Alias, HostLabel
from slicewatch.catalog.model import Attribution, Combine
from slicewatch.catalog.model import Kind as Type
from slicewatch.wire.layout import Device, Layout


def _column(alias: Alias) -> str:
    """Return the column of an alias: of a labelled family it names the series."""
    labels = ",".join(f'{label}="{value}"' for label, value in alias.where.items())
    return f"{alias.metric}{{{labels}}}" if labels else alias.metric


def _served(alias: Alias) -> Served:
    return Served(
        name=alias.name,
        metric=CATALOG[alias.metric],
        help=alias.help,
        unit="",
        column=_column(alias),
        reasons=alias.metric,
        combine=Combine.MEAN,
        attribution=Attribution.DEVICE,
        kinds=frozenset({Kind.POD}),
        factor=alias.factor,
        on_mig=alias.on_mig,
        has_exporters_window=CATALOG[alias.metric].windowed,
        interval_seconds=interval_seconds(CATALOG[alias.metric]),
        dcgm=True,
    )


SERVED: Final = tuple(_served(alias) for alias in ALIASES if alias.kind is Type.GAUGE)

_REASONS: Final = {
    alias.name: f"it only counts up, which says nothing about the present load; {alias.metric} "
    "has the same count, for rates in Prometheus"
    for alias in ALIASES
    if alias.kind is not Type.GAUGE
} | {
    one.name: one.reason + (f"; use {one.instead} in Prometheus" if one.instead else "")
    for one in UNANSWERED
}


def unanswered(name: str) -> str:
    """Return why a name of dcgm-exporter has no value here; empty for any other name."""
    return _REASONS.get(name, "")


def labels_of(layout: Layout, device: Device) -> dict[str, str]:
    """Return the labels that dcgm-exporter gives to the series of a device."""
    labels: dict[str, object] = {
        "gpu": device.gpu,
        "UUID": device.parent or device.uuid,
        "device": None if device.minor is None else f"nvidia{device.minor}",
        "modelName": device.model,
        "pci_bus_id": device.pci_bus_id,
        "GPU_I_ID": device.gpu_instance,
        # Of a compute instance, 1c.3g.20gb, it knows the GPU instance, 3g.20gb.
        "GPU_I_PROFILE": device.profile.rpartition("c.")[2],
        **dict.fromkeys(map(str, HostLabel), layout.node),
    }
    return {name: str(value) for name, value in labels.items() if value not in {None, ""}}
