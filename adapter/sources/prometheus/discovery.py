"""What rules leave open, asked of their backends from time to time: names of series and labels.

Only rules whose metrics cannot be told from the configuration are asked for, and only for names:
prometheus-adapter fetches every series of every rule. A configured metric needs none of this, and
is offered whether or not it has values.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from adapter.sources.prometheus.backends import Backends
from adapter.sources.prometheus.fault import BackendError
from adapter.sources.prometheus.offers import NOTHING, Found
from slicewatch.promrules.rule import CustomRule, ExternalRule
from slicewatch.service import logs

log = logs.logger(__name__)

# More metrics than this make discovery itself too long for clients.
MOST_NAMES: Final = 1000
MOST_AT_ONCE: Final = 4

Rule = CustomRule | ExternalRule


class Names:
    """What backends know now, by the names of rules.

    Args:
        window_seconds: series that ended longer ago are no longer known.
    """

    def __init__(
        self, backends: Backends, wall: Callable[[], float], *, window_seconds: float
    ) -> None:
        self._backends = backends
        self._wall = wall
        self._window_seconds = window_seconds
        self.found: dict[str, Found] = {}
        self.faults: dict[str, str] = {}

    async def refresh(self, rules: Iterable[Rule], default: str) -> bool:
        """Ask for every rule that leaves something open; tell whether anything is new.

        A rule whose backend cannot be asked keeps what was known, and costs no other.
        """
        open_rules = {rule.name: rule for rule in rules if rule.discovery is not None}
        before = self.found
        limit = asyncio.Semaphore(MOST_AT_ONCE)
        answers = await asyncio.gather(
            *(self._asked(rule, rule.backend or default, limit) for rule in open_rules.values())
        )
        self.found = dict(zip(open_rules, answers, strict=True))
        self.faults = {name: why for name, why in self.faults.items() if name in open_rules}
        return self.found != before

    async def _asked(self, rule: Rule, backend: str, limit: asyncio.Semaphore) -> Found:
        async with limit:
            try:
                found = await self._ask(rule, backend)
            except BackendError as error:
                if self.faults.get(rule.name) != str(error):
                    log.warning("names are not known", rule=rule.name, error=str(error))
                self.faults[rule.name] = str(error)
                return self.found.get(rule.name, NOTHING)
        self.faults.pop(rule.name, None)
        return found

    async def _ask(self, rule: Rule, name: str) -> Found:
        wanted = rule.discovery
        if wanted is None:
            return NOTHING
        backend, now = self._backends.get(name), self._wall()
        series: tuple[str, ...] = ()
        labels: tuple[str, ...] = ()
        if wanted.names:
            series = await backend.series_names(wanted.match, now)
        if wanted.labels:
            labels = await backend.label_names(wanted.match, now - self._window_seconds, now)
        if len(series) > MOST_NAMES:
            log.warning("too many series", rule=rule.name, found=len(series), used=MOST_NAMES)
        return Found(series=series[:MOST_NAMES], labels=labels)
