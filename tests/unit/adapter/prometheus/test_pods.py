"""Metrics of pods by rules: what is asked of a backend, and what an autoscaler gets."""

import asyncio
import json
import math

import pytest

from adapter.sources.prometheus import readings
from testbed import fleet
from testbed.scripted_prometheus import dates, failure, success, vector
from tests.unit.adapter.prometheus.scene import POD_RULE, PODS

METRIC = f"{PODS}/*/dcgm_utilization"


def both(a, b):
    return ({"pod": "a"}, a), ({"pod": "b"}, b)


async def test_a_rule_answers_for_the_pods_that_a_selector_chooses(serve, prometheus):
    async with serve(POD_RULE) as served:
        prometheus.values(*both(80, "19.6"), at=served.now - 10)
        served.port.add(fleet.pod(fleet.pod_json("other", labels={"app": "db"})))
        answer = json.loads((await served.ask(f"{METRIC}?labelSelector=app%3Dweb")).body)
        assert [(i["describedObject"], i["value"]) for i in answer["items"]] == [
            ({"kind": "Pod", "namespace": "ml", "name": "a", "apiVersion": "v1"}, "80"),
            ({"kind": "Pod", "namespace": "ml", "name": "b", "apiVersion": "v1"}, "19600m"),
        ]
        assert answer["items"][0]["timestamp"] == "2026-09-21T14:14:50Z"
    assert prometheus.queries == ['avg(DCGM_FI_DEV_GPU_UTIL{namespace="ml",pod!=""}) by (pod)']


async def test_one_query_serves_every_autoscaler_of_a_namespace(serve, prometheus):
    """prometheus-adapter asks once per autoscaler, and lists the pods of each."""
    async with serve(POD_RULE) as served:
        prometheus.values(*both(1, 2))
        prometheus.gate.clear()
        questions = ("", "?labelSelector=app%3Dweb", "?labelSelector=app+in+(web,db)")
        asking = asyncio.gather(*(served.dcgm(question) for question in questions))
        async with asyncio.timeout(5):
            await prometheus.arrived.wait()
        prometheus.gate.set()
        assert await asking == [{"a": "1", "b": "2"}] * 3
        assert len(prometheus.queries) == 1
        served.port.pass_seconds(4.9)
        prometheus.values(*both(3, 4))
        assert await served.dcgm() == {"a": "1", "b": "2"}
        served.port.pass_seconds(0.2)
        assert await served.dcgm() == {"a": "3", "b": "4"}


async def test_a_late_backend_is_answered_for_by_what_is_known_until_that_is_too_old(
    serve, prometheus, monkeypatch
):
    monkeypatch.setattr(readings, "PATIENCE_SECONDS", 0.05)
    async with serve(POD_RULE) as served:
        prometheus.values(*both(1, 2), at=served.now)
        assert await served.dcgm() == {"a": "1", "b": "2"}
        served.port.pass_seconds(119.0)
        prometheus.gate.clear()
        assert await served.dcgm() == {"a": "1", "b": "2"}
        served.port.pass_seconds(2.0)
        asking = asyncio.gather(served.dcgm())
        await asyncio.sleep(0)
        prometheus.values(*both(3, 4), at=served.now)
        prometheus.gate.set()
        assert await asking == [{"a": "3", "b": "4"}]


async def test_fifteen_hundred_pods_make_a_short_query(serve, prometheus):
    """prometheus-adapter #668."""
    async with serve(POD_RULE) as served:
        names = [f"a-pod-with-quite-a-long-name-{n:04}" for n in range(1500)]
        served.port.add(*(fleet.web(name, "n1") for name in names))
        prometheus.values(*(({"pod": name}, 7) for name in names))
        assert len(await served.dcgm()) == 1500
    assert max(len(one.query) for one in prometheus.asked) < 1000


