"""Which families the settings ask for, under which names, and which reads they need."""

from dataclasses import dataclass
from typing import Any

from exporter.dcgm.names import Aliases
from exporter.measure.plan import Plan, chosen
from exporter.settings import ExporterSettings
from slicewatch.catalog import CATALOG
from slicewatch.catalog.dcgm import HostLabel
from slicewatch.catalog.model import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Families:
    """What is shown on ``/metrics``.

    Attributes:
        shown: under our own names.
        aliases: under those of dcgm-exporter besides; None if not.
    """

    shown: tuple[Metric[Any], ...]
    aliases: Aliases | None

    @classmethod
    def of(cls, settings: ExporterSettings) -> "Families":
        """Return what these settings ask for."""
        host = HostLabel(settings.dcgm_host_label)
        return cls(
            shown=chosen(CATALOG.metrics, settings.metrics),
            aliases=Aliases(host=host) if settings.dcgm_names else None,
        )

    def plan(self) -> Plan:
        """Return the reads for all of it."""
        others = () if self.aliases is None else self.aliases.metrics
        return Plan.of((*self.shown, *others))
