"""When a value is missing: what is refused, what is a warning, and what is simply not there."""

from typing import Any

import pytest

from testbed import fleet
from testbed.front_proxy import ROOT, WEB, Asker


async def test_a_stale_value_is_never_served_and_the_answer_says_what_it_lacks(
    ask: Asker,
) -> None:
    ask.port.pass_seconds(10.0)
    ask.port.receive(fleet.node_frame("n2", "b", 61.0))
    ask.port.pass_seconds(4.4)  # The reading of n1 was 0.5 s old when it was sent.
    assert await ask.values(WEB) == {"a": "20", "b": "61"}
    ask.port.pass_seconds(0.2)
    answer = await ask(WEB)
    assert await ask.values(WEB) == {"b": "61"}
    assert answer.headers["Warning"].startswith('299 - "1 of 2 pods have no fresh value: a')
    ask.port.receive(fleet.node_frame("n1", "a", 22.0))
    assert "Warning" not in (await ask(WEB)).headers


async def test_a_value_that_was_old_when_it_was_sent_is_not_served(ask: Asker) -> None:
    ask.port.receive(fleet.node_frame("n1", "a", 20.0, age=15.5))
    assert await ask.values(WEB) == {"b": "60"}


async def test_all_stale_is_unavailable_with_the_ages(ask: Asker) -> None:
    ask.port.pass_seconds(60.0)
    message = await ask.refusal(WEB, 503)
    assert "2 pods match, none has a fresh value" in message
    assert "too old" in message
    assert "60.5 s old, the limit is 15 s" in message
    one = await ask.refusal(f"{ROOT}/namespaces/ml/pods/a/gpu_utilization", 503)
    assert "too old" in one
    await ask.refusal(f"{ROOT}/nodes/n1/gpu_utilization", 503)
    await ask.refusal(f"{ROOT}/namespaces/ml/metrics/gpu_utilization", 503)


async def test_a_silent_device_is_unavailable_and_never_zero(ask: Asker) -> None:
    ask.port.receive(fleet.node_frame("n1", "a", None))
    assert await ask.values(WEB) == {"b": "60"}
    ask.port.receive(fleet.node_frame("n2", "b", 60.0, up=False))
    assert "does not respond" in await ask.refusal(WEB, 503)


async def test_pods_on_a_node_without_exporter_are_unavailable(ask: Asker) -> None:
    ask.port.add(fleet.pod(fleet.pod_json("c", node="n9", labels={"app": "lost"})))
    message = await ask.refusal(WEB.replace("web", "lost"), 503)
    assert "no exporter reports for its node" in message
    assert "n9" in message


@pytest.mark.parametrize("asks", [{"gpus": 1}, {"gpus": 0, "claims": ["gpu"]}])
@pytest.mark.parametrize("exporter", [False, True], ids=["no-exporter", "no-tenants"])
async def test_a_namespace_is_unavailable_while_it_is_unknown_what_one_of_its_pods_holds(
    ask: Asker, asks: dict[str, Any], exporter: bool
) -> None:
    path = f"{ROOT}/namespaces/ml/metrics/gpu_power_usage_watts"
    every = path.replace("/ml/", "/*/")
    ask.port.add(fleet.pod(fleet.pod_json("o", node="n3", namespace="other")))
    held = [fleet.tenant("GPU-n3-0", "o", namespace="other")]
    ask.port.receive(fleet.frame(fleet.layout([fleet.gpu(0, node="n3")], held, node="n3")))
    assert await ask.values(every) == {"ml": "501", "other": "250500m"}
    ask.port.add(fleet.pod(fleet.pod_json("c", node="n9", **asks)))
    if exporter:
        ask.port.receive(fleet.blind_frame("n9"))
    assert "node n9 of pod c" in await ask.refusal(path, 503)
    assert await ask.values(every) == {"other": "250500m"}
    assert "1 of 2 namespaces" in (await ask(every)).headers["Warning"]


async def test_a_namespace_of_which_nothing_is_known_is_not_left_out(ask: Asker) -> None:
    ask.port.add(fleet.pod(fleet.pod_json("c", node="n9", namespace="dark")))
    answer = await ask(f"{ROOT}/namespaces/*/metrics/gpu_power_usage_watts")
    assert "dark" in answer.headers["Warning"]


@pytest.mark.parametrize(
    ("frame", "cause"),
    [
        (None, "no exporter reports for its node"),
        (fleet.blind_frame("n3"), "does not know which pods hold the node's devices"),
        (fleet.node_frame("n3", "other", 50.0), "does not list it as holding one"),
        (fleet.node_frame("n3", "c", None), "has no value yet"),
        (fleet.node_frame("n3", "c", 50.0, up=False), "does not respond"),
        (fleet.node_frame("n3", "c", 50.0, age=99.0), "too old"),
    ],
    ids=["exporter", "tenants", "assignment", "value", "device", "age"],
)
async def test_a_value_that_is_missing_for_now_is_a_warning_in_a_list_and_unavailable_alone(
    ask: Asker, frame: Any, cause: str
) -> None:
    ask.port.add(fleet.web("c", "n3"))
    if frame is not None:
        ask.port.receive(frame)
    answer = await ask(WEB)
    assert answer.status == 200
    start = '299 - "1 of 3 pods have no fresh value: c, since '
    assert answer.headers["Warning"].startswith(start)
    assert cause in answer.headers["Warning"]
    assert cause in await ask.refusal(f"{ROOT}/namespaces/ml/pods/c/gpu_utilization", 503)


async def test_a_namespace_none_of_whose_devices_are_chosen_has_no_items(ask: Asker) -> None:
    path = f"{ROOT}/namespaces/ml/metrics/gpu_power_usage_watts?metricLabelSelector=node%3D"
    assert await ask.values(f"{path}n2") == {"ml": "250500m"}
    assert await ask.values(f"{path}n7") == {}


async def test_pods_that_cannot_have_a_value_are_not_found_with_the_cause(ask: Asker) -> None:
    ask.port.add(
        fleet.pod(fleet.pod_json("cpu", labels={"app": "cpu"}, gpus=0)),
        fleet.pod(fleet.pod_json("waits", labels={"app": "waits"}, node="")),
        fleet.web("done", "n1", phase="Succeeded"),
    )
    assert "holds no GPU" in await ask.refusal(WEB.replace("web", "cpu"), 404)
    assert "not been scheduled" in await ask.refusal(WEB.replace("web", "waits"), 404)
    done = f"{ROOT}/namespaces/ml/pods/done/gpu_utilization"
    assert "has finished" in await ask.refusal(done, 404)
    assert "Warning" not in (await ask(WEB)).headers
