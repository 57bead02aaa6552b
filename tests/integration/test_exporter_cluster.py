"""What the exporter learns from an API server: the fake, and a real kube-apiserver."""

import asyncio
import json
import os
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from exporter.cluster import following
from exporter.cluster.node_labels import MIG_STATE
from exporter.settings import ExporterSettings
from exporter.tenants.fake import FakeKubelet
from exporter.tenants.protocol import Allocation, PodName
from exporter.tenants.tenants import TenantMap
from slicewatch.kube.client import ApiServer
from slicewatch.kube.configuration import connect
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.objects import NODE_METADATA, POD_IDENTITY, RESOURCE_SLICE, Kind
from slicewatch.kube.protocol import Kube
from slicewatch.wire.layout import Device, Tenant
from testbed import binaries
from testbed.api_server import ApiServerProcesses
from testbed.require import skip_or_fail

ROOT = Path(__file__).parents[2]
SECONDS = 30.0
pytestmark = pytest.mark.timeout(180)

GPU = Device(uuid="GPU-a", gpu=0, minor=0, model="H100", mig_enabled=True)
OTHER = Device(uuid="GPU-b", gpu=1, minor=1, model="H100")
PART = Device(
    uuid="MIG-1", gpu=0, parent="GPU-a", model="H100", gpu_instance=3, compute_instance=0,
    profile="1g.10gb", placement_start=4, placement_size=1,
)  # fmt: skip
DEVICES = (GPU, PART, OTHER)
CONTAINER = {"name": "c", "image": "example.com/nothing"}


@dataclass
class Cluster:
    """A cluster with a namespace and a node name of the test's own."""

    kube: Kube
    namespace: str
    kubeconfig: str = ""
    node: str = field(default_factory=lambda: f"n-{uuid.uuid4().hex[:8]}")

    async def put(self, kind: Kind[Any], name: str, namespace: str = "", **body: Any) -> None:
        metadata = {"name": name} | body.pop("metadata", {})
        await self.kube.create(kind, {"metadata": metadata, **body}, namespace)

    async def pod(self, name: str, node: str = "", **metadata: Any) -> None:
        spec = {"nodeName": node or self.node, "containers": [CONTAINER]}
        await self.put(POD_IDENTITY, name, self.namespace, metadata=metadata, spec=spec)

    async def finish(self, pod: str, phase: str) -> None:
        patch = {"status": {"phase": phase}}
        await self.kube.patch(
            POD_IDENTITY, pod, patch, namespace=self.namespace, subresource="status"
        )

    async def remove(self, kind: Kind[Any], name: str, namespace: str = "") -> None:
        if isinstance(self.kube, FakeKube):
            self.kube.delete(kind, name, namespace)
        else:
            assert isinstance(self.kube, ApiServer)
            path = f"{kind.path(namespace, name)}?gracePeriodSeconds=0"
            await self.kube._exchange("DELETE", path)

    async def slice(self, name: str, *devices: dict[str, Any], generation: int = 1) -> None:
        pool = {"name": self.node, "generation": generation, "resourceSliceCount": 1}
        spec = {"driver": "gpu.nvidia.com", "nodeName": self.node, "pool": pool}
        await self.put(RESOURCE_SLICE, name, spec=spec | {"devices": list(devices)})

    def held(self, device_id: str, pod: str = "p", **more: str) -> Allocation:
        about = {"resource": "nvidia.com/gpu", "container": "c"} | more
        return Allocation(namespace=self.namespace, pod=pod, device_id=device_id, **about)

    @asynccontextmanager
    async def followed(self, tenants: TenantMap, **asked: Any) -> AsyncIterator[None]:
        """Run what the exporter runs, until the first lists are there and the watches are open."""
        mig_state = asked.pop("mig_state", lambda _: None)
        settings = ExporterSettings(node_name=self.node, kubeconfig=self.kubeconfig, **asked)

        @asynccontextmanager
        async def to_fake() -> AsyncIterator[Kube]:
            yield self.kube

        way = None if self.kubeconfig else to_fake
        async with following(settings, tenants, mig_state=mig_state, connect=way) as cluster:
            await eventually(lambda: not cluster.faults, "the first lists")
            yield


@pytest.fixture(scope="module")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServerProcesses]:
    try:
        for name in ("etcd", "kube-apiserver"):
            binaries.binary(name)
    except binaries.Unavailable as error:
        skip_or_fail(str(error))
    with ApiServerProcesses(tmp_path_factory.mktemp("api-server")) as plane:
        yield plane