async def test_exact_mode_names_the_pods_as_prometheus_adapter_does(serve, prometheus):
    async with serve(POD_RULE + "  queryMode: exact\n") as served:
        prometheus.values(*both(1, 2))
        assert await served.dcgm() == {"a": "1", "b": "2"}
    assert prometheus.queries == ['avg(DCGM_FI_DEV_GPU_UTIL{namespace="ml",pod=~"a|b"}) by (pod)']


async def test_pods_that_do_not_exist_or_have_finished_have_no_item(serve, prometheus):
    """kube-metrics-adapter #97, dcgm-exporter #140."""
    async with serve(POD_RULE) as served:
        served.port.add(fleet.web("b", "n2", phase="Succeeded"))
        prometheus.values(*both(1, 2), ({"pod": "ghost"}, 0))
        assert await served.dcgm() == {"a": "1"}
        served.port.pods.changed(served.port.pods.get("ml", "a"), None)
        assert await served.dcgm() == {}
        message = await served.ask.refusal(f"{PODS}/a/dcgm_utilization", 404)
        assert "there is no pod a in namespace ml" in message
        message = await served.ask.refusal(f"{PODS}/b/dcgm_utilization", 404)
        assert "the pod has finished (Succeeded)" in message


async def test_a_selector_that_matches_no_pod_gets_an_empty_list_and_costs_no_query(
    serve, prometheus
):
    """prometheus-adapter #456, helm-charts #2667: a refusal would hide that it is the selector."""
    async with serve(POD_RULE) as served:
        assert await served.dcgm("?labelSelector=app%3Dnone") == {}
        tree = json.loads(
            (await served.ask(f"{METRIC}?labelSelector=app%3Dnone&explain=true")).body
        )
        assert tree["note"] == "none of the 2 pods of the namespace matches 'app=none'"
        elsewhere = METRIC.replace("/ml/", "/elsewhere/")
        tree = json.loads((await served.ask(f"{elsewhere}?explain=true")).body)
    assert (tree["note"], tree["namespacesWithPods"]) == (
        "namespace elsewhere has no pods", ["ml"],
    )  # fmt: skip
    assert prometheus.queries == []


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf"])
async def test_what_is_not_finite_is_left_out_counted_and_warned_of(serve, prometheus, value):
    """prometheus-adapter #280 and #394: as 0 it scales the wrong way."""
    async with serve(POD_RULE) as served:
        prometheus.values(*both(30, value))
        answer = await served.ask(METRIC)
        assert await served.dcgm() == {"a": "30"}
        assert "1 of 2 pods have no value: b" in answer.headers["Warning"]
        reason = "not_a_number" if value == "NaN" else "infinite"
        counted = served.port.metrics.registry.get_sample_value(
            "slicewatch_adapter_dropped_samples_total", {"rule": "rules[0]", "reason": reason}
        )
        assert counted == 1


async def test_if_all_are_nan_the_cause_and_the_way_out_are_said(serve, prometheus):
    async with serve(POD_RULE) as served:
        prometheus.values(*both("NaN", "NaN"))
        message = await served.ask.refusal(METRIC, 503)
    assert "2 pods match, none has a value: 2 since the query makes NaN" in message
    assert "set nanAs" in message


async def test_a_rule_may_say_what_nan_stands_for_and_limit_values(serve, prometheus):
    """prometheus-adapter pull request #431: negative rates after a reset."""
    more = "  nanAs: 0\n  clampMin: 0\n  clampMax: 100\n"
    async with serve(POD_RULE + more) as served:
        served.port.add(fleet.web("c", "n1"))
        prometheus.values(*both("NaN", -1.5), ({"pod": "c"}, 3e8))
        assert await served.dcgm() == {"a": "0", "b": "0", "c": "100"}


async def test_a_negative_value_is_a_value(serve, prometheus):
    async with serve(POD_RULE) as served:
        prometheus.values(*both(-1.5, 0))
        assert await served.dcgm() == {"a": "-1500m", "b": "0"}


