"""The adapter's process on loopback: exporter's stream and pods in, HTTPS answers out."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from slicewatch.kube import errors
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.objects import CONFIG_MAP, ENDPOINT_SLICE, POD
from testbed import fleet
from testbed.adapter_process import (
    SECONDS,
    ExporterStub,
    World,
    authentication,
    eventually,
    running,
)
from testbed.cluster.pki import FRONT_PROXY_AUTHORITY, Certificate, Pki

V1BETA1 = "/apis/custom.metrics.k8s.io/v1beta1"
V1BETA2 = "/apis/custom.metrics.k8s.io/v1beta2"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(kube=FakeKube(), exporter=ExporterStub(), pki=Pki(tmp_path / "pki"))
    for name in ("web-a", "web-b"):
        await made.kube.create(POD, fleet.pod_json(name, labels={"app": "web"}), "ml")
    await made.kube.create(CONFIG_MAP, authentication(made.pki), "kube-system")
    async with running(made, tmp_path):
        yield made


async def read(client: aiohttp.ClientSession, path: str) -> tuple[int, dict[str, Any]]:
    async with client.get(path) as answer:
        return answer.status, await answer.json()


async def values(client: aiohttp.ClientSession, path: str) -> dict[str, str] | None:
    status, body = await read(client, path)
    if status != 200:
        return None
    return {item["describedObject"]["name"]: item["value"] for item in body["items"]}


async def settled(client: aiohttp.ClientSession, path: str, wanted: dict[str, str]) -> None:
    async def attempt() -> bool:
        return await values(client, path) == wanted

    await eventually(attempt, f"{path} to be {wanted}")


PODS = f"{V1BETA2}/namespaces/ml/pods/*/gpu_utilization?labelSelector=app%3Dweb"


async def test_a_value_travels_the_whole_way_and_changes_with_the_next_frame(world: World) -> None:
    async with world.client() as client:
        await settled(client, PODS, {"web-a": "30", "web-b": "90"})
        world.exporter.utilization = [31.5, 90.0]
        await settled(client, PODS, {"web-a": "31500m", "web-b": "90"})


async def test_deleted_and_new_pods_reach_the_answer(world: World) -> None:
    async with world.client() as client:
        await settled(client, PODS, {"web-a": "30", "web-b": "90"})
        world.kube.delete(POD, "web-b", "ml")
        await settled(client, PODS, {"web-a": "30"})
        await world.kube.create(POD, fleet.pod_json("web-c", labels={"app": "web"}), "ml")
        world.exporter.layout = fleet.layout(
            world.exporter.layout.devices,
            [fleet.tenant("GPU-n1-0", "web-a"), fleet.tenant("GPU-n1-1", "web-c")],
            number=2,
        )
        await settled(client, PODS, {"web-a": "30", "web-c": "90"})


async def test_values_of_a_silent_exporter_are_unavailable_until_it_is_back(world: World) -> None:
    async with world.client() as client:
        await settled(client, PODS, {"web-a": "30", "web-b": "90"})
        world.exporter.talks = False

        async def refused() -> str:
            status, body = await read(client, PODS)
            return body["message"] if status == 503 else ""

        message = await eventually(refused, "the values to be too old")
        assert "too old" in message
        world.exporter.talks = True
        await settled(client, PODS, {"web-a": "30", "web-b": "90"})
    assert world.exporter.streams >= 2


async def test_trust_follows_the_published_authority_without_a_restart(
    world: World, tmp_path: Path
) -> None:
    rotated = Pki(tmp_path / "rotated")
    old = world.pki.issue("front-proxy-client", ca=FRONT_PROXY_AUTHORITY)
    new = rotated.issue("front-proxy-client", ca=FRONT_PROXY_AUTHORITY)

    async def status(shown: Certificate) -> int:
        try:
            async with world.client(shown) as client:
                return (await read(client, V1BETA1))[0]
        except (aiohttp.ClientError, ConnectionError):
            return 0

    assert (await status(old), await status(new)) == (200, 0)
    await world.kube.patch(
        CONFIG_MAP,
        "extension-apiserver-authentication",
        {"data": authentication(rotated)["data"]},
        namespace="kube-system",
    )

    async def rotation() -> bool:
        return (await status(new)) == 200

    await eventually(rotation, "the new authority")
    assert await status(old) == 0


async def ready(client: aiohttp.ClientSession) -> bool:
    async with client.get("/readyz") as answer:
        return answer.status == 200


async def synced(client: aiohttp.ClientSession) -> dict[str, Metric]:
    """Return the families of the plain port once they say that pods are watched."""
    async with client.get("/metrics") as answer:
        families = {f.name: f for f in text_string_to_metric_families(await answer.text())}
    watched = families["slicewatch_adapter_pods_synced"].samples[0].value == 1.0
    return families if watched and await ready(client) else {}


async def test_the_plain_port_serves_health_and_metrics_and_nothing_else(world: World) -> None:
    async with aiohttp.ClientSession(world.plain) as client:
        families = await eventually(lambda: synced(client), "the pods to be watched")
        async with client.get(V1BETA1) as answer:
            assert answer.status == 404
    (requests,) = families["gpu_pod_requests"].samples
    assert requests.value == 2.0
    assert requests.labels["phase"] == "Running"
    (connected,) = families["slicewatch_adapter_exporter_connected"].samples
    assert (connected.labels, connected.value) == ({"node": "n1"}, 1.0)


async def test_open_metrics_are_well_formed(world: World) -> None:
    accept = {"Accept": "application/openmetrics-text;version=1.0.0"}
    async with aiohttp.ClientSession(world.plain) as client:
        await eventually(lambda: ready(client), "readiness")
        async with client.get("/metrics", headers=accept) as answer:
            assert answer.content_type == "application/openmetrics-text"
            families = {f.name for f in openmetrics(await answer.text())}
    assert {"gpu_pod_requests", "slicewatch_adapter_pods_synced"} <= families


async def test_a_restarted_api_server_is_followed_again(world: World) -> None:
    async with world.client() as client:
        await settled(client, PODS, {"web-a": "30", "web-b": "90"})
        world.kube.break_watches(errors.UnavailableError("restarting"))
        world.kube.fail_next(errors.UnavailableError("restarting"), times=3)
        await eventually(lambda: faults_taken(world), "the faults to be met")
        world.kube.delete(POD, "web-b", "ml")
        world.kube.compact()
        await settled(client, PODS, {"web-a": "30"})


async def faults_taken(world: World) -> bool:
    return not world.kube._faults


async def test_exporters_are_found_by_the_endpoints_of_their_service(
    world: World, tmp_path: Path
) -> None:
    found = World(kube=world.kube, exporter=ExporterStub(), pki=world.pki, discovers=True)
    folder = tmp_path / "other"
    folder.mkdir()
    async with (
        running(found, folder, "--exporter-namespace=gpu", "--exporter-service=exporter"),
        found.client() as client,
    ):
        assert await values(client, PODS) is None
        port = {"name": "http", "port": int(found.exporter_address.rpartition(":")[2])}
        endpoint = {"addresses": ["127.0.0.1"], "conditions": {"ready": True}}
        body = {
            "metadata": {"name": "e", "labels": {"kubernetes.io/service-name": "exporter"}},
            "endpoints": [endpoint],
            "ports": [port],
        }
        await world.kube.create(ENDPOINT_SLICE, body, "gpu")
        await settled(client, PODS, {"web-a": "30", "web-b": "90"})
        world.kube.delete(ENDPOINT_SLICE, "e", "gpu")

        async def gone() -> bool:
            return await values(client, PODS) is None

        await eventually(gone, "the exporter to be forgotten")


async def test_two_adapters_answer_the_same(world: World, tmp_path: Path) -> None:
    other = World(kube=world.kube, exporter=world.exporter, pki=world.pki)
    folder = tmp_path / "other"
    folder.mkdir()
    async with running(other, folder), world.client() as first, other.client() as second:
        for client in (first, second):
            await settled(client, PODS, {"web-a": "30", "web-b": "90"})


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--kubeconfig=/nowhere"], "kubeconfig /nowhere does not exist"),
        (["--tls-cert-file=/x"], "set both or neither"),
        (["--exporter=x"], "did you mean --exporters?"),
        ([], "set --kubeconfig"),
    ],
)
async def test_unusable_settings_end_the_process_with_a_reason(
    flags: list[str], message: str
) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KUBERNETES_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "adapter", *flags, stderr=asyncio.subprocess.PIPE, env=environment
    )
    _, said = await asyncio.wait_for(process.communicate(), SECONDS)
    assert process.returncode == 2
    assert message in said.decode()
    assert "Traceback" not in said.decode()
