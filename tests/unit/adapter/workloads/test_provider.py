"""Workloads' own metrics, as an autoscaler asks for them at the API port."""

import asyncio
import json

import msgspec
import pytest

from adapter.sources.workloads.document import of_section
from adapter.sources.workloads.provider import Workloads
from slicewatch.service.exposition import Format
from testbed.front_proxy import ROOT


def counted(requests, seconds):
    return (
        f"requests_total {requests}\ntook_seconds_sum {seconds}\ntook_seconds_count {requests}\n"
    )


async def explained(scene, metric, **query):
    answer = await scene.ask(scene.path(metric, explain="true", **query))
    return json.loads(answer.body)


async def test_a_gauge_is_served_as_soon_as_it_has_been_read(scene):
    """dcgm-exporter #301: a queue says when to scale, where utilization is saturated by one request."""
    scene.add("a", "vllm:num_requests_waiting 3\n")
    scene.add("b", 'vllm:num_requests_waiting{engine="0"} 4.5\n')
    await scene.ask.refusal(scene.path("waiting"), 503)
    await scene.scrape()
    assert await scene.ask.values(scene.path("waiting")) == {"a": "3", "b": "4500m"}
    assert await scene.ask.values(scene.path("waiting", "b")) == {"b": "4500m"}


async def test_an_item_says_when_its_page_was_read_and_over_which_time(scene):
    scene.add("a", counted(100, 10))
    await scene.ask(scene.path("rps"))
    await scene.scrape()
    scene.pages["10.0.0.1"] = counted(160, 22)
    await scene.scrape(7.5)
    scene.port.pass_seconds(3)
    body = json.loads((await scene.ask(scene.path("latency_ms"))).body)
    (item,) = body["items"]
    assert item["value"] == "200"
    assert (item["timestamp"], item["windowSeconds"]) == ("2026-09-21T14:15:07Z", 8)
    assert item["describedObject"] == {
        "kind": "Pod", "namespace": "ml", "name": "a", "apiVersion": "v1"
    }  # fmt: skip
    assert await scene.ask.values(scene.path("rps")) == {"a": "8"}


async def test_the_first_answer_about_growth_says_when_there_will_be_values(scene):
    """prometheus-adapter #532: whoever waits for a first value is told for how long."""
    scene.add("a", counted(100, 10))
    await scene.ask(scene.path("rps"))
    await scene.scrape()
    message = await scene.ask.refusal(scene.path("rps"), 503)
    assert "growth needs a second scrape (a: first values in " in message
    seconds = int(message.split("first values in ")[1].split(" s")[0])
    assert 2 <= seconds <= 8
    assert await scene.scrape(7.5) == 1
    assert await scene.ask.values(scene.path("rps")) == {"a": "0"}


async def test_the_first_question_waits_for_the_page(scene):
    """prometheus-adapter #532: a value that can be had at once is not answered later."""
    scene.add("a", "vllm:num_requests_waiting 3\n")
    scraper = scene.scraper_of()
    patient = Workloads(scene.port.pods, scraper, patience_seconds=20)
    patient.configure(
        of_section(
            {
                "metrics": [
                    {"name": "queue", "series": "vllm:num_requests_waiting", "type": "gauge"}
                ]
            }
        )
    )
    scene.port.offer(patient)
    async with scene.port.serving(), asyncio.TaskGroup() as group:
        running = group.create_task(scraper.run())
        async with scene.port.client(scene.port.front_proxy()) as client:
            answer = await scene.port.ask(scene.path("queue"), client=client)
        running.cancel()
    assert json.loads(answer.body)["items"][0]["value"] == "3"


async def test_only_pods_that_somebody_asked_about_are_scraped_and_only_for_a_while(scene):
    scene.add("a", "vllm:num_requests_waiting 3\n")
    scene.add("b", "vllm:num_requests_waiting 3\n")
    assert await scene.scrape() == 0
    await scene.ask(scene.path("waiting", "a"))
    assert await scene.scrape() == 1
    assert scene.fetched == [("http://10.0.0.1:8000/metrics", True)]
    for _ in range(15):
        assert await scene.scrape(7.5) == 1
    assert await scene.scrape(7.5) == 0
    assert await scene.scrape(7.5) == 0


