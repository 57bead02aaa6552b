"""What a backend knows of the rules that are checked: labels, scrape intervals, results."""

import asyncio
import dataclasses
import math
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar
from urllib.parse import urlsplit

from adapter.sources.prometheus.backend import Backend, BackendConfig
from adapter.sources.prometheus.credentials import Access
from adapter.sources.prometheus.fault import BackendError
from advisor.rules.questions import result_questions, series_questions, trial_questions
from advisor.rules.subject import ResultFacts, SeriesFacts, Subject
from slicewatch.promrules.faults import Place

SAMPLES_OVER_SECONDS: Final = 600
"""How far back samples are counted, to see how often they come."""
# With fewer, a series that has just begun looks like one that is rarely scraped.
FEWEST_SAMPLES: Final = 5

T = TypeVar("T")


def backend_of(url: str, token_file: str, ca_file: str) -> Backend:
    """Return a client of a Prometheus-compatible API.

    Raises:
        ValueError: the URL is none, or has credentials in it.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{url!r} is no address such as http://prometheus:9090")
    if parts.username is not None:
        raise ValueError("credentials in the URL would be seen by others; use --token-file")
    access = Access(token_file=token_file, ca_file=ca_file)
    return Backend(BackendConfig(name=parts.netloc, url=url.rstrip("/"), access=access))


async def with_facts(subject: Subject, backend: Backend, now: float) -> Subject:
    """Return the subject with what the backend knows.

    Args:
        subject: what was read from files.
        backend: who is asked.
        now: seconds since the epoch.

    Raises:
        BackendError: it cannot be asked at all. A question that it refuses is no error.
    """
    asking = _Asking(backend, now)
    await asking.all(trial_questions(subject), asking.result)
    return dataclasses.replace(
        subject,
        series=await asking.all(series_questions(subject), asking.series),
        results=await asking.all(result_questions(subject), asking.result),
        refusals=asking.refusals,
    )


class _Asking:
    """Questions to a backend at one time, and what it refuses."""

    def __init__(self, backend: Backend, now: float) -> None:
        self.refusals: dict[Place, str] = {}
        self._backend = backend
        self._now = now

    async def all(
        self, questions: Iterable[tuple[Place, str]], ask: Callable[[str], Awaitable[T]]
    ) -> dict[Place, T]:
        """Return the answers by place, without those that were refused."""
        answers = {}
        for place, text in questions:
            try:
                answers[place] = await ask(text)
            except BackendError as error:
                if not error.fault.of_the_query:
                    raise
                self.refusals.setdefault(place, error.detail)
        return answers

    async def series(self, match: str) -> SeriesFacts:
        """Return what the series of a selector look like."""
        start = self._now - SAMPLES_OVER_SECONDS
        labels = await self._backend.label_names(match, start, self._now)
        count = f"max(count_over_time({match}[{SAMPLES_OVER_SECONDS}s]))"
        samples = (await self._backend.query(count, self._now)).samples
        most = max((sample.value for sample in samples), default=0.0)
        seconds = SAMPLES_OVER_SECONDS / most if most >= FEWEST_SAMPLES else None
        return SeriesFacts(labels=frozenset(labels), interval_seconds=seconds)

    async def result(self, query: str) -> ResultFacts:
        """Return what a query comes to."""
        samples = (await self._backend.query(query, self._now)).samples
        finite = [sample.value for sample in samples if math.isfinite(sample.value)]
        return ResultFacts(series=len(samples), largest=max(finite, default=None))


def asked_now(subject: Subject, backend: Backend, now: float) -> Subject:
    """Return ``with_facts``, and close the connections."""

    async def ask() -> Subject:
        try:
            return await with_facts(subject, backend, now)
        finally:
            await backend.close()

    return asyncio.run(ask())
