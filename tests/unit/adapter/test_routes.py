"""The API port as kube-apiserver, autoscalers and people meet it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from adapter.api import request
from adapter.api.resources import KNOWN, PODS
from adapter.join import Join
from adapter.provider import Offer
from adapter.sources.source import Target
from slicewatch.catalog.model import Combine
from slicewatch.catalog.own import FRESHNESS_SECONDS
from slicewatch.service.exposition import Format
from slicewatch.wire.snapshot import encode
from testbed import fleet
from testbed.fixed_metrics import FixedObjects
from testbed.front_proxy import ROOT, WEB, ApiPort, Asker


async def test_five_probes_at_once_are_answered_before_anything_is_known(tmp_path: Path) -> None:
    port = ApiPort(tmp_path)
    port.cache.synced, port.cache.fault = False, "not listed yet"
    async with port.serving(), port.client(port.front_proxy()) as client:
        probes = [port.ask(ROOT, client=client) for _ in range(5)]
        assert [a.status for a in await asyncio.gather(*probes)] == [200] * 5
        answer = await port.ask(WEB, client=client)
    assert answer.status == 503
    assert b"pods are not listed yet" in answer.body


async def test_a_new_reading_changes_the_next_answer(ask: Asker) -> None:
    assert await ask.values(WEB) == {"a": "20", "b": "60"}
    assert await ask.values(WEB) == {"a": "20", "b": "60"}
    ask.port.receive(fleet.node_frame("n1", "a", 21.0))
    assert await ask.values(WEB) == {"a": "21", "b": "60"}


async def test_a_deleted_pod_is_gone_from_the_next_answer(ask: Asker) -> None:
    assert await ask.values(WEB) == {"a": "20", "b": "60"}
    ask.port.pods.changed(fleet.web("b", "n2"), None)
    assert await ask.values(WEB) == {"a": "20"}


async def test_a_finished_pod_is_never_served_though_it_still_holds_its_device(ask: Asker) -> None:
    ask.port.add(fleet.web("b", "n2", phase="Succeeded"))
    assert await ask.values(WEB) == {"a": "20"}


async def test_a_pod_that_moved_takes_nothing_from_its_former_node(ask: Asker) -> None:
    ask.port.add(fleet.web("b", "n1"))
    assert await ask.values(WEB) == {"a": "20"}


async def test_a_selector_that_matches_no_pod_gets_an_empty_list_and_explain_says_why(
    ask: Asker,
) -> None:
    path = WEB.replace("web", "nothing")
    assert await ask.values(path) == {}
    explained = json.loads((await ask(f"{path}&explain=true")).body)
    assert explained["items"] == []
    assert explained["note"] == "none of the 2 pods of namespace ml matches 'app=nothing'"


@pytest.mark.parametrize("objects", ["nodes/*", "namespaces/*/metrics"])
async def test_only_pods_are_noted_as_missing(tmp_path: Path, objects: str) -> None:
    port = ApiPort(tmp_path)
    async with port.serving(), port.client(port.front_proxy()) as client:
        path = f"{ROOT}/{objects}/gpu_utilization?explain=true"
        explained = json.loads((await port.ask(path, client=client)).body)
    assert explained["items"] == []
    assert "note" not in explained


async def test_a_metric_selector_chooses_devices_and_is_echoed(ask: Asker) -> None:
    answer = await ask(f"{WEB}&metricLabelSelector=node%3Dn2")
    (item,) = json.loads(answer.body)["items"]
    assert item["describedObject"]["name"] == "b"
    assert item["metric"]["selector"] == {"matchLabels": {"node": "n2"}}
    assert await ask.values(f"{WEB}&metricLabelSelector=model%3DA100") == {}
    assert await ask.values(WEB) == {"a": "20", "b": "60"}


async def test_explanations_show_the_inputs_of_a_shared_device(ask: Asker) -> None:
    layout = fleet.layout(
        [fleet.gpu(0)], [fleet.tenant("GPU-n1-0", "a"), fleet.tenant("GPU-n1-0", "x")]
    )
    shot = fleet.snapshot(
        layout, tenant_values={"gpu_tenant_busy_ratio": [0.25, 0.5]}, shares="processes"
    )
    ask.port.add(fleet.pod(fleet.pod_json("x")))
    ask.port.receive(fleet.frame(layout, shot))
    path = f"{ROOT}/namespaces/ml/pods/a/gpu_utilization"
    assert await ask.values(path) == {"a": "50"}
    (item,) = json.loads((await ask(f"{path}?explain=true")).body)["items"]
    (device,) = item["devices"]
    inputs = {name: device["inputs"][name] for name in "WBmn"}
    assert inputs == {"W": 0.25, "B": 0.75, "m": 1, "n": 2}
    assert device["deviceValue"] == 40.0
    assert item["value"] == 50.0
    assert item["ageSeconds"] == 0.5


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
async def test_metrics_can_only_be_read(ask: Asker, method: str) -> None:
    answer = await ask(WEB, method)
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, HEAD"
    body = json.loads(answer.body)
    assert body["reason"] == "MethodNotAllowed"
    assert method in body["message"]
    assert body["details"]["kind"] == "pods"


@pytest.mark.parametrize("watch", ["true", "1", "yes"])
async def test_a_watch_is_refused_instead_of_a_list_that_it_would_ask_for_again(
    ask: Asker, watch: str
) -> None:
    answer = await ask(f"{WEB}&watch={watch}")
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", [f"{WEB}&watch=false", f"{WEB}&watch=0", f"{ROOT}?watch=true"])
async def test_what_is_no_watch_of_values_is_answered(ask: Asker, path: str) -> None:
    assert (await ask(path)).status == 200


@pytest.mark.parametrize(("path", "code"), [(WEB, 200), (ROOT, 200), ("/nowhere", 404)])
async def test_head_is_answered_as_get_without_the_body(ask: Asker, path: str, code: int) -> None:
    whole, head = await ask(path), await ask(path, "HEAD")
    assert (whole.status, head.status) == (code, code)
    assert head.body == b""
    assert head.headers["Content-Length"] == str(len(whole.body))
    assert head.headers["Content-Type"] == whole.headers["Content-Type"]


@pytest.mark.parametrize(
    ("accept", "code"),
    [
        ("application/vnd.kubernetes.protobuf", 406),
        ("application/vnd.kubernetes.protobuf, */*", 200),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", 200),
        ("application/json;as=Table;v=v1;g=meta.k8s.io", 406),
    ],
)
async def test_only_json_is_served(ask: Asker, accept: str, code: int) -> None:
    answer = await ask(WEB, Accept=accept)
    assert answer.status == code
    if code == 406:
        body = json.loads(answer.body)
        assert body["reason"] == "NotAcceptable"
        assert "only the following media types are accepted: application/json" in body["message"]


async def test_all_accept_headers_count(ask: Asker) -> None:
    port = ask.port
    headers = [("Accept", "application/vnd.kubernetes.protobuf"), ("Accept", "application/json")]
    async with (
        port.client(port.front_proxy()) as client,
        client.get(port.url + ROOT, headers=headers) as answer,
    ):
        assert answer.status == 200


async def test_what_is_not_there_is_not_found_whatever_is_accepted(ask: Asker) -> None:
    answer = await ask("/nowhere", "DELETE", Accept="text/html")
    assert answer.status == 404


async def test_nothing_is_compressed(ask: Asker) -> None:
    answer = await ask(WEB, Accept_Encoding="gzip")
    assert "Content-Encoding" not in answer.headers


async def test_providers_are_told_how_a_value_is_to_be_made_and_the_selector_is_echoed(
    ask: Asker,
) -> None:
    provider = FixedObjects({Offer(resource=PODS, metric="m"): {("ml", "a"): 1.0}})
    ask.port.offer(provider)
    path = (
        f"{ROOT}/namespaces/ml/pods/*/m?metricLabelSelector=window%3D1m%2Cgpu%3D0%2Ccombine%3Dmax"
    )
    async with ask.port.serving(), ask.port.client(ask.port.front_proxy()) as client:
        (item,) = json.loads((await ask.port.ask(path, client=client)).body)["items"]
    (question,) = provider.asked
    assert (question.combine, question.window_seconds) == (Combine.MAX, 60.0)
    assert [r.key for r in question.series.requirements] == ["gpu"]
    assert item["metric"]["selector"]["matchLabels"] == {
        "combine": "max", "gpu": "0", "window": "1m",
    }  # fmt: skip


async def test_providers_are_asked_by_the_name_and_scope_of_the_kind(ask: Asker) -> None:
    volumes = next(resource for resource in KNOWN if resource.kind == "PersistentVolume")
    provider = FixedObjects({Offer(resource=volumes, metric="m"): {("", "v"): 1.0}})
    ask.port.offer(provider)
    async with ask.port.serving(), ask.port.client(ask.port.front_proxy()) as client:
        for path in ("/namespaces/ml/persistentvolume/v/m", "/persistentvolumes/v/m"):
            answer = await ask.port.ask(ROOT + path, client=client)
            assert answer.status == 200, answer.body
    assert {(q.path.namespace, q.path.resource) for q in provider.asked} == {
        ("", "persistentvolumes")
    }


async def test_the_age_of_what_is_served_is_observed_by_api(ask: Asker) -> None:
    ask.port.pass_seconds(2.0)
    for _ in range(2):
        await ask(WEB)
    await ask(WEB.replace("web", "nothing"))
    await ask(ROOT)
    read = ask.port.metrics.registry.get_sample_value
    name, group = FRESHNESS_SECONDS.name, {"group": "custom.metrics.k8s.io"}
    assert read(f"{name}_count", group) == 2.0
    assert read(f"{name}_sum", group) == pytest.approx(5.0)  # 0.5 s old when it was sent.
    assert read(f"{name}_bucket", group | {"le": "2.5377165440000007"}) == 2.0


async def test_a_refusal_that_names_a_parameter_says_so_in_its_details(ask: Asker) -> None:
    answer = await ask(f"{ROOT}/namespaces/ml/pods/*/m?labelSelector=x%3D%3D%3Dy")
    details = json.loads(answer.body)["details"]
    assert {key: details[key] for key in ("name", "group", "kind")} == {
        "name": "m", "group": "custom.metrics.k8s.io", "kind": "pods",
    }  # fmt: skip
    assert [cause["field"] for cause in details["causes"]] == ["labelSelector"]
    assert "retryAfterSeconds" not in details


async def test_a_user_of_many_groups_and_a_long_selector_are_served(ask: Asker) -> None:
    long = "%2C".join(f"l{i}%21%3D{'v' * 50}" for i in range(60))
    headers = [("X-Remote-Group", f"oidc:{'g' * 40}-{i}") for i in range(400)]
    port, path = ask.port, f"{WEB}%2C{long}"
    async with (
        port.client(port.front_proxy()) as client,
        client.get(port.url + path.replace("*", "%2A"), headers=headers) as answer,
    ):
        assert answer.status == 200
        assert len((await answer.json())["items"]) == 2


async def test_a_selector_that_would_hold_up_everyone_is_refused(ask: Asker) -> None:
    many = "%2C".join(f"%21l{i}" for i in range(65))
    assert "64 requirements, not 66" in await ask.refusal(f"{WEB}%2C{many}", 400)
    assert "32768 characters" in await ask.refusal(f"{WEB}{',!a' * 12_000}", 400)
    assert "expected an integer" in await ask.refusal(f"{WEB}%2Ca%3E{'9' * 3000}", 400)


async def test_long_urls_are_answered_and_not_kept(ask: Asker) -> None:
    before = request._kept.cache_info().currsize
    for number in range(3):
        assert await ask.values(f"{WEB}&ignored={'x' * 2048}{number}") == {"a": "20", "b": "60"}
    assert request._kept.cache_info().currsize == before


async def test_an_internal_error_is_a_status_and_affects_no_other_request(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("planted")

    with monkeypatch.context() as planted:
        planted.setattr("adapter.direct.answer", fail)
        assert "see its log" in await ask.refusal(WEB, 500)
    assert await ask.values(WEB) == {"a": "20", "b": "60"}


async def test_a_failure_over_one_object_costs_no_other(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Join.pod

    def fail(join: Join, key: tuple[str, str], *more: Any) -> Any:
        if key == ("ml", "a"):
            raise RuntimeError("planted")
        return real(join, key, *more)

    monkeypatch.setattr(Join, "pod", fail)
    answer = await ask(WEB)
    assert [i["describedObject"]["name"] for i in json.loads(answer.body)["items"]] == ["b"]
    assert "1 of 2 pods have no fresh value: a" in answer.headers["Warning"]
    alone = f"{ROOT}/namespaces/ml/pods/a/gpu_utilization"
    assert "see its log" in await ask.refusal(alone, 503)


@pytest.mark.parametrize("value", [-50.0, 250.0, 1e25, 1.7e308])
async def test_an_impossible_value_is_never_served_and_costs_no_other(
    ask: Asker, value: float
) -> None:
    ask.port.receive(fleet.node_frame("n1", "a", value))
    assert await ask.values(WEB) == {"b": "60"}
    alone = f"{ROOT}/namespaces/ml/pods/a/gpu_utilization"
    message = await ask.refusal(alone, 503)
    assert "impossible value for the device" in message
    assert f"GPU-n1-0: {value:g}" in message
    (item,) = json.loads((await ask(f"{alone}?explain=true")).body)["items"]
    assert item["absent"] == "IMPOSSIBLE"
    assert item["value"] is None


async def test_an_exporter_that_is_refused_is_explained_on_the_nodes_it_concerns(
    ask: Asker,
) -> None:
    forger = Target("http://forger:9400")
    ask.port.source.want(forger, "n2")
    ask.port.source.receive(forger, encode(fleet.node_frame("n1", "a", 99.0)))
    assert await ask.values(WEB) == {"a": "20", "b": "60"}
    for pod in ("a", "b"):
        path = f"{ROOT}/namespaces/ml/pods/{pod}/gpu_utilization?explain=true"
        shown = {e["url"]: e for e in json.loads((await ask(path)).body)["exporters"]}
        fault = f"{forger} reports for node n1, but runs on node n2"
        assert shown[forger]["fault"] == fault
        assert len(shown) == 2


async def test_what_is_never_served_is_not_found_even_before_pods_are_listed(ask: Asker) -> None:
    ask.port.cache.synced = False
    await ask.refusal("/apis/external.metrics.k8s.io/v1beta1/namespaces/ml/queue", 404)
    await ask.refusal(f"{ROOT}/namespaces/ml/pods/*/nonsense", 404)
    await ask.refusal(WEB, 503)


async def test_requests_are_timed_by_api_and_code(ask: Asker) -> None:
    await ask(WEB)
    await ask("/nowhere")
    text = ask.port.metrics.render(Format.TEXT).decode()
    name = "slicewatch_adapter_request_duration_seconds_count"
    assert f'{name}{{api="custom.metrics.k8s.io",code="200"}} 1.0' in text
    assert f'{name}{{api="other",code="404"}} 1.0' in text