async def test_a_deleted_pod_is_gone_at_once(scene):
    """kube-metrics-adapter #97: values of deleted pods must not be averaged in."""
    scene.add("a", "vllm:num_requests_waiting 3\n")
    gone = scene.add("b", "vllm:num_requests_waiting 90\n")
    await scene.ask(scene.path("waiting"))
    await scene.scrape()
    assert await scene.ask.values(scene.path("waiting")) == {"a": "3", "b": "90"}
    scene.port.pods.changed(gone, None)
    assert await scene.ask.values(scene.path("waiting")) == {"a": "3"}
    assert await scene.scrape(7.5) == 1


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_finished_pod_is_neither_served_nor_scraped(scene, phase):
    """kubernetes #141298, dcgm-exporter #140 and #16: a finished pod has no values, and delays nothing."""
    scene.add("a", "vllm:num_requests_waiting 3\n")
    scene.add("b", "vllm:num_requests_waiting 90\n", ip="10.0.0.2")
    await scene.ask(scene.path("waiting"))
    await scene.scrape()
    scene.add("b", "vllm:num_requests_waiting 90\n", ip="10.0.0.2", phase=phase)
    answer = await scene.ask(scene.path("waiting"))
    assert [i["describedObject"]["name"] for i in json.loads(answer.body)["items"]] == ["a"]
    assert "Warning" not in answer.headers
    assert await scene.scrape(7.5) == 1


@pytest.mark.parametrize("change", [{"uid": "another"}, {"ip": "10.0.0.9"}, {"path": "/other"}])
async def test_another_pod_of_the_same_name_inherits_nothing(scene, change):
    """kube-metrics-adapter #97: what was read of one pod is never served of another."""
    same = {"ip": "10.0.0.1"}
    scene.add("a", counted(100, 10), **same)
    await scene.ask(scene.path("rps"))
    await scene.scrape()
    await scene.scrape(7.5)
    assert await scene.ask.values(scene.path("rps")) == {"a": "0"}
    scene.add("a", counted(90_000, 10), **same | change)
    assert "has not been read yet" in await scene.ask.refusal(scene.path("rps"), 503)
    await scene.scrape()
    assert "second scrape" in await scene.ask.refusal(scene.path("rps"), 503)


async def test_a_pod_of_the_same_name_is_not_scraped_before_somebody_asks_about_it(scene):
    scene.add("a", counted(100, 10), ip="10.0.0.1")
    await scene.ask(scene.path("rps"))
    assert await scene.scrape() == 1
    scene.add("a", counted(100, 10), ip="10.0.0.1", uid="another")
    assert await scene.scrape(7.5) == 0


async def test_a_pod_that_only_gets_another_label_keeps_its_history(scene):
    pod = scene.add("a", counted(100, 10))
    await scene.ask(scene.path("rps"))
    await scene.scrape()
    await scene.scrape(7.5)
    labels = {"app": "web", "new": "yes"}
    changed = msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, labels=labels)
    )
    scene.port.add(changed)
    assert await scene.ask.values(scene.path("rps")) == {"a": "0"}


async def test_a_stale_value_is_not_served(scene):
    """kube-metrics-adapter #97: a page that cannot be read any more has no values."""
    scene.add("a", "vllm:num_requests_waiting 3\n")
    await scene.ask(scene.path("waiting"))
    await scene.scrape()
    scene.pages["10.0.0.1"] = None
    await scene.scrape(7.5)
    assert await scene.ask.values(scene.path("waiting")) == {"a": "3"}
    scene.port.pass_seconds(7.5)
    message = await scene.ask.refusal(scene.path("waiting"), 503)
    assert message == (
        "the metric waiting is not available now: 1 pods match, none has a fresh value: "
        "1 since its page cannot be read (a: connection refused)"
    )


async def test_a_value_that_nobody_renews_is_too_old(scene):
    scene.add("a", "vllm:num_requests_waiting 3\n")
    await scene.ask(scene.path("waiting"))
    await scene.scrape()
    scene.port.pass_seconds(16)
    message = await scene.ask.refusal(scene.path("waiting"), 503)
    assert "the last value is too old (a: 16.0 s old)" in message