@pytest.fixture(autouse=True)
async def _no_connection_stays_open() -> AsyncIterator[None]:
    """A cancelled watch takes leave of its server, for which the event loop has to run on."""
    before = sockets()
    yield
    await eventually(lambda: sockets() <= before, "all connections to be closed")


def sockets() -> int:
    """Return how many sockets this process has open."""
    files = [file for file in Path("/proc/self/fd").iterdir() if file.is_symlink()]
    return sum(os.path.realpath(file).rpartition("/")[2].startswith("socket:") for file in files)


@pytest.fixture(params=["fake", "real"])
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    name = f"t-{uuid.uuid4().hex[:8]}"
    if request.param == "fake":
        yield Cluster(FakeKube(), name)
        return
    plane: ApiServerProcesses = request.getfixturevalue("api_server")
    path = str(plane.kubeconfig(plane.admin))
    server = ApiServer(await connect(path))
    await server._exchange("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield Cluster(server, name, path)
    await server.close()


async def eventually(condition: Any, what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"timed out waiting for {what}"
        await asyncio.sleep(0.02)


def on(tenants: TenantMap) -> dict[str, Tenant]:
    """Return the tenants by pod."""
    return {tenant.pod: tenant for tenant in tenants.resolve(DEVICES)}


async def test_tenants_carry_the_labels_and_the_workload_of_their_pods(cluster: Cluster) -> None:
    owner = {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "detect-5d9", "uid": "u",
        "controller": True,
    }  # fmt: skip
    labels = {"team": "vision", "pod-template-hash": "5d9"}
    await cluster.pod("p", labels=labels, ownerReferences=[owner])
    await cluster.pod("stranger", node="another-node", labels=labels)
    tenants = TenantMap()
    tenants.take([cluster.held("GPU-a"), cluster.held("GPU-b", "unheard-of")], now=0.0)

    async with cluster.followed(tenants, pod_labels=("team",), pod_workloads=True):
        await eventually(lambda: on(tenants)["p"].labels == {"team": "vision"}, "the label")
        found = on(tenants)
        assert (found["p"].workload_kind, found["p"].workload) == ("Deployment", "detect")
        assert found["p"].uid
        assert found["unheard-of"].labels == {}
        assert set(tenants.pods.current) == {PodName(cluster.namespace, "p")}

        relabel = {"metadata": {"labels": {"team": "speech"}}}
        await cluster.kube.patch(POD_IDENTITY, "p", relabel, namespace=cluster.namespace)
        await eventually(lambda: on(tenants)["p"].labels == {"team": "speech"}, "the new label")


async def test_pods_that_ended_hold_nothing_though_the_kubelet_lists_them(
    cluster: Cluster,
) -> None:
    """dcgm-exporter #140 and #16, volcano-vgpu-device-plugin #130."""
    for name in ("done", "broken", "deleted", "runs"):
        await cluster.pod(name)
    await cluster.finish("done", "Succeeded")
    tenants = TenantMap()
    pods = ("done", "broken", "deleted", "runs", "static")
    tenants.take([cluster.held(f"GPU-a::{n}", pod) for n, pod in enumerate(pods)], now=0.0)

    async with cluster.followed(tenants, pod_workloads=True):
        await eventually(lambda: set(on(tenants)) == {*pods} - {"done"}, "the one that had ended")
        # Whatever is deleted before it was seen is only as unknown as the static pod.
        running = {PodName(cluster.namespace, pod) for pod in ("broken", "deleted", "runs")}
        await eventually(lambda: running <= set(tenants.pods.current), "the others")

        await cluster.finish("broken", "Failed")
        await cluster.remove(POD_IDENTITY, "deleted", cluster.namespace)

        await eventually(lambda: set(on(tenants)) == {"runs", "static"}, "the two that ended")
        assert tenants.unresolved == ()


async def test_claimed_devices_are_what_their_resource_slices_say(cluster: Cluster) -> None:
    """dcgm-exporter #714: a MIG device without a uuid; and slices that change under a claim."""
    text = {"string": ""}
    gpu = {"name": "gpu-9", "attributes": {"uuid": text | {"string": "GPU-b"}}}
    part = {
        "name": "gpu-9-mig-1g10gb-19-4",
        "attributes": {
            "parentUUID": text | {"string": "GPU-a"},
            "profile": text | {"string": "1g.10gb"},
        },
    }
    first, second = f"{cluster.node}-1", f"{cluster.node}-2"
    await cluster.slice(first, gpu, part)
    dra = {"resource": "gpu.nvidia.com", "pool": cluster.node, "claim_namespace": "ml"}
    tenants = TenantMap()
    tenants.take(
        [
            cluster.held("gpu-9", "whole", claim="one", **dra),
            cluster.held("gpu-9-mig-1g10gb-19-4", "part", claim="two", **dra),
        ],
        now=0.0,
    )
    assert on(tenants) == {}

    async with cluster.followed(tenants, resource_slices=True):
        await eventually(lambda: set(on(tenants)) == {"whole", "part"}, "the slice")
        found = on(tenants)
        assert (found["whole"].device, found["whole"].claim) == ("GPU-b", "one")
        assert (found["part"].device, found["part"].claim) == ("MIG-1", "two")

        await cluster.slice(second, gpu, generation=2)
        await eventually(lambda: set(on(tenants)) == {"whole"}, "the newer generation")

        await cluster.remove(RESOURCE_SLICE, second)
        await eventually(lambda: set(on(tenants)) == {"whole", "part"}, "the older one")


async def test_the_state_of_the_mig_manager_is_told_as_it_changes(cluster: Cluster) -> None:
    await cluster.put(NODE_METADATA, cluster.node, metadata={"labels": {MIG_STATE: "success"}})
    told: list[str] = []

    async with cluster.followed(TenantMap(), mig_state_label=True, mig_state=told.append):
        await eventually(lambda: told == ["success"], "the state before")
        for state in ("pending", "success"):
            patch = {"metadata": {"labels": {MIG_STATE: state}}}
            await cluster.kube.patch(NODE_METADATA, cluster.node, patch)

        await eventually(lambda: told == ["success", "pending", "success"], "all states")


@asynccontextmanager
async def exporter_on(kubelet: Path, scenario: Path) -> AsyncIterator[str]:
    """Run an exporter as a process; yield the address of its port."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "cli", "exporter", "--listen", "127.0.0.1:0", "--tick-seconds", "0.2",
        "--kubelet-socket", str(kubelet), "--simulate", str(scenario), "--node-name", "n",
        cwd=ROOT, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        async with asyncio.timeout(SECONDS):
            while (line := json.loads(await process.stderr.readline()))["event"] != "serving":
                pass
        yield line["address"]
    finally:
        process.terminate()
        await process.communicate()


@pytest.mark.parametrize("claimed", [(), ("gpu-0",)])
async def test_gpus_that_nobody_holds_keep_their_series(
    tmp_path: Path, claimed: tuple[str, ...]
) -> None:
    """dcgm-exporter #549 and #611 (no pod at all), #569 (one claim on a node of many GPUs)."""
    scenario, socket = tmp_path / "node.yaml", tmp_path / "kubelet.sock"
    scenario.write_text("nodes: [{name: n, gpus: [{model: H100-80GB, count: 8}]}]\n")
    dra = {"resource": "gpu.nvidia.com", "container": "c"}
    held = [Allocation(namespace="ml", pod="p", device_id=name, **dra) for name in claimed]
    kubelet = FakeKubelet(socket)
    kubelet.give(held)
    async with (
        kubelet,
        exporter_on(socket, scenario) as address,
        aiohttp.ClientSession() as session,
    ):

        async def rows(name: str, *labels: str) -> list[tuple[str, ...]]:
            async with session.get(f"http://{address}/metrics") as answer:
                families = text_string_to_metric_families(await answer.text())
            found = (one for family in families for one in family.samples if one.name == name)
            return sorted(tuple(one.labels[label] for label in labels) for one in found)

        deadline = time.monotonic() + SECONDS
        holders = [("0", "p") for _ in claimed]
        while not await rows("slicewatch_tenants_age_seconds") or not await rows("gpu_up"):
            assert time.monotonic() < deadline, "timed out waiting for the kubelet and the GPUs"
        while await rows("gpu_tenant_info", "gpu", "pod") != holders:
            assert time.monotonic() < deadline, "timed out waiting for the tenant"

        assert await rows("gpu_up", "gpu") == [(str(number),) for number in range(8)]


async def test_an_account_without_rights_gets_tenants_and_the_reason(
    api_server: ApiServerProcesses,
) -> None:
    settings = ExporterSettings(
        node_name="n", pod_labels=("team",), resource_slices=True, mig_state_label=True,
        kubeconfig=str(api_server.kubeconfig(api_server.nobody)),
    )  # fmt: skip
    tenants = TenantMap()
    async with following(settings, tenants) as found:
        await eventually(
            lambda: (
                set(found.faults) == {"Pod", "ResourceSlice", "Node"}
                and all("forbidden" in fault for fault in found.faults.values())
            ),
            "three refusals",
        )
        held = Allocation(
            namespace="ml", pod="p", container="c", resource="nvidia.com/gpu", device_id="GPU-a"
        )
        tenants.take([held], now=0.0)
        assert set(on(tenants)) == {"p"}
