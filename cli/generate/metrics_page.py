"""``docs/reference/metrics.md``: every metric of the catalog, for those who query them."""

from types import ModuleType
from typing import Any, Final

from cli.generate.tables import HEADER, code, table
from slicewatch.catalog import DOMAINS
from slicewatch.catalog.model import Attribution, Combine, Metric, Publish, Scope, Unit

COLUMNS: Final = (
    "Metric", "Type", "Unit", "Scopes", "Own labels", "Served to HPAs", "Stability", "Help",
)  # fmt: skip

UNITS: Final = {Unit.PERCENT: "percent, 0-100", Unit.RATIO: "ratio, 0-1", Unit.MEGAHERTZ: "MHz"}

COMBINED: Final = {
    Combine.MEAN: "mean over the devices",
    Combine.SUM: "sum over the devices",
    Combine.MAX: "largest of the devices",
}
ATTRIBUTED: Final = {
    Attribution.WORKLOAD_SHARE: "what a pod's workload used of what it could have had",
    Attribution.OWN_PART: "a pod's own part, or absent",
    Attribution.DEVICE: "the device's value, whoever shares it",
}

INTRODUCTION: Final = """\
# Metrics

Each metric is declared once, under `slicewatch/catalog/`; this page is generated from there.

**Absent is not zero.** A series exists only while its value is known. `0` means that it was
measured and is zero: an idle GPU, no memory allocated. A value that could not be read, that was
impossible, or that the device cannot report at all has no sample, never `0` and never `NaN`:
`gpu_metric_supported` then gives the reason why a device cannot report it,
`slicewatch_rejected_readings_total` counts what was rejected, and `gpu_up` is `0` for a GPU that
does not answer. In PromQL, use `absent()` or join with `gpu_up` where a missing value matters;
`or vector(0)` would turn a lost GPU into an idle one.

**Labels.** A series of a device carries `gpu` (the NVML index of the whole GPU), `uuid`, `model`
and `node`; that of a MIG device also `gpu_instance`, `compute_instance` and `profile`. A series
of a tenant carries those of its device. The static labels of the settings follow. The tables list
any further labels of a metric. Empty labels are left out.

**Scopes.** `gpu`: a whole GPU; `mig`: a MIG device; `tenant`: a container that holds a device;
`cluster`: counted by the adapter over the cluster; `process`: a process of Slicewatch.

**Stability.** Name, type, unit and labels of a `stable` metric do not change, though labels may be
added. An `alpha` metric may change with any release.

**Served to HPAs.** The adapter serves these metrics through the Kubernetes metrics APIs, as means
over the window, and combines the devices of a pod, node or namespace as listed. All others are for
Prometheus only.
"""


def metrics_page() -> str:
    """Return the page."""
    sections = (_section(title, domain) for title, domain in DOMAINS)
    return HEADER.format(source="`slicewatch/catalog/`") + "\n" + INTRODUCTION + "".join(sections)


def _section(title: str, domain: ModuleType) -> str:
    summary = (domain.__doc__ or "").partition("\n\n")[0].strip()
    rows = [_row(metric) for metric in domain.METRICS]
    return f"\n## {title}\n\n{summary}\n\n{table(COLUMNS, rows)}"


def _row(metric: Metric[Any]) -> tuple[str, ...]:
    return (
        code(metric.name),
        str(metric.kind),
        UNITS.get(metric.unit, str(metric.unit)),
        ", ".join(scope for scope in Scope if scope in metric.scopes),
        ", ".join(map(code, metric.labels)),
        _served(metric),
        str(metric.stability),
        metric.help + _published(metric) + (OPTIONAL if metric.optional else ""),
    )


OPTIONAL: Final = " **Off** unless `metrics` names it."


def _served(metric: Metric[Any]) -> str:
    if metric.serve is None:
        return ""
    return f"{COMBINED[metric.serve.combine]}; {ATTRIBUTED[metric.serve.attribution]}"


def _published(metric: Metric[Any]) -> str:
    if metric.publish is Publish.WINDOW_MEAN:
        return " Mean over `window_seconds`."
    if metric.publish is Publish.ACCUMULATED:
        return " Starts at 0 when the exporter starts."
    return ""
