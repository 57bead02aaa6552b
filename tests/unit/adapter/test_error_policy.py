"""Every situation in which values are missing, and the answer that is safe for an autoscaler."""

import json

import pytest

from adapter.outcome import Absence
from slicewatch.wire.snapshot import encode
from testbed import fleet
from testbed.front_proxy import ROOT, WEB, Asker

PODS = f"{ROOT}/namespaces/ml/pods"


async def test_an_unknown_metric_is_not_found_with_what_is_known(ask: Asker) -> None:
    message = await ask.refusal(WEB.replace("gpu_utilization", "gpu_utilisation"), 404)
    assert "could not find the metric gpu_utilisation for pods" in message
    assert "gpu_device_utilization" in message
    assert "did you mean gpu_utilization?" in message


async def test_a_selector_that_matches_no_pod_is_an_empty_list(ask: Asker) -> None:
    """prometheus-adapter #456: an empty list, and explain says where the values are."""
    path = WEB.replace("web", "nobody")
    assert await ask.values(path) == {}
    note = json.loads((await ask(f"{path}&explain=true")).body)["note"]
    assert note == "none of the 2 pods of namespace ml matches 'app=nobody'"


async def test_pods_without_a_gpu_are_not_found_and_the_cause_is_counted(ask: Asker) -> None:
    """prometheus-adapter #644 and dcgm-exporter #150, #188: values that no pod is named in."""
    ask.port.add(
        *(fleet.pod(fleet.pod_json(f"c{n}", labels={"app": "cpu"}, gpus=0)) for n in "12")
    )
    message = await ask.refusal(WEB.replace("web", "cpu"), 404)
    assert "2 pods match, none has a fresh value: 2 since it holds no GPU" in message
    assert ask.port.view.dropped == {Absence.NO_DEVICE: 2}


async def test_pods_whose_gpu_is_not_theirs_by_the_exporter_are_unavailable(ask: Asker) -> None:
    """As dcgm-exporter #85, #138 and #411: the allocation is not known, though it was asked for."""
    ask.port.add(fleet.web("a", "n1"))
    ask.port.receive(fleet.blind_frame("n1"))
    ask.port.receive(fleet.blind_frame("n2"))
    message = await ask.refusal(WEB, 503)
    assert "2 since the exporter does not know which pods hold the node's devices" in message


async def test_samples_that_are_all_too_old_are_unavailable_with_their_ages(ask: Asker) -> None:
    ask.port.pass_seconds(40.0)
    assert "40.5 s old, the limit is 15 s" in await ask.refusal(WEB, 503)


async def test_of_some_that_are_too_old_the_fresh_ones_are_served_with_a_warning(
    ask: Asker,
) -> None:
    """And the warning says why: the exporter of a node is silent, or its GPU is."""
    ask.port.pass_seconds(40.0)
    ask.port.receive(fleet.node_frame("n2", "b", 61.0))
    answer = await ask(WEB)
    assert await ask.values(WEB) == {"b": "61"}
    assert answer.headers["Warning"] == (
        '299 - "1 of 2 pods have no fresh value: a, since the last value is too old"'
    )


@pytest.mark.parametrize("value", ["1e999", "-1e999", "NaN", "Infinity"])
async def test_what_is_no_number_is_no_item(ask: Asker, value: str) -> None:
    """prometheus-adapter #280 and #394, KEDA #7475: neither 0 nor the least integer."""
    layout = fleet.layout([fleet.gpu(0)], [fleet.tenant("GPU-n1-0", "a")], number=2)
    good = fleet.frame(layout, fleet.snapshot(layout, {"gpu_utilization": [12345.0]}))
    line = encode(good).replace(b"12345.0", value.encode())
    target, state = next(iter(ask.port.source.streams.items()))
    ask.port.source.receive(target, line, ask.port.monotonic())
    # The line is refused as a whole, so that what was there before stays, and grows old.
    assert state.rejected == 1
    assert await ask.values(WEB) == {"a": "20", "b": "60"}


async def test_a_pod_that_was_deleted_is_gone_at_once(ask: Asker) -> None:
    """kube-metrics-adapter #97, dcgm-exporter #140: not averaged in until a cache forgets it."""
    assert await ask.values(WEB) == {"a": "20", "b": "60"}
    ask.port.pods.changed(ask.port.pods.get("ml", "b"), None)
    assert await ask.values(WEB) == {"a": "20"}


async def test_an_exporter_that_names_the_pod_only_now_and_then_makes_no_other_value(
    ask: Asker,
) -> None:
    """dcgm-exporter #428: with the pod there is its value, without it none, and never a zero."""
    for _ in range(3):
        ask.port.receive(fleet.blind_frame("n2"))
        assert await ask.values(WEB) == {"a": "20"}
        ask.port.receive(fleet.node_frame("n2", "b", 60.0))
        assert await ask.values(WEB) == {"a": "20", "b": "60"}


async def test_the_first_reading_is_the_next_answer(ask: Asker) -> None:
    """prometheus-adapter #532: nothing is listed anew, so a new pod has its value at once."""
    ask.port.add(fleet.web("c", "n3"))
    assert "c" not in await ask.values(WEB)
    ask.port.receive(fleet.node_frame("n3", "c", 33.0))
    assert (await ask.values(WEB))["c"] == "33"


async def test_no_pod_has_an_empty_name(ask: Asker) -> None:
    """dcgm-exporter #150, gpu-operator #472: the processes of the host are a tenant, and no object."""
    layout = fleet.layout([fleet.gpu(0)], [fleet.tenant("GPU-n1-0", "", namespace="")], number=2)
    ask.port.receive(fleet.frame(layout))
    assert await ask.values(f"{PODS}/*/gpu_utilization") == {"b": "60"}
    assert "" not in await ask.values(f"{ROOT}/namespaces/*/metrics/gpu_memory_used_bytes")
