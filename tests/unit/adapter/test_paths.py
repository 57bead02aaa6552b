"""Which object and metric a URL is about."""

from urllib.parse import quote

import pytest

from adapter.api import request
from adapter.api.paths import DiscoveryPath, ExternalPath, Kind, MetricPath, parse
from adapter.api.status import Refusal

CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"


@pytest.mark.parametrize(
    ("path", "namespace", "kind", "name"),
    [
        ("/namespaces/ml/pods/*/m", "ml", Kind.POD, "*"),
        ("/namespaces/ml/pods/%2A/m", "ml", Kind.POD, "*"),
        ("/namespaces/ml/pod/*/m", "ml", Kind.POD, "*"),
        ("/namespaces/ml/pods/a/m", "ml", Kind.POD, "a"),
        ("/namespaces/ml/pods/a/m/", "ml", Kind.POD, "a"),
        ("/nodes/n1/m", "", Kind.NODE, "n1"),
        ("/node/n1/m", "", Kind.NODE, "n1"),
        ("/nodes/%2a/m", "", Kind.NODE, "*"),
        ("/namespaces/ml/nodes/n1/m", "", Kind.NODE, "n1"),
        ("/namespaces/ml/metrics/m", "", Kind.NAMESPACE, "ml"),
        ("/namespaces/ml/services/s/m", "ml", None, "s"),
        ("/namespaces/ml/deployments.apps/d/m", "ml", None, "d"),
        ("/persistentvolumes/p/m", "", None, "p"),
        ("/namespaces/ml/persistentvolumes/p/m", "ml", None, "p"),
        ("/namespaces/*/metrics/m", "", Kind.NAMESPACE, "*"),
        ("/namespaces/ml/pods/status/m", "ml", Kind.POD, "status"),
    ],
)
def test_a_metric_path_names_an_object(
    path: str, namespace: str, kind: Kind | None, name: str
) -> None:
    found = parse(CUSTOM + path)
    assert isinstance(found, MetricPath)
    assert (found.namespace, found.kind, found.name) == (namespace, kind, name)
    assert (found.version, found.metric) == ("v1beta2", "m")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/apis", DiscoveryPath()),
        ("/apis/", DiscoveryPath()),
        ("/apis/custom.metrics.k8s.io", DiscoveryPath(group="custom.metrics.k8s.io")),
        (EXTERNAL, DiscoveryPath(group="external.metrics.k8s.io", version="v1beta1")),
        (f"{EXTERNAL}/namespaces/ml/q", ExternalPath(namespace="ml", metric="q")),
        (f"{EXTERNAL}/namespaces/ml/a%7Cb", ExternalPath(namespace="ml", metric="a|b")),
        (f"{EXTERNAL}/namespaces/ml/a|b", ExternalPath(namespace="ml", metric="a|b")),
        (f"{EXTERNAL}/namespaces/ml/v:q", ExternalPath(namespace="ml", metric="v:q")),
        (f"{EXTERNAL}/namespaces/ml/status", ExternalPath(namespace="ml", metric="status")),
    ],
)
def test_other_paths_are_recognized(path: str, expected: object) -> None:
    assert parse(path) == expected


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/", 404),
        ("/blah", 404),
        ("/apis/metrics.k8s.io", 404),
        ("/apis/custom.metrics.k8s.io/v1", 404),
        ("/apis/external.metrics.k8s.io/v1beta2", 404),
        (f"{CUSTOM}/nodes/foo", 404),
        (f"{CUSTOM}/namespaces/ns/pods/bar", 404),
        (f"{CUSTOM}/blah", 404),
        (f"{CUSTOM}/pods/*/m", 404),
        (f"{CUSTOM}/namespaces/ns/namespaces/x/m", 404),
        (f"{CUSTOM}/namespaces/ns/pods/a/m/extra", 404),
        (f"{CUSTOM}/namespaces//pods/a/m", 404),
        (f"{CUSTOM}/namespaces/ns/pods/a%2Fb/m", 404),
        (f"{CUSTOM}/namespaces/default/pods", 400),
        (f"{CUSTOM}/namespaces/*/pods/*/m", 400),
        (f"{CUSTOM}/namespaces/%2A/services/s/m", 400),
        (f"{CUSTOM}/foo", 404),
        (f"{CUSTOM}/m/n/o/p", 404),
        ("/apis/Custom.Metrics.k8s.io", 404),
        ("/api/v1/pods", 404),
        ("/metrics", 404),
        (f"{EXTERNAL}/metric", 404),
        (f"{EXTERNAL}/namespaces/foo", 404),
        (f"{EXTERNAL}/namespaces/foo/a/b", 404),
        (f"{EXTERNAL}/namespaces/foo/a%2Fb", 404),
        ("/openapi/v2", 404),
    ],
)
def test_what_is_not_served_is_refused_with_its_path(path: str, code: int) -> None:
    with pytest.raises(Refusal) as caught:
        parse(path)
    assert caught.value.code == code
    assert path in caught.value.message


