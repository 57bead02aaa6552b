"""What workloads measure of themselves, as a provider.

To be asked is what makes a pod be scraped. The first question about a pod waits a moment for its
page; all others are answered from memory.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from adapter.api.paths import ALL
from adapter.api.resources import PODS
from adapter.api.status import Reason, Refusal, not_available
from adapter.api.values import Item, metric_list
from adapter.api.warning import listed, warning
from adapter.cluster.pods import Pods
from adapter.offering import not_found
from adapter.provider import Answer, Offer, Question, Tree
from adapter.selection import selected
from adapter.sources.workloads.declaration import Configuration, Type, WorkloadMetric
from adapter.sources.workloads.outcome import Absence, Outcome
from adapter.sources.workloads.scraping import Followed, Scrape, Scraper
from adapter.sources.workloads.target import NoAddressError, NotOfferedError, TargetError
from slicewatch.kube.objects import Pod
from slicewatch.kube.times import timestamp
from slicewatch.suggestion import did_you_mean

# How long the first question about a pod waits for its page.
PATIENCE_SECONDS: Final = 1.0
_ABSENCES: Final = {NotOfferedError: Absence.NOT_OFFERED, NoAddressError: Absence.NO_ADDRESS}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What was found for one pod; ``expires_at`` is on the monotonic clock."""

    pod: Pod
    outcome: Outcome
    followed: Followed | None = None
    expires_at: float = -math.inf
    read_at: float = math.nan