async def test_what_overflows_an_autoscaler_is_limited_and_warned_of(serve, prometheus):
    """Kubernetes #126892: a quantity of 10P is read as 0."""
    async with serve(POD_RULE) as served:
        prometheus.values(*both("1e16", 1))
        answer = await served.ask(METRIC)
        assert await served.dcgm() == {"a": "9T", "b": "1"}
    assert "limited to it: a" in answer.headers["Warning"]


async def test_samples_older_than_the_limit_are_not_served_though_the_backend_gives_them(
    serve, prometheus
):
    """A backend goes on for five minutes after the last sample of a series that was pushed."""
    async with serve(POD_RULE + "  maxAge: 60s\n") as served:
        ages = {"a": served.now - 59, "b": served.now - 61}

        def say(one):
            if dates(one):
                return vector(*(({"pod": pod}, at) for pod, at in ages.items()))
            return vector(*both(1, 2))

        prometheus.say = say
        answer = await served.ask(METRIC)
        assert await served.dcgm() == {"a": "1"}
        assert "1 of 2 pods have no value: b" in answer.headers["Warning"]
        served.port.pass_seconds(2.0)
        message = await served.ask.refusal(METRIC, 503)
    assert "2 since its samples are too old (a: 59 s old when asked for)" in message
    assert next(one.query for one in prometheus.asked if dates(one)) == (
        'min(timestamp(DCGM_FI_DEV_GPU_UTIL{namespace="ml",pod!=""})) by (pod)'
    )


async def test_a_backend_that_cannot_date_samples_still_has_values(serve, prometheus):
    async with serve(POD_RULE) as served:
        prometheus.say = lambda one: (
            failure(422, "execution", "unknown function") if dates(one) else vector(*both(1, 2))
        )
        assert await served.dcgm() == {"a": "1", "b": "2"}
        tree = json.loads((await served.ask(f"{METRIC}?explain=true")).body)
    assert "unknown function" in tree["ageOfSamples"]


async def test_a_result_without_the_pods_label_is_refused_with_what_to_write(serve, prometheus):
    """prometheus-adapter #535, kube-prometheus #1551: an empty list told nobody why."""
    rule = POD_RULE.replace(" by (<<.GroupBy>>)", "")
    async with serve(rule) as served:
        prometheus.values(({}, 50))
        message = await served.ask.refusal(METRIC, 404)
    assert "the query result has no label 'pod' (it has none)" in message
    assert "by (<<.GroupBy>>)" in message


async def test_several_series_of_a_pod_are_no_value_since_none_of_them_is_it(serve, prometheus):
    async with serve(POD_RULE) as served:
        prometheus.values(({"pod": "a", "gpu": "0"}, 1), ({"pod": "a", "gpu": "1"}, 99))
        message = await served.ask.refusal(METRIC, 404)
        assert "the query makes several series of it" in message
        prometheus.values(({"pod": "a", "gpu": "0"}, 1), ({"pod": "a", "gpu": "1"}, 2),
                          ({"pod": "b"}, 3))  # fmt: skip
        served.port.pass_seconds(6.0)
        assert await served.dcgm() == {"b": "3"}


async def test_no_series_at_all_names_backend_rule_and_namespace(serve, prometheus):
    async with serve(POD_RULE) as served:
        message = await served.ask.refusal(METRIC, 404)
    assert "the backend default has no series for the query of the rule rules[0]" in message
    assert "in namespace ml" in message


async def test_a_metric_of_other_pods_than_the_selected_is_said_to_be_one(serve, prometheus):
    """prometheus-adapter #456 and #630: the autoscaler's selector is that of its own pods."""
    async with serve(POD_RULE) as served:
        served.port.add(fleet.pod(fleet.pod_json("gateway", labels={"app": "y"})))
        prometheus.values(({"pod": "gateway"}, 5))
        message = await served.ask.refusal(f"{METRIC}?labelSelector=app%3Dweb", 404)
    assert "1 pods that are not asked for, such as gateway" in message
    assert "Object or External" in message


