"""The rules that are in force: what they offer now, and the queries that answer for them.

A configuration takes effect as a whole, between two requests. What a backend or the API server
has to be asked for is kept up in the background; requests never wait for it.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Final

from adapter.api.resources import Resources
from adapter.sources.prometheus.backends import Backends
from adapter.sources.prometheus.configuration import Configuration
from adapter.sources.prometheus.discovery import Names
from adapter.sources.prometheus.fault import BackendError
from adapter.sources.prometheus.kinds import Discovery, Kinds
from adapter.sources.prometheus.offers import (
    NOTHING,
    CustomOffer,
    ExternalOffer,
    custom_offers,
    external_offers,
    targets,
)
from adapter.sources.prometheus.readings import Query, Reading, Readings
from adapter.sources.prometheus.values import Serving, Value
from slicewatch.catalog.own import DROPPED_SAMPLES, RULE_SUCCESS
from slicewatch.promrules.faults import Fault
from slicewatch.promrules.rule import CustomRule, ExternalRule
from slicewatch.service import logs
from slicewatch.service.own_metrics import OwnMetrics

log = logs.logger(__name__)

# Twice the interval of a scrape a minute, and less than the five minutes for which a backend
# goes on giving the last sample of a series whose end nobody marked.
MAX_AGE_SECONDS: Final = 120.0
RELIST_SECONDS: Final = 60.0
# Between attempts to learn what is still unknown.
RETRY_SECONDS: Final = 5.0

Offer = CustomOffer | ExternalOffer


class FaultyRulesError(ValueError):
    """New files have rules that cannot be used; those before stay in force."""


class Rules:
    """Rules with their backends.

    Args:
        resources: kinds of objects, those of the offering.
        server: where unknown kinds are looked up; None: nowhere.
        max_age_seconds: of samples, for rules that do not say.
        relist_seconds: how often backends are asked for what rules leave open.
        window_seconds: labels of series that ended longer ago are no longer known.

    Attributes:
        revision: number of changes of the offers so far.
        custom: by the name of the kind and the metric.
        external: by the metric in lower case.
    """

    def __init__(
        self,
        resources: Resources,
        metrics: OwnMetrics,
        server: Discovery | None = None,
        *,
        max_age_seconds: float = MAX_AGE_SECONDS,
        relist_seconds: float = RELIST_SECONDS,
        window_seconds: float = 2 * RELIST_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.revision = 0
        self.custom: dict[tuple[str, str], CustomOffer] = {}
        self.external: dict[str, ExternalOffer] = {}
        self.configuration = Configuration()
        self._applied = False
        self._backends = Backends()
        self.readings = Readings(self._backends, metrics, monotonic=monotonic, wall=wall)
        self._kinds = Kinds(resources, server)
        self.names = Names(self._backends, wall, window_seconds=window_seconds)
        self._max_age_seconds = max_age_seconds
        self._relist_seconds = relist_seconds
        self._changed = asyncio.Event()
        self._success = metrics.gauge(RULE_SUCCESS)
        self._dropped = metrics.counter(DROPPED_SAMPLES)

    def apply(self, configuration: Configuration) -> None:
        """Put a configuration in force.

        The first may have faults, which cost the rules that have them. One that replaces a good
        one may not: a metric that somebody scales by must not vanish by a slip of the pen.

        Raises:
            FaultyRulesError: it has faults, and the one before has none; nothing has changed.
        """
        if configuration.faults and self._applied and not self.configuration.faults:
            raise FaultyRulesError("; ".join(map(str, configuration.faults)))
        for fault in configuration.faults:
            log.error(
                "a rule is left out", place=str(fault.place), fault=fault.what, fix=fault.fix
            )
        self._applied = True
        self.configuration = configuration
        self._backends.configure(configuration.backends)
        self._success.clear()
        for fault in configuration.faults:
            self._success.labels(_rule_of(fault)).set(0)
        self._offer()
        self._changed.set()

    async def run(self) -> None:
        """Answer, and keep the offers up to date, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.readings.run(), name="queries")
                while True:
                    self._changed.clear()
                    complete = await self.refresh()
                    wait = self._relist_seconds if complete else RETRY_SECONDS
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._changed.wait(), wait)
        finally:
            await self._backends.close()

    async def refresh(self) -> bool:
        """Ask for what rules leave open; tell whether all of it is known now."""
        await self._backends.close_retired()
        configuration = self.configuration
        rules: list[CustomRule | ExternalRule] = [*configuration.custom, *configuration.external]
        changed = await self.names.refresh(rules, configuration.default)
        before = self._kinds.resources.revision
        known = await self._kinds.learn(
            target
            for rule in configuration.custom
            for target in targets(rule, self.names.found.get(rule.name, NOTHING))
        )
        if changed or self._kinds.resources.revision != before:
            self._offer()
        return known and not self.names.faults

    def max_age_seconds(self, offer: Offer) -> float:
        """Return how old samples may be."""
        return offer.rule.max_age_seconds or self._max_age_seconds

    def serving(self, offer: Offer) -> Serving:
        """Return how values of a metric are made now."""
        return Serving(
            adjustment=offer.rule.adjustment,
            max_age_seconds=self.max_age_seconds(offer),
            now=self.readings.monotonic(),
        )

    def query(self, offer: Offer, text: str, times: str) -> Query:
        """Return the query that a text is for the backend of a metric."""
        return Query(
            backend=offer.rule.backend or self.configuration.default, text=text, times=times
        )

    async def read(self, offer: Offer, query: Query) -> Reading:
        """Return what the backend says.

        Raises:
            Refusal: 503 or 504; it says nothing that can be used.
        """
        success = self._success.labels(offer.rule.name)
        try:
            reading = await self.readings.get(query, self.max_age_seconds(offer))
        except BackendError as error:
            success.set(0)
            raise error.refusal(offer.metric) from error
        success.set(1)
        return reading

    def count(self, offer: Offer, values: Iterable[Value]) -> None:
        """Note the values that are not served."""
        for value in values:
            if value.drop is not None:
                self._dropped.labels(offer.rule.name, value.drop.name.lower()).inc()

    def _offer(self) -> None:
        configuration, found = self.configuration, self.names.found
        custom = custom_offers(configuration.custom, found, self._kinds.resources)
        self.custom = {
            (resource.name, metric): offer for (resource, metric), offer in custom.items()
        }
        self.external = external_offers(configuration.external, found)
        self.revision += 1


def _rule_of(fault: Fault) -> str:
    """Return the rule that a fault is in, such as ``rules[2]`` of ``rules[2].name``."""
    head, bracket, _ = fault.place.path.partition("]")
    return head + bracket
