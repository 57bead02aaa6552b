"""What is said where a rule has no value: the cause, in the message that people read."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from adapter.api.paths import ExternalPath, MetricPath
from adapter.api.quantity import LARGEST
from adapter.api.status import Reason, Refusal, not_available
from adapter.api.warning import MOST_NAMED, listed, warning
from adapter.offering import not_found
from adapter.sources.prometheus.offers import CustomOffer, ExternalOffer
from adapter.sources.prometheus.readings import Reading
from adapter.sources.prometheus.values import Drop, Value
from slicewatch.promrules.matchers import UnsupportedRequirementError
from slicewatch.promrules.rule import CustomRule, ExternalRule
from slicewatch.promrules.template_nodes import TemplateError


@contextmanager
def rendered(rule: CustomRule | ExternalRule) -> Iterator[None]:
    """Refuse what cannot be made a query of.

    Raises:
        Refusal: 400 for the selector, 503 for the rule.
    """
    try:
        yield
    except UnsupportedRequirementError as error:
        raise Refusal(Reason.BadRequest, f"the selector of series: {error}") from error
    except TemplateError as error:
        text = f"the rule {rule.name} makes no query of this question: {error}"
        raise Refusal(Reason.ServiceUnavailable, text) from error


def no_value(
    path: MetricPath,
    offer: CustomOffer,
    reading: Reading,
    found: Mapping[str, Value],
    hint: str,
) -> Refusal:
    """Return the refusal for objects of which none has a value: 503 if waiting may help."""
    samples = reading.result.samples
    if not samples:
        return not_found(path, f"; {nothing(offer, reading, path.namespace)}")
    if not any(offer.label in sample.labels for sample in samples):
        has = ", ".join(sorted(samples[0].labels)) or "none"
        return not_found(
            path,
            f"; the query result has no label {offer.label!r} (it has {has}), so that no value "
            f"belongs to an object: end the query of the rule {offer.rule.name} with "
            "by (<<.GroupBy>>)",
        )
    text = (
        f"{len(found)} {offer.resource.plural} match, none has a value: {causes(found, reading)}"
    )
    if any(one.drop is not None and one.drop.passing for one in found.values()):
        return not_available(path.metric, text)
    return not_found(path, f"; {text}{hint}")


def no_external_value(
    path: ExternalPath, offer: ExternalOffer, reading: Reading, found: Mapping[str, Value]
) -> Refusal:
    """Return the same for an external metric, which has no objects."""
    if not found:
        return Refusal(
            Reason.NotFound,
            f"the server could not find the external metric {path.metric}; "
            + nothing(offer, reading, path.namespace),
        )
    return not_available(
        path.metric, f"{len(found)} series, none has a value: {causes(found, reading)}"
    )


def nothing(offer: CustomOffer | ExternalOffer, reading: Reading, namespace: str) -> str:
    """Say that a query makes no series at all."""
    if reading.result.histograms:
        return (
            f"the query of the rule {offer.rule.name} makes native histograms, which are no "
            "numbers: take histogram_quantile or histogram_avg of them"
        )
    asked = offer.rule.namespace.of(namespace or None)
    where = f" in namespace {asked}" if asked else ""
    return (
        f"the backend {reading.query.backend} has no series for the query of the rule "
        f"{offer.rule.name}{where}; explain=true shows the query"
    )


def causes(found: Mapping[str, Value], reading: Reading) -> str:
    """Say how many have no value for which reason, each with an example."""
    kinds: Counter[Drop] = Counter()
    examples: dict[Drop, str] = {}
    for name, one in found.items():
        if one.drop is not None:
            kinds[one.drop] += 1
            examples.setdefault(one.drop, _example(name, one, reading))
    return "; ".join(f"{n} since {why} ({examples[why]})" for why, n in kinds.most_common())


def _example(name: str, found: Value, reading: Reading) -> str:
    if found.drop is not Drop.STALE:
        return name
    return f"{name}: {reading.evaluated_at - found.read_at:.0f} s old when asked for"


def missing(whose: str, found: Mapping[str, Value], reading: Reading) -> str:
    """Return the ``Warning`` header for what is missing or changed; empty for nothing."""
    lacking = [name for name, one in found.items() if one.value is None]
    clamped = [name for name, one in found.items() if one.clamped]
    parts = []
    if lacking:
        parts.append(f"{len(lacking)} of {len(found)} {whose} have no value: {listed(lacking)}")
    if clamped:
        parts.append(
            f"{len(clamped)} values exceed {LARGEST:g}, where autoscalers overflow, and are "
            f"limited to it: {listed(clamped)}"
        )
    parts += reading.result.warnings[:MOST_NAMED]
    return warning("; ".join(parts))