async def test_pods_without_a_value_are_named_in_a_warning_beside_those_that_have_one(scene):
    scene.add("a", "vllm:num_requests_waiting 3\n")
    scene.add("b", None)
    await scene.ask(scene.path("waiting"))
    await scene.scrape()
    answer = await scene.ask(scene.path("waiting"))
    assert answer.headers["Warning"] == '299 - "1 of 2 pods have no fresh value: b"'
    assert len(json.loads(answer.body)["items"]) == 1


async def test_an_idle_workload_is_zero_where_that_is_declared_and_a_broken_one_is_absent(scene):
    """prometheus-adapter #280, #394: idle is told from broken by the page, not by the value."""
    scene.add("idle", counted(100, 10))
    scene.add("broken", "up 1\n")
    await scene.ask(scene.path("latency_ms"))
    await scene.scrape()
    await scene.scrape(7.5)
    assert await scene.ask.values(scene.path("latency_ms")) == {"idle": "0"}


async def test_a_series_that_no_page_has_is_not_found_and_a_likely_one_is_named(scene):
    """gpu-operator #614: who looks for a series is told what there is instead."""
    scene.add("a", "vllm:num_requests_running 3\nvllm:num_request_waiting 2\n")
    await scene.ask(scene.path("waiting"))
    await scene.scrape()
    message = await scene.ask.refusal(scene.path("waiting"), 404)
    assert message.endswith(
        "1 since its page has no such series (a: no vllm:num_requests_waiting; "
        "did you mean vllm:num_request_waiting?)"
    )
    assert (await explained(scene, "waiting"))["note"] == (
        "its page has no such series (a: no vllm:num_requests_waiting; "
        "did you mean vllm:num_request_waiting?)"
    )


@pytest.mark.parametrize(
    ("annotations", "why"),
    [
        (
            {"scrape": ""},
            'it does not offer its metrics (a: prometheus.io/scrape is missing; write "true"',
        ),
        ({"port": "http"}, "its annotations cannot be used (a: prometheus.io/port is 'http'"),
        ({"path": "//x"}, "its annotations cannot be used (a: prometheus.io/path is '//x'"),
    ],
)
async def test_annotations_that_cannot_be_used_are_said_to_whoever_asks(scene, annotations, why):
    scene.add("a", **annotations)
    assert why in await scene.ask.refusal(scene.path("waiting"), 404)
    tree = await explained(scene, "waiting")
    assert tree["items"][0]["absent"] in {"NOT_OFFERED", "UNUSABLE"}
    assert scene.fetched == []


async def test_a_selector_that_matches_no_pod_gets_an_empty_list(scene):
    scene.add("a", "vllm:num_requests_waiting 3\n")
    assert await scene.ask.values(scene.path("waiting", labelSelector="app%3Dx")) == {}


async def test_a_pod_that_is_not_there_is_not_found(scene):
    message = await scene.ask.refusal(scene.path("waiting", "nobody"), 404)
    assert "there is no pod nobody in namespace ml" in message


@pytest.mark.parametrize("selector", ["engine%3D0", "window%3D1m", "combine%3Dmax"])
async def test_a_metric_has_no_selector_of_its_own_and_says_so(scene, selector):
    scene.add("a", "vllm:num_requests_waiting 3\n")
    message = await scene.ask.refusal(scene.path("waiting", metricLabelSelector=selector), 400)
    assert "declare another metric" in message


async def test_more_pods_than_may_be_scraped_are_absent_with_the_reason(scene):
    scene.workloads._scraper = scene.scraper = scene.scraper_of(most_pods=1)
    scene.workloads.configure(
        of_section({"metrics": [{"name": "waiting", "series": "w", "type": "gauge"}]})
    )
    for name in "ab":
        scene.add(name, "w 1\n")
    await scene.ask(scene.path("waiting"))
    assert await scene.scrape() == 1
    assert await scene.ask.values(scene.path("waiting")) == {"a": "1"}
    message = await scene.ask.refusal(scene.path("waiting", "b"), 503)
    assert "as many pods as it may" in message