async def test_a_label_that_names_the_exporter_is_said_to_do_so(serve, prometheus):
    """dcgm-exporter #42: the workload is in exported_pod."""
    async with serve(POD_RULE) as served:
        prometheus.values(({"pod": "dcgm-exporter-x7"}, 5))
        message = await served.ask.refusal(METRIC, 404)
    assert "names dcgm-exporter-x7, which is no pod of namespace ml" in message
    assert "exported_pod" in message


async def test_a_selector_of_series_becomes_matchers_with_names_of_prometheus(serve, prometheus):
    """prometheus-adapter #456: keys of Kubernetes have dots and slashes."""
    async with serve(POD_RULE) as served:
        prometheus.values(*both(1, 2))
        wanted = "?metricLabelSelector=app.kubernetes.io%2Fname%3Dx"
        assert await served.dcgm(wanted) == {"a": "1", "b": "2"}
        assert prometheus.queries == [
            'avg(DCGM_FI_DEV_GPU_UTIL{app_kubernetes_io_name="x",namespace="ml",pod!=""}) by (pod)'
        ]
        items = json.loads((await served.ask(METRIC + wanted)).body)["items"]
        assert items[0]["metric"]["selector"] == {"matchLabels": {"app.kubernetes.io/name": "x"}}


async def test_a_selector_of_series_that_matches_none_gets_an_empty_list(serve, prometheus):
    async with serve(POD_RULE) as served:
        assert await served.dcgm("?metricLabelSelector=gpu_model%3DA100") == {}


async def test_keys_that_only_exporters_metrics_have_are_refused(serve):
    async with serve(POD_RULE) as served:
        message = await served.ask.refusal(f"{METRIC}?metricLabelSelector=combine%3Dsum", 400)
    assert "write it into metricsQuery" in message


async def test_native_histograms_are_no_numbers(serve, prometheus):
    async with serve(POD_RULE) as served:
        series = {"metric": {"pod": "a"}, "histogram": [0, {"count": "5", "sum": "1"}]}
        prometheus.say = lambda _: success({"resultType": "vector", "result": [series]})
        message = await served.ask.refusal(METRIC, 404)
    assert "native histograms" in message


async def test_an_explanation_has_query_age_series_items_and_what_was_dropped(serve, prometheus):
    async with serve(POD_RULE) as served:
        served.port.add(fleet.web("c", "n1"))
        prometheus.values(*both(30, "NaN"), ({"pod": "ghost"}, 1), at=served.now - 7)
        tree = json.loads((await served.ask(f"{METRIC}?explain=true")).body)
    assert tree["query"] == 'avg(DCGM_FI_DEV_GPU_UTIL{namespace="ml",pod!=""}) by (pod)'
    assert (tree["backend"], tree["series"], tree["objectLabel"]) == ("default", 3, "pod")
    assert (tree["rule"], tree["ageSeconds"]) == ("rules.yaml:2: rules[0]", 0.0)
    assert tree["notAskedFor"] == ["ghost"]
    items = {item["name"]: item for item in tree["items"]}
    assert (items["a"]["value"], items["a"]["timestamp"]) == (30.0, "2026-09-21T14:14:53Z")
    assert (items["b"]["absent"], items["b"]["said"]) == ("NOT_A_NUMBER", "nan")
    assert items["c"]["absent"] == "NO_SERIES"
    assert not math.isnan(tree["durationSeconds"])


async def test_warnings_of_the_backend_are_kept(serve, prometheus):
    async with serve(POD_RULE) as served:
        said = vector(*both(1, 2), warnings=("store x did not answer",))
        prometheus.say = lambda one: vector() if dates(one) else said
        assert "store x did not answer" in (await served.ask(METRIC)).headers["Warning"]
        tree = json.loads((await served.ask(f"{METRIC}?explain=true")).body)
    assert tree["warnings"] == ["store x did not answer"]