PODS = f"{CUSTOM}/namespaces/ml/pods"


def test_query_parameters_are_unquoted_and_unknown_ones_ignored() -> None:
    found = request.parse(
        f"{PODS}/*/m?labelSelector=app%3Dx%2Ctier+in+%28a%2Cb%29&timeout=5s&limit=500"
        "&resourceVersion=0&metricLabelSelector=gpu%3D0&explain=true"
    )
    assert found.objects.matches({"app": "x", "tier": "b"})
    assert found.series.matches({"gpu": "0"})
    assert found.explain
    assert found.pretty is None


@pytest.mark.parametrize(
    ("query", "explains"),
    [("", False), ("?explain=false", False), ("?explain=0", False), ("?explain", False),
     ("?explain=1", True), ("?explain=true", True)],
)  # fmt: skip
def test_an_explanation_is_requested(query: str, explains: bool) -> None:
    assert request.parse(f"{PODS}/*/m{query}").explain is explains


@pytest.mark.parametrize(
    "query",
    [
        "labelSelector=x%3Da%7C%7Cy",
        "metricLabelSelector=x%3Da%7C%7Cy",
        "metricLabelSelector=x%3E5",
        "fieldSelector=spec.nodeName%3Dn1",
        "fieldSelector=metadata.name%3Db",
    ],
)
def test_a_malformed_parameter_is_a_bad_request_that_names_it(query: str) -> None:
    with pytest.raises(Refusal) as caught:
        request.parse(f"{PODS}/a/m?{query}")
    assert caught.value.code == 400
    assert query.partition("=")[0] in caught.value.message


@pytest.mark.parametrize(
    "metric", ["vllm:num_requests_waiting", "a|b", "status", "finalize", "é", "a b", "*"]
)
def test_a_metric_may_have_any_name_that_a_path_can_hold(metric: str) -> None:
    for text in (quote(metric, safe=""), quote(metric, safe=":|*")):
        found = parse(f"{CUSTOM}/namespaces/ml/pods/*/{text}")
        assert isinstance(found, MetricPath)
        assert found.metric == metric


# The paths by which custom-metrics-apiserver tests its own installer.
@pytest.mark.parametrize(
    ("path", "found"),
    [
        (f"{CUSTOM}/nodes/foo", False),
        (f"{CUSTOM}/namespaces/ns/pods/bar", False),
        (f"{CUSTOM}/blah", False),
        (f"{CUSTOM}/namespaces/ns/metrics", False),
        (f"{CUSTOM}/nodes/foo/bar", True),
        (f"{CUSTOM}/nodes/*/bar", True),
        (f"{CUSTOM}/namespaces/ns/pods/foo/bar", True),
        (f"{CUSTOM}/namespaces/ns/pods/*/bar", True),
        (f"{CUSTOM}/namespaces/ns/metrics/bar", True),
        (f"{CUSTOM}/persistentvolumes/foo/bar", True),
        (f"{CUSTOM}/namespaces/ns/services/foo/bar", True),
        (f"{EXTERNAL}/metric", False),
        (f"{EXTERNAL}/namespaces/foo", False),
        (f"{EXTERNAL}/namespaces/foo/bar/baz", False),
        (f"{EXTERNAL}/namespaces/foo/bar", True),
    ],
)
def test_exactly_the_paths_of_the_protocol_are_about_a_metric(path: str, found: bool) -> None:
    if found:
        assert isinstance(parse(path), MetricPath | ExternalPath)
        return
    with pytest.raises(Refusal) as caught:
        parse(path)
    assert caught.value.code in {400, 404}


@pytest.mark.parametrize("parameter", ["labelSelector", "metricLabelSelector"])
def test_a_comparison_cannot_select_series(parameter: str) -> None:
    metric = f"{EXTERNAL}/namespaces/ml/q" if parameter == "labelSelector" else f"{PODS}/*/m"
    with pytest.raises(Refusal, match="> and < cannot select metrics; use = or in") as caught:
        request.parse(f"{metric}?{parameter}=x%3E5")
    assert (caught.value.code, caught.value.field) == (400, parameter)


def test_a_comparison_can_select_pods() -> None:
    assert request.parse(f"{PODS}/*/m?labelSelector=x%3E5").objects.matches({"x": "6"})


def test_a_field_selector_may_repeat_the_name() -> None:
    assert request.parse(f"{PODS}/a/m?fieldSelector=metadata.name%3Da").explain is False
