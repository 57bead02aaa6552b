"""What the benchmark of rules gives to Prometheus, and what it reads there."""

import gzip
import json
from urllib.parse import parse_qs, urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families

from adapter.sources.prometheus.backend import BackendConfig
from adapter.sources.prometheus.configuration import configuration
from bench import population, promql
from bench.errors import BenchError
from bench.prometheus import instant_queries, pages, scrapes

OWN_PAGE = """\
# HELP prometheus_http_requests_total Counter of HTTP requests.
# TYPE prometheus_http_requests_total counter
prometheus_http_requests_total{code="200",handler="/api/v1/query"} 40
prometheus_http_requests_total{code="400",handler="/api/v1/query"} 2
prometheus_http_requests_total{code="200",handler="/api/v1/query_range"} 900
prometheus_http_requests_total{code="200",handler="/metrics"} 7
"""


@pytest.fixture(scope="module")
def shown():
    return pages()


def test_instant_queries_are_counted_whatever_became_of_them():
    assert instant_queries(OWN_PAGE) == 42


def test_a_page_without_that_count_is_no_measurement():
    with pytest.raises(BenchError, match="counts no requests"):
        instant_queries(OWN_PAGE.replace("/api/v1/query", "/api/v1/labels"))


def test_every_pod_has_one_series_of_the_rule_on_some_page(shown):
    names = []
    for page in shown.values():
        assert page.headers["Content-Encoding"] == "gzip"
        text = gzip.decompress(page.body).decode()
        names += [
            sample.labels["pod"]
            for family in text_string_to_metric_families(text)
            if family.name == "DCGM_FI_DEV_GPU_UTIL"
            for sample in family.samples
            if "pod" in sample.labels
        ]
    assert sorted(names) == sorted(pod.name for pod in population.pods())


def test_every_page_is_scraped_under_the_name_of_its_node(shown):
    (job,) = json.loads(scrapes("127.0.0.1:9"))["scrape_configs"]
    places = [target["labels"] for target in job["static_configs"]]
    assert {place["__metrics_path__"] for place in places} == set(shown)
    assert len({place["instance"] for place in places}) == len(shown)
    assert {t for target in job["static_configs"] for t in target["targets"]} == {"127.0.0.1:9"}


def test_the_rule_is_one_that_the_adapter_takes():
    backend = BackendConfig(name="default", url="http://127.0.0.1:9")
    found = configuration([("rules.yaml", promql.RULES)], backend)
    assert (found.faults, len(found.custom)) == ((), 1)


def test_each_autoscaler_has_pods_of_its_own():
    owners = [m["metadata"]["labels"][promql.LABEL] for m in promql.manifests()]
    assert set(owners) == {str(number) for number in range(promql.AUTOSCALERS)}
    sizes = {owners.count(owner) for owner in set(owners)}
    assert max(sizes) - min(sizes) <= 1


def test_a_question_names_metric_and_selector_in_a_url():
    url = urlsplit(population.question(promql.METRIC, f"{promql.LABEL}=7"))
    assert url.path.endswith(f"/namespaces/{population.NAMESPACE}/pods/%2A/{promql.METRIC}")
    assert parse_qs(url.query) == {"labelSelector": [f"{promql.LABEL}=7"]}
