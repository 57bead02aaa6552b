"""Why a rule's answer is what it is: the query, what came back, and what was left out. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from adapter.cluster.pods import Pods
from adapter.provider import ExternalQuestion, Question, Tree
from adapter.sources.prometheus.offers import CustomOffer, ExternalOffer
from adapter.sources.prometheus.readings import Reading
from adapter.sources.prometheus.values import Serving, Value
from slicewatch.kube.times import timestamp

# A question about a thousand pods is explained by the first of those without a value.
MOST_SHOWN: Final = 500


def of_reading(offer: CustomOffer | ExternalOffer, reading: Reading, serving: Serving) -> Tree:
    """Return what was asked, of whom, and what came back."""
    tree: Tree = {
        "kind": "MetricExplanation",
        "metric": offer.metric,
        "source": "prometheus",
        "rule": str(offer.rule.place),
        "backend": reading.query.backend,
        "query": reading.query.text,
        "timesQuery": reading.query.times,
        "evaluatedAt": timestamp(int(reading.evaluated_at)),
        "ageSeconds": round(serving.now - reading.asked_at, 3),
        "durationSeconds": round(reading.duration_seconds, 3),
        "maxAgeSeconds": serving.max_age_seconds,
        "series": len(reading.result.samples),
        "nativeHistograms": reading.result.histograms,
        "warnings": list(reading.result.warnings),
    }
    if reading.times is None:
        tree["ageOfSamples"] = f"unknown: {reading.times_fault}"
    return tree


def of_objects(
    offer: CustomOffer,
    question: Question,
    found: Mapping[str, Value],
    others: Sequence[str],
) -> Tree:
    """Return what became of each object, and the names that nobody asks for."""
    return {
        "objectLabel": offer.label,
        "queryMode": str(offer.rule.mode),
        "labelSelector": question.objects.text,
        "metricLabelSelector": question.series.text,
        "items": [{"name": name} | _value(one) for name, one in _shown(found)],
        "notAskedFor": list(others[:MOST_SHOWN]),
    }


def of_series(question: ExternalQuestion, found: Mapping[str, Value]) -> Tree:
    """Return what became of each series of an external metric."""
    return {
        "metricLabelSelector": question.series.text,
        "items": [{"labels": dict(one.labels)} | _value(one) for _, one in _shown(found)],
    }


def nobody(question: Question, offer: CustomOffer, pods: Pods) -> Tree:
    """Return the explanation of a question about no pod: nothing was asked of a backend."""
    namespace = question.path.namespace
    here = pods.in_namespace(namespace)
    chosen = pods.select(namespace, question.objects)
    note = f"namespace {namespace} has no pods"
    if chosen:
        note = f"all {len(chosen)} pods that match have finished"
    elif here:
        note = f"none of the {len(here)} pods of the namespace matches {question.objects.text!r}"
    return {
        "kind": "MetricExplanation",
        "metric": offer.metric,
        "source": "prometheus",
        "rule": str(offer.rule.place),
        "labelSelector": question.objects.text,
        "items": [],
        "note": note,
        "namespacesWithPods": sorted(pods.namespaces)[:MOST_SHOWN],
    }


def _shown(found: Mapping[str, Value]) -> list[tuple[str, Value]]:
    return sorted(found.items(), key=lambda item: item[1].value is not None)[:MOST_SHOWN]


def _value(found: Value) -> Tree:
    # A NaN is no JSON.
    tree: Tree = {"value": found.value, "said": str(found.raw) if found.labels else None}
    if found.read_at:
        tree["timestamp"] = timestamp(int(found.read_at))
        tree["dated"] = found.dated
    if found.drop is not None:
        tree["absent"] = found.drop.name
        tree["why"] = f"no value, since {found.drop}"
    return tree
