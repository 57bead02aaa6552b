"""The API port as kube-apiserver, autoscalers and people meet it."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from testbed import fleet
from testbed.front_proxy import Answer, ApiPort

RECORDED = json.loads(
    (Path(__file__).parents[2] / "golden" / "adapter" / "requests.json").read_text()
)
ROOT = "/apis/custom.metrics.k8s.io/v1beta2"
WEB = f"{ROOT}/namespaces/ml/pods/*/gpu_utilization?labelSelector=app%3Dweb"


class Asker:
    def __init__(self, port: ApiPort, client: aiohttp.ClientSession) -> None:
        self.port = port
        self._client = client

    async def __call__(self, path: str, method: str = "GET", **headers: str) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.port.ask(path, client=self._client, method=method, headers=sent)

    async def values(self, path: str) -> dict[str, str]:
        answer = await self(path)
        assert answer.status == 200, answer.body
        items = json.loads(answer.body)["items"]
        return {i["describedObject"]["name"]: i["value"] for i in items}

    async def refusal(self, path: str, code: int) -> str:
        answer = await self(path)
        assert answer.status == code, answer.body
        body = json.loads(answer.body)
        assert (body["kind"], body["status"], body["code"]) == ("Status", "Failure", code)
        assert "Retry-After" not in answer.headers
        return str(body["message"])


def web(name: str, node: str, phase: str = "Running") -> Any:
    return fleet.pod(fleet.pod_json(name, node=node, phase=phase, labels={"app": "web"}))


def node_frame(node: str, pod: str, utilization: float | None, **about: Any) -> Any:
    layout = fleet.layout(
        [fleet.gpu(0, node=node)], [fleet.tenant(f"GPU-{node}-0", pod)], node=node
    )
    return fleet.frame(layout, fleet.snapshot(layout, {"gpu_utilization": [utilization]}, **about))


@pytest.fixture
async def ask(tmp_path: Path) -> AsyncIterator[Asker]:
    port = ApiPort(tmp_path)
    port.add(web("a", "n1"), web("b", "n2"))
    port.receive(node_frame("n1", "a", 20.0))
    port.receive(node_frame("n2", "b", 60.0))
    async with port.serving(), port.client(port.front_proxy()) as client:
        yield Asker(port, client)


@pytest.mark.parametrize("request_", RECORDED, ids=[r["who"] for r in RECORDED])
async def test_recorded_requests_are_answered(ask: Asker, request_: dict[str, Any]) -> None:
    headers = {name.replace("-", "_"): value for name, value in request_["headers"].items()}
    answer = await ask(request_["target"], **headers)
    assert answer.status == request_["status"], answer.body
    assert answer.headers["Content-Type"].startswith("application/json")
    assert json.loads(answer.body)["kind"] == request_["kind"]


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
    ask.port.receive(node_frame("n1", "a", 21.0))
    assert await ask.values(WEB) == {"a": "21", "b": "60"}


async def test_a_deleted_pod_is_gone_from_the_next_answer(ask: Asker) -> None:
    assert await ask.values(WEB) == {"a": "20", "b": "60"}
    ask.port.pods.changed(web("b", "n2"), None)
    assert await ask.values(WEB) == {"a": "20"}


async def test_a_finished_pod_is_never_served_though_it_still_holds_its_device(ask: Asker) -> None:
    ask.port.add(web("b", "n2", phase="Succeeded"))
    assert await ask.values(WEB) == {"a": "20"}


async def test_a_pod_that_moved_takes_nothing_from_its_former_node(ask: Asker) -> None:
    ask.port.add(web("b", "n1"))
    assert await ask.values(WEB) == {"a": "20"}


async def test_a_stale_value_is_never_served_and_the_answer_says_what_it_lacks(
    ask: Asker,
) -> None:
    ask.port.pass_seconds(10.0)
    ask.port.receive(node_frame("n2", "b", 61.0))
    ask.port.pass_seconds(4.4)  # The reading of n1 was 0.5 s old when it was sent.
    assert await ask.values(WEB) == {"a": "20", "b": "61"}
    ask.port.pass_seconds(0.2)
    answer = await ask(WEB)
    assert await ask.values(WEB) == {"b": "61"}
    assert answer.headers["Warning"].startswith('299 - "1 of 2 pods have no fresh value: a')
    ask.port.receive(node_frame("n1", "a", 22.0))
    assert "Warning" not in (await ask(WEB)).headers


async def test_a_value_that_was_old_when_it_was_sent_is_not_served(ask: Asker) -> None:
    ask.port.receive(node_frame("n1", "a", 20.0, ages=[15.5]))
    assert await ask.values(WEB) == {"b": "60"}


async def test_all_stale_is_unavailable_with_the_ages(ask: Asker) -> None:
    ask.port.pass_seconds(60.0)
    message = await ask.refusal(WEB, 503)
    assert "2 pods match, none has a fresh value" in message
    assert "too old" in message
    assert "60.5 s old, served are at most 15 s" in message
    one = await ask.refusal(f"{ROOT}/namespaces/ml/pods/a/gpu_utilization", 503)
    assert "too old" in one
    await ask.refusal(f"{ROOT}/nodes/n1/gpu_utilization", 503)
    await ask.refusal(f"{ROOT}/namespaces/ml/metrics/gpu_utilization", 503)


async def test_a_silent_device_is_unavailable_and_never_zero(ask: Asker) -> None:
    ask.port.receive(node_frame("n1", "a", None))
    assert await ask.values(WEB) == {"b": "60"}
    ask.port.receive(node_frame("n2", "b", 60.0, up=[False]))
    assert "does not answer" in await ask.refusal(WEB, 503)


async def test_pods_on_a_node_without_exporter_are_unavailable(ask: Asker) -> None:
    ask.port.add(fleet.pod(fleet.pod_json("c", node="n9", labels={"app": "lost"})))
    message = await ask.refusal(WEB.replace("web", "lost"), 503)
    assert "no exporter tells about its node" in message
    assert "n9" in message


async def test_a_namespace_is_unavailable_while_one_of_its_nodes_is_unknown(ask: Asker) -> None:
    path = f"{ROOT}/namespaces/ml/metrics/gpu_power_usage_watts"
    assert await ask.values(path) == {"ml": "501"}
    ask.port.add(fleet.pod(fleet.pod_json("c", node="n9")))
    assert "node n9 of pod c" in await ask.refusal(path, 503)


async def test_a_namespace_none_of_whose_devices_are_chosen_has_no_items(ask: Asker) -> None:
    path = f"{ROOT}/namespaces/ml/metrics/gpu_power_usage_watts?metricLabelSelector=node%3D"
    assert await ask.values(f"{path}n2") == {"ml": "250500m"}
    assert await ask.values(f"{path}n7") == {}


async def test_pods_that_cannot_have_a_value_are_not_found_with_the_cause(ask: Asker) -> None:
    ask.port.add(
        fleet.pod(fleet.pod_json("cpu", labels={"app": "cpu"}, gpus=0)),
        fleet.pod(fleet.pod_json("waits", labels={"app": "waits"}, node="")),
        fleet.pod(fleet.pod_json("unnamed", labels={"app": "unnamed"})),
    )
    assert "holds no GPU" in await ask.refusal(WEB.replace("web", "cpu"), 404)
    assert "not scheduled" in await ask.refusal(WEB.replace("web", "waits"), 404)
    assert "exporter of its node" in await ask.refusal(WEB.replace("web", "unnamed"), 404)


async def test_a_selector_that_matches_no_pod_gets_an_empty_list_and_explain_says_why(
    ask: Asker,
) -> None:
    path = WEB.replace("web", "nothing")
    assert await ask.values(path) == {}
    explained = json.loads((await ask(f"{path}&explain=true")).body)
    assert explained["items"] == []
    assert explained["note"] == "none of the 2 pods of namespace ml matches 'app=nothing'"


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


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_metrics_can_only_be_read(ask: Asker, method: str) -> None:
    answer = await ask(WEB, method)
    assert answer.status == 405
    assert json.loads(answer.body)["reason"] == "MethodNotAllowed"


@pytest.mark.parametrize(
    ("accept", "code"),
    [
        ("application/vnd.kubernetes.protobuf", 406),
        ("text/html", 406),
        ("application/vnd.kubernetes.protobuf, */*", 200),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("*/*;q=0.1", 200),
    ],
)
async def test_json_is_all_that_is_spoken(ask: Asker, accept: str, code: int) -> None:
    answer = await ask(WEB, Accept=accept)
    assert answer.status == code
    if code == 406:
        assert b"application/json" in answer.body


async def test_a_user_of_many_groups_and_a_long_selector_are_served(ask: Asker) -> None:
    long = "%2C".join(f"l{i}%21%3D{'v' * 50}" for i in range(400))
    headers = [("X-Remote-Group", f"oidc:{'g' * 40}-{i}") for i in range(400)]
    port, path = ask.port, f"{WEB}%2C{long}"
    async with (
        port.client(port.front_proxy()) as client,
        client.get(port.url + path.replace("*", "%2A"), headers=headers) as answer,
    ):
        assert answer.status == 200
        assert len((await answer.json())["items"]) == 2
    assert len(path) > 20_000


async def test_health_is_told_on_the_api_port_too(ask: Asker) -> None:
    assert (await ask("/livez")).body == b"ok\n"
    verbose = await ask("/readyz?verbose")
    assert verbose.status == 200
    assert b"[+]front-proxy ok" in verbose.body
    ask.port.cache.synced = False
    assert (await ask("/readyz")).status == 500
    assert (await ask("/readyz/pods")).status == 500


async def test_a_fault_of_ours_is_a_status_and_harms_no_other_request(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("planted")

    with monkeypatch.context() as planted:
        planted.setattr("adapter.api.routes.answer", fail)
        assert "see its log" in await ask.refusal(WEB, 500)
    assert await ask.values(WEB) == {"a": "20", "b": "60"}


async def test_what_is_never_served_is_not_found_even_before_pods_are_listed(ask: Asker) -> None:
    ask.port.cache.synced = False
    await ask.refusal("/apis/external.metrics.k8s.io/v1beta1/namespaces/ml/queue", 404)
    await ask.refusal(f"{ROOT}/namespaces/ml/pods/*/nonsense", 404)
    await ask.refusal(WEB, 503)


async def test_requests_are_timed_by_api_and_code(ask: Asker) -> None:
    await ask(WEB)
    await ask("/nowhere")
    text = ask.port.metrics.render(open_metrics=False).decode()
    name = "slicewatch_adapter_request_duration_seconds_count"
    assert f'{name}{{api="custom.metrics.k8s.io",code="200"}} 1.0' in text
    assert f'{name}{{api="other",code="404"}} 1.0' in text
