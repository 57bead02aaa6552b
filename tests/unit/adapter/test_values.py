"""Items and lists of all three versions, as JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.api.resources import DEPLOYMENTS, KNOWN, PODS, Resource
from adapter.api.values import ExternalItem, Item, external_list, metric_list


def item(resource: Resource = PODS, **changed: Any) -> Item:
    fields: dict[str, Any] = {
        "resource": resource, "namespace": "ml", "name": "a", "metric": "m", "value": 87.5,
        "read_at": 1_790_000_000.9, "window_seconds": 15.0, "selector": None,
    }  # fmt: skip
    return Item(**(fields | changed))


def test_an_item_of_the_old_version() -> None:
    assert json.loads(item(selector={"matchLabels": {"gpu": "0"}}).encode("v1beta1")) == {
        "describedObject": {"kind": "Pod", "namespace": "ml", "name": "a", "apiVersion": "v1"},
        "metricName": "m",
        "timestamp": "2026-09-21T14:13:20Z",
        "window": 15,
        "value": "87500m",
        "selector": {"matchLabels": {"gpu": "0"}},
    }


def test_an_item_of_the_new_version() -> None:
    assert json.loads(item(DEPLOYMENTS).encode("v1beta2")) == {
        "describedObject": {
            "kind": "Deployment", "namespace": "ml", "name": "a", "apiVersion": "apps/v1",
        },
        "metric": {"name": "m", "selector": None},
        "timestamp": "2026-09-21T14:13:20Z",
        "windowSeconds": 15,
        "value": "87500m",
    }  # fmt: skip


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
@pytest.mark.parametrize("resource", KNOWN, ids=lambda resource: resource.name)
def test_every_kind_is_described_as_its_objects_describe_themselves(
    version: str, resource: Resource
) -> None:
    """prometheus-adapter #77: objects of the core group had the version ``/v1``."""
    namespace = "ml" if resource.namespaced else ""
    described = json.loads(item(resource, namespace=namespace).encode(version))["describedObject"]
    version_of = f"{resource.group}/v1" if resource.group else "v1"
    assert (described["kind"], described["apiVersion"]) == (resource.kind, version_of)
    assert ("namespace" in described) is resource.namespaced


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_an_instant_has_no_window(version: str) -> None:
    read = json.loads(item(window_seconds=0.0).encode(version))
    assert not {"window", "windowSeconds"} & read.keys()


def test_an_external_item_has_the_name_of_its_metric() -> None:
    """prometheus-adapter #235: the name of an external metric was empty."""
    made = ExternalItem(
        metric="Queue_Depth", labels={"queue": "a"}, value=-1.5, read_at=1_790_000_000.0,
        window_seconds=60.0,
    )  # fmt: skip
    assert json.loads(made.encode()) == {
        "metricName": "Queue_Depth",
        "metricLabels": {"queue": "a"},
        "timestamp": "2026-09-21T14:13:20Z",
        "window": 60,
        "value": "-1500m",
    }


def test_an_external_item_without_labels_has_an_empty_map() -> None:
    read = json.loads(ExternalItem(metric="q", labels={}, value=0.0, read_at=0.0).encode())
    assert read["metricLabels"] == {}
    assert "window" not in read


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_is_never_encoded(value: float) -> None:
    """prometheus-adapter #280, KEDA #7475: NaN became -9223372036854775808m."""
    with pytest.raises(ValueError, match="not a valid quantity"):
        item(value=value).encode("v1beta2")
    with pytest.raises(ValueError, match="not a valid quantity"):
        ExternalItem(metric="q", labels={}, value=value, read_at=0.0).encode()


@pytest.mark.parametrize("items", [0, 1, 3])
def test_a_list_is_never_null(items: int) -> None:
    for version in ("v1beta1", "v1beta2"):
        found = json.loads(metric_list(version, [item().encode(version)] * items))
        assert (found["kind"], len(found["items"])) == ("MetricValueList", items)
        assert found["apiVersion"] == f"custom.metrics.k8s.io/{version}"
    one = ExternalItem(metric="q", labels={}, value=1.0, read_at=0.0).encode()
    found = json.loads(external_list([one] * items))
    assert (found["kind"], len(found["items"])) == ("ExternalMetricValueList", items)
    assert found["apiVersion"] == "external.metrics.k8s.io/v1beta1"


@given(st.text(), st.text(min_size=1), st.text(), st.sampled_from(["v1beta1", "v1beta2"]))
def test_any_names_are_encoded_as_they_are(
    namespace: str, name: str, metric: str, version: str
) -> None:
    read = json.loads(item(namespace=namespace, name=name, metric=metric).encode(version))
    assert read["describedObject"]["name"] == name
    assert read["describedObject"].get("namespace", "") == namespace
    assert (read["metricName"] if version == "v1beta1" else read["metric"]["name"]) == metric