class Workloads:
    """``CustomMetrics`` of pods, from the pages that they offer."""

    def __init__(
        self, pods: Pods, scraper: Scraper, *, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self.revision = 0
        self._pods = pods
        self._scraper = scraper
        self._patience_seconds = patience_seconds
        self._metrics: dict[str, WorkloadMetric] = {}
        self.configure(scraper.configuration)

    def configure(self, configuration: Configuration) -> None:
        """Offer these metrics from now on; nothing happens if they are the same as before."""
        if configuration != self._scraper.configuration:
            self._scraper.configure(configuration)
        self._metrics = {metric.name: metric for metric in configuration.metrics}
        self.revision += 1

    def offers(self) -> Iterable[Offer]:
        """Return the declared metrics."""
        return [Offer(resource=PODS, metric=name) for name in self._metrics]

    async def answer(self, question: Question) -> Answer:
        """Return the fresh values, and have the pods scraped from now on."""
        metric = self._asked(question)
        found = await self._found_all(question, metric)
        as_of = self._as_of()
        fresh = [one for one in found if one.outcome.value is not None]
        if found and not fresh:
            raise _nothing(question, metric, found)
        version = question.path.version
        return Answer(
            body=metric_list(version, [_item(one, metric, version) for one in fresh]),
            expires_at=min((one.expires_at for one in fresh), default=math.inf),
            warning=_warning(found),
            read_at=min((one.read_at for one in fresh), default=math.nan),
            holds=lambda: as_of == self._as_of(),
        )

    async def explain(self, question: Question) -> Tree:
        """Return what is known of every selected pod and its page."""
        metric = self._asked(question)
        found = await self._found_all(question, metric)
        configuration = self._scraper.configuration
        tree: Tree = {
            "kind": "MetricExplanation",
            "metric": metric.name,
            "labelSelector": question.objects.text,
            "source": {
                "series": list(metric.samples),
                "labels": dict(metric.labels),
                "type": str(metric.type),
                "windowSeconds": 0 if metric.type is Type.GAUGE else metric.window_seconds,
                "idle": str(metric.idle),
                "intervalSeconds": configuration.interval_seconds,
            },
            "maxAgeSeconds": metric.max_age_seconds,
            "items": [self._explained(one) for one in found],
        }
        for one in found:
            if one.outcome.absence is Absence.NO_SERIES:
                return tree | {"note": _example(one, metric)}
        return tree

    def _asked(self, question: Question) -> WorkloadMetric:
        metric = self._metrics.get(question.path.metric)
        if metric is None or question.path.resource != PODS.name:
            raise not_found(question.path, "")
        if question.series.text.strip():
            raise Refusal(
                Reason.BadRequest,
                f"the metric {metric.name} is made as it is declared in workloadMetrics, with the "
                "labels, window and combine that are written there: leave the metric's selector "
                "out, or declare another metric",
            )
        return metric

    def _as_of(self) -> tuple[int, int]:
        return self._scraper.revision, self._pods.revision

    async def _found_all(self, question: Question, metric: WorkloadMetric) -> list[_Found]:
        """Have all pods scraped that are asked about, and return what is found of each.

        Waits a moment for pages that have never been read, and then selects anew: a pod may be
        gone that was there when the question came.
        """
        found = [self._found(pod, metric) for pod in self._selected(question)]
        new = [one.followed for one in found if one.followed and not one.followed.tried]
        if new:
            await self._scraper.tried(new, self._patience_seconds)
            found = [self._found(pod, metric) for pod in self._selected(question)]
        return found

    def _selected(self, question: Question) -> Sequence[Pod]:
        return selected(self._pods, question.path, question.objects)

    def _found(self, pod: Pod, metric: WorkloadMetric) -> _Found:
        """Have a pod scraped, and return what its latest page says of a metric."""
        if pod.finished:
            return _lacking(pod, Absence.FINISHED, pod.status.phase)
        try:
            followed = self._scraper.want(pod)
        except TargetError as error:
            return _lacking(pod, _ABSENCES.get(type(error), Absence.UNUSABLE), str(error))
        if followed is None:
            return _lacking(pod, Absence.CROWDED)
        latest, now = followed.latest, self._scraper.monotonic()
        if latest is None or latest.at + metric.max_age_seconds <= now:
            return _Found(pod=pod, outcome=_unread(followed, now), followed=followed)
        return _Found(
            pod=pod,
            outcome=_detailed(latest, followed, metric, now),
            followed=followed,
            expires_at=latest.at + metric.max_age_seconds,
            read_at=latest.read_at,
        )

    def _explained(self, found: _Found) -> Tree:
        namespace, name = found.pod.key
        outcome, now = found.outcome, self._scraper.monotonic()
        tree: Tree = {"namespace": namespace, "name": name, "value": outcome.value}
        if outcome.absence is None:
            tree["timestamp"] = timestamp(int(found.read_at))
            tree["windowSeconds"] = round(outcome.window_seconds, 3)
            tree["series"] = outcome.series
        else:
            tree["absent"] = outcome.absence.name
            tree["why"] = f"no value, since {_why(outcome)}"
        if found.followed is not None:
            tree["page"] = _page(found.followed, now)
        return tree


def _page(followed: Followed, now: float) -> Tree:
    tree: Tree = {"url": str(followed.target.url), "fault": followed.fault}
    if followed.latest is not None:
        tree["ageSeconds"] = round(now - followed.latest.at, 3)
        tree["bytes"] = followed.latest.size_bytes
    return tree


def _unread(followed: Followed, now: float) -> Outcome:
    if followed.fault:
        return Outcome(absence=Absence.UNREADABLE, detail=followed.fault)
    if followed.latest is None:
        return Outcome(absence=Absence.NOT_READ)
    return Outcome(absence=Absence.STALE, detail=f"{now - followed.latest.at:.1f} s old")


def _detailed(latest: Scrape, followed: Followed, metric: WorkloadMetric, now: float) -> Outcome:
    """Return an outcome with what only a reader wants to know of its absence."""
    # A page that was read for another configuration says nothing of the metric.
    outcome = latest.outcomes.get(metric.name, Outcome(absence=Absence.NOT_READ))
    if outcome.absence is Absence.ONE_PAGE:
        detail = f"first values in {max(0.0, followed.due_at - now):.0f} s"
    elif outcome.absence is Absence.NO_SERIES:
        detail = f"no {' or '.join(metric.samples)}"
    else:
        return outcome
    return Outcome(absence=outcome.absence, detail=detail)


def _lacking(pod: Pod, absence: Absence, detail: str = "") -> _Found:
    return _Found(pod=pod, outcome=Outcome(absence=absence, detail=detail))


def _why(outcome: Outcome) -> str:
    return f"{outcome.absence}" + (f" ({outcome.detail})" if outcome.detail else "")


def _item(found: _Found, metric: WorkloadMetric, version: str) -> bytes:
    """Return the value of a pod as JSON, made once for each page."""
    kept = {} if found.followed is None else found.followed.items
    made = kept.get((metric.name, version))
    if made is None:
        if found.outcome.value is None:
            raise ValueError(f"there is no value of {found.pod.key}")
        namespace, name = found.pod.key
        made = kept[metric.name, version] = Item(
            resource=PODS,
            namespace=namespace,
            name=name,
            metric=metric.name,
            value=found.outcome.value,
            read_at=found.read_at,
            window_seconds=found.outcome.window_seconds,
            selector=None,
        ).encode(version)
    return made


def _nothing(question: Question, metric: WorkloadMetric, found: Sequence[_Found]) -> Refusal:
    """Return the refusal of a question for which no pod has a fresh value.

    503 if waiting may help, 404 if not.
    """
    kinds = Counter(one.outcome.absence for one in found)
    examples = {one.outcome.absence: one for one in reversed(found)}
    causes = "; ".join(
        f"{n} since {_example(examples[why], metric)}" for why, n in kinds.most_common()
    )
    message = f"{len(found)} pods match, none has a fresh value: {causes}"
    if question.path.name != ALL:
        message = f"no value, since {_example(found[0], metric)}"
    if any(why is not None and why.passing for why in kinds):
        return not_available(metric.name, message)
    return not_found(question.path, f": {message}")


def _example(found: _Found, metric: WorkloadMetric) -> str:
    outcome = found.outcome
    detail = f": {outcome.detail}{_hint(found, metric)}" if outcome.detail else ""
    return f"{outcome.absence} ({found.pod.metadata.name}{detail})"


def _hint(found: _Found, metric: WorkloadMetric) -> str:
    """Suggest a series of a page that lacks the declared one. Costly: for one pod of many."""
    if found.outcome.absence is not Absence.NO_SERIES or found.followed is None:
        return ""
    latest = found.followed.latest
    return did_you_mean(metric.samples[-1], sorted(latest.names)) if latest else ""


def _warning(found: Sequence[_Found]) -> str:
    """Name the pods that should have a value, and have none."""
    lacking = [
        one
        for one in found
        if one.outcome.value is None and one.outcome.absence is not Absence.FINISHED
    ]
    if not lacking:
        return ""
    named = listed(one.pod.metadata.name for one in lacking)
    return warning(f"{len(lacking)} of {len(found)} pods have no fresh value: {named}")
