"""Prometheus text and OpenMetrics, rendered from columns.

Per layout, the name and escaped labels of each series are prepared once as one text; per snapshot
only the numbers are appended. There is no object per series.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from slicewatch.catalog.model import Kind, Metric, Unit
from slicewatch.wire.snapshot import Column

# Prepared texts of one family: what a node has at a time, with room for what comes and goes.
MOST_VARIANTS = 1000


class Format(Enum):
    """What a scraper can receive; the value is the content type."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def negotiate(accept: str) -> Format:
    """Return OpenMetrics where the ``Accept`` header ranks it first, text otherwise."""
    best: dict[str, float] = {}
    for part in accept.split(","):
        media, *parameters = (p.strip().lower() for p in part.split(";"))
        quality = next((p[2:] for p in parameters if p.startswith("q=")), "1")
        version = next((p[8:] for p in parameters if p.startswith("version=")), "1.0.0")
        if media != "application/openmetrics-text" or version in {"1.0.0", "0.0.1"}:
            best[media] = max(best.get(media, 0.0), _quality(quality))
    wanted = best.get("application/openmetrics-text", 0.0)
    other = max((q for media, q in best.items() if media in _TEXT_MEDIA), default=0.0)
    return Format.OPEN_METRICS if wanted > 0 and wanted >= other else Format.TEXT


_TEXT_MEDIA = frozenset({"text/plain", "text/*", "*/*"})


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def labels_text(labels: Iterable[tuple[str, str]]) -> str:
    """Return ``{name="value",...}`` with values escaped; empty values are left out."""
    return "{" + ",".join(f'{n}="{_escaped(v)}"' for n, v in labels if v != "") + "}"


def own_labels_text(metric: Metric[Any], values: str | tuple[str, ...]) -> str:
    """Return the text of a metric's own labels with these values."""
    texts = (values,) if isinstance(values, str) else values
    return labels_text(zip(metric.labels, texts, strict=True))


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def header(metric: Metric[Any], form: Format) -> str:
    """Return the HELP and TYPE lines, and UNIT where OpenMetrics allows it."""
    name, kind = metric.name, str(metric.kind)
    if form is Format.TEXT:
        kind = "gauge" if metric.kind is Kind.INFO else kind
        return f"# HELP {name} {help_text(metric.help, form)}\n# TYPE {name} {kind}\n"
    family = name.removesuffix("_total") if metric.kind is Kind.COUNTER else name
    family = family.removesuffix("_info") if metric.kind is Kind.INFO else family
    lines = f"# TYPE {family} {kind}\n"
    if metric.unit is not Unit.NONE and family.endswith(f"_{metric.unit}"):
        lines += f"# UNIT {family} {metric.unit}\n"
    return f"{lines}# HELP {family} {help_text(metric.help, form)}\n"


def help_text(text: str, form: Format) -> str:
    """Return a help text, escaped as the format wants it."""
    if form is Format.OPEN_METRICS:
        return _escaped(text)
    return text.replace("\\", r"\\").replace("\n", r"\n")


class Family:
    """One family over the rows of a layout.

    Args:
        labels: the label text of each row, None for no series.
    """

    def __init__(self, metric: Metric[Any], labels: Sequence[str | None]) -> None:
        self.metric = metric
        self._labels = tuple(labels)
        # By the text of the family's own labels, made when a column with it first comes.
        self._prefixes: dict[str, tuple[str | None, ...]] = {}

    def lines(self, column: Column, own_labels: str = "") -> str:
        """Return the lines of the known values, without a header.

        Neither None nor NaN, the one value that differs from itself, is written: this is the last
        place that every value passes.

        Args:
            column: a value per row.
            own_labels: what the series has beside the row's labels, as ``labels_text`` gives it.
        """
        prefixes = self._prefixes.get(own_labels) or self._prepare(own_labels)
        return "".join(
            [
                f"{prefix}{value}\n"
                for prefix, value in zip(prefixes, column, strict=True)
                if prefix is not None and value is not None and value == value
            ]
        )

    def _prepare(self, own_labels: str) -> tuple[str | None, ...]:
        # Columns come and go, with the instances of a vGPU host for example.
        if len(self._prefixes) >= MOST_VARIANTS:
            self._prefixes.clear()
        name = self.metric.name
        prefixes = tuple(
            None if text is None else f"{name}{joined(text, own_labels)} " for text in self._labels
        )
        self._prefixes[own_labels] = prefixes
        return prefixes


def joined(labels: str, more: str) -> str:
    """Join two label texts into one."""
    if len(more) <= len("{}"):
        return labels
    return f"{labels[:-1]},{more[1:]}" if len(labels) > len("{}") else more


# By family: pairs of the series' own label text and the column.
Grouped = Mapping[str, Sequence[tuple[str, Column]]]


def by_family(columns: Mapping[str, Column]) -> Grouped:
    """Group columns by the family that their keys name."""
    grouped: dict[str, list[tuple[str, Column]]] = {}
    for key, column in columns.items():
        name, brace, labels = key.partition("{")
        grouped.setdefault(name, []).append((brace + labels, column))
    return grouped


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """All families of a layout, and the text of those whose values change only with it."""

    families: tuple[Family, ...]
    constant: Mapping[Format, str]

    def render(self, columns: Grouped, form: Format) -> str:
        """Return the exposition; OpenMetrics still lacks its ``# EOF``.

        Args:
            columns: see ``by_family``.
            form: what the scraper can receive.
        """
        parts = [self.constant[form]]
        for family in self.families:
            found = columns.get(family.metric.name, ())
            if lines := "".join([family.lines(column, own) for own, column in found]):
                parts += (header(family.metric, form), lines)
        return "".join(parts)


def constant_text(families: Iterable[tuple[Family, Column]]) -> dict[Format, str]:
    """Render families whose values do not change with the ticks, in both formats."""
    rendered = [(family.metric, family.lines(column)) for family, column in families]
    return {
        form: "".join(header(metric, form) + lines for metric, lines in rendered if lines)
        for form in Format
    }
