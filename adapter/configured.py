"""What files configure: rules for Prometheus-compatible backends, and the pages of workloads.

Both stand in the same files. Each takes effect on its own: a fault in one section leaves the other
as it is.
"""

from collections.abc import Coroutine
from typing import Any

from adapter.api.resources import Resources
from adapter.cluster.pods import Pods
from adapter.provider import CustomMetrics, ExternalMetrics
from adapter.settings import AdapterSettings
from adapter.sources.prometheus.custom import CustomRules
from adapter.sources.prometheus.external import ExternalRules
from adapter.sources.prometheus.files import RuleFiles, watched
from adapter.sources.prometheus.rules import Rules
from adapter.sources.workloads.document import of_documents
from adapter.sources.workloads.provider import Workloads
from adapter.sources.workloads.scraping import Scraper
from slicewatch.kube.client import ApiServer
from slicewatch.kube.protocol import Kube
from slicewatch.service.own_metrics import OwnMetrics
from slicewatch.service.reload import Watched


class Configured:
    """The providers that files describe.

    Attributes:
        custom, external: the providers, in the order of precedence.
        watched: the files, one for each that takes effect on its own.
    """

    def __init__(
        self,
        settings: AdapterSettings,
        kube: Kube,
        pods: Pods,
        resources: Resources,
        metrics: OwnMetrics,
    ) -> None:
        relist = settings.metrics_relist_interval
        self._rules = Rules(
            resources,
            metrics,
            # Kinds of other APIs are looked up where there is an API server to ask.
            kube if isinstance(kube, ApiServer) else None,
            max_age_seconds=settings.rule_max_age_seconds,
            relist_seconds=relist,
            window_seconds=settings.metrics_max_age or 2 * relist,
        )
        self._scraper = Scraper(pods, metrics)
        workloads = Workloads(pods, self._scraper)
        self.custom: tuple[CustomMetrics, ...] = (CustomRules(self._rules, pods), workloads)
        self.external: tuple[ExternalMetrics, ...] = (ExternalRules(self._rules),)
        rules = RuleFiles(settings.rules_files, settings.backend())
        # Each reads on a thread, so each has a reader of its own.
        pages = RuleFiles(settings.rules_files)
        self.watched: tuple[Watched[Any], ...] = (
            watched(rules, self._rules),
            Watched(
                "workload metrics",
                lambda: of_documents(pages.read().documents),
                workloads.configure,
            ),
        )

    @property
    def valid(self) -> bool:
        """Tell whether every rule of the files is in use."""
        return not self._rules.configuration.faults

    def tasks(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        """Return what has to run."""
        return [("rules", self._rules.run()), ("workloads", self._scraper.run())]