async def test_explain_shows_each_pod_its_page_and_what_the_value_is_made_of(scene):
    scene.add("a", counted(100, 10))
    scene.add("b", None)
    await scene.ask(scene.path("rps"))
    await scene.scrape()
    scene.pages["10.0.0.1"] = counted(115, 10)
    await scene.scrape(7.5)
    tree = await explained(scene, "rps")
    a, b = tree["items"]
    assert tree["source"] == {
        "series": ["requests_total"], "labels": {}, "type": "rate", "windowSeconds": 30.0,
        "idle": "absent", "intervalSeconds": 5.0,
    }  # fmt: skip
    assert (a["value"], a["windowSeconds"], a["series"]) == (2.0, 7.5, 1)
    page = a["page"]
    assert (page["url"], page["fault"]) == ("http://10.0.0.1:8000/metrics", "")
    assert (page["ageSeconds"], page["bytes"]) == (0.0, len(counted(115, 10)))
    assert (b["value"], b["absent"]) == (None, "UNREADABLE")
    assert b["page"]["fault"] == "connection refused"


async def test_declared_metrics_are_listed_for_pods_only(scene):
    body = json.loads((await scene.ask(ROOT)).body)
    names = {resource["name"] for resource in body["resources"]}
    assert {"pods/waiting", "pods/rps", "pods/latency_ms"} <= names
    assert "nodes/waiting" not in names
    await scene.ask.refusal(f"{ROOT}/nodes/n1/waiting", 404)


async def test_another_configuration_takes_effect_and_the_same_one_changes_nothing(scene):
    scene.add("a", counted(100, 10))
    await scene.ask(scene.path("rps"))
    await scene.scrape()
    await scene.scrape(7.5)
    scene.workloads.configure(scene.scraper.configuration)
    assert await scene.ask.values(scene.path("rps")) == {"a": "0"}
    scene.workloads.configure(
        of_section(
            {
                "metrics": [{"name": "total", "series": "requests_total", "type": "gauge"}],
                "insecureSkipVerify": True,
            }
        )
    )
    await scene.ask.refusal(scene.path("rps"), 404)
    await scene.ask(scene.path("total"))
    await scene.scrape()
    assert await scene.ask.values(scene.path("total")) == {"a": "100"}
    assert scene.fetched[-1] == ("http://10.0.0.1:8000/metrics", False)


async def test_an_answer_is_that_of_the_latest_page(scene):
    scene.add("a", "vllm:num_requests_waiting 3\n")
    await scene.ask(scene.path("waiting"))
    await scene.scrape()
    assert await scene.ask.values(scene.path("waiting")) == {"a": "3"}
    scene.pages["10.0.0.1"] = "vllm:num_requests_waiting 4\n"
    await scene.scrape(7.5)
    assert await scene.ask.values(scene.path("waiting")) == {"a": "4"}


async def test_a_bug_in_a_scrape_costs_one_pod(scene):
    scene.add("a", "vllm:num_requests_waiting 3\n")
    scene.add("b", "vllm:num_requests_waiting 3\n")
    scene.pages["10.0.0.2"] = b"no text"
    await scene.ask(scene.path("waiting"))
    await scene.scrape()
    assert await scene.ask.values(scene.path("waiting")) == {"a": "3"}
    tree = await explained(scene, "waiting")
    assert tree["items"][1]["page"]["fault"] == "the adapter failed; see its log"


async def test_scrapes_failures_and_targets_are_counted(scene):
    """prometheus-adapter #218: the adapter says what it does."""
    scene.add("a", "vllm:num_requests_waiting 3\n")
    scene.add("b", None)
    await scene.ask(scene.path("waiting"))
    await scene.scrape()
    text = scene.port.metrics.render(Format.TEXT).decode()
    assert "slicewatch_adapter_workload_targets 2.0" in text
    assert "slicewatch_adapter_workload_scrape_duration_seconds_count 2.0" in text
    failed = 'slicewatch_adapter_workload_scrape_failures_total{reason="connection"} 1.0'
    assert failed in text
