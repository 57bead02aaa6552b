"""An API server that is missing, refuses or knows less: the exporter goes on with what it has."""

import asyncio
import os
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from exporter.cluster import following
from exporter.settings import ExporterSettings
from exporter.tenants.protocol import Allocation, PodName
from exporter.tenants.tenants import TenantMap
from slicewatch.kube import errors
from slicewatch.kube.configuration import ConfigurationError
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.objects import POD_IDENTITY, RESOURCE_SLICE
from slicewatch.wire.layout import Device

SECONDS = 20.0
NODE = "node-1"
GPU = Device(uuid="GPU-a", gpu=0, minor=0, model="H100")
HELD = Allocation(
    namespace="ml", pod="p", container="c", resource="nvidia.com/gpu", device_id="GPU-a"
)
POD = {
    "metadata": {"name": "p", "labels": {"team": "vision"}},
    "spec": {"nodeName": NODE},
    "status": {"phase": "Running"},
}
LABELS = ExporterSettings(node_name=NODE, pod_labels=("team",))


class OldCluster(FakeKube):
    """A cluster from before resource.k8s.io/v1."""

    async def list(self, kind, selection, *, limit, more=""):
        if kind is RESOURCE_SLICE:
            raise errors.NotFoundError(f"GET {kind.path()}: 404 page not found")
        return await super().list(kind, selection, limit=limit, more=more)


def connection(*outcomes):
    """Return a way to connect that plays back its outcomes: errors, and then a Kube."""
    left = list(outcomes)

    @asynccontextmanager
    async def connect():
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        yield outcome

    return connect


async def until(condition, what):
    deadline = asyncio.get_running_loop().time() + SECONDS
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, f"timed out waiting for {what}"
        await asyncio.sleep(0.005)


@pytest.fixture
def tenants():
    made = TenantMap()
    made.take((HELD,), now=0.0)
    return made


async def test_the_last_known_facts_outlive_the_api_server(tenants):
    """dcgm-exporter #342: labels must not come and go with a source that fails."""
    kube = FakeKube()
    await kube.create(POD_IDENTITY, POD, "ml")
    async with following(LABELS, tenants, connect=connection(kube)) as cluster:
        await until(lambda: tenants.pods.current and not cluster.faults, "the pod")
        (labelled,) = tenants.resolve((GPU,))
        away = errors.UnavailableError("connection refused")
        kube.fail_next(away, times=100)
        kube.break_watches(away)
        await until(lambda: cluster.faults == {"Pod": "connection refused"}, "the fault")

        assert tenants.resolve((GPU,)) == (labelled,)
        assert labelled.labels == {"team": "vision"}


async def test_an_api_server_that_never_answers_costs_only_the_labels(tenants):
    """dcgm-exporter #342 from the start: the tenants come without labels."""
    kube = FakeKube()
    kube.fail_next(errors.UnavailableError("no route to host"), times=1000)
    async with following(LABELS, tenants, connect=connection(kube)) as cluster:
        await until(lambda: cluster.faults == {"Pod": "no route to host"}, "the fault")

        (tenant,) = tenants.resolve((GPU,))
        assert (tenant.pod, tenant.labels, tenant.uid) == ("p", {}, "")


async def test_without_a_token_the_exporter_runs_and_says_why_it_knows_less(tenants, monkeypatch):
    """dcgm-exporter #698 and #624: no service account is no reason to end."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with capture_logs() as said:
        async with following(LABELS, tenants) as cluster:
            await until(
                lambda: "no kubeconfig given" in cluster.faults.get("API server", ""), "it"
            )
            assert len(tenants.resolve((GPU,))) == 1

    assert [(line["event"], line["log_level"]) for line in said] == [
        ("no access to the API server", "warning")
    ]


async def test_a_token_that_comes_later_is_used(tenants):
    kube = FakeKube()
    await kube.create(POD_IDENTITY, POD, "ml")
    missing = ConfigurationError("no token yet")
    with capture_logs() as said:
        connect = connection(missing, missing, kube)
        async with following(LABELS, tenants, connect=connect) as cluster:
            await until(lambda: tenants.pods.current and not cluster.faults, "the pod")

    assert [line["error"] for line in said if "error" in line] == ["no token yet"]


async def test_an_account_without_rights_is_told_by_kind(tenants):
    """dcgm-exporter #698 and #624, with a token that may not list pods."""
    kube = FakeKube()
    kube.fail_next(errors.ForbiddenError("pods is forbidden"), times=1000)
    async with following(LABELS, tenants, connect=connection(kube)) as cluster:
        await until(lambda: cluster.faults == {"Pod": "pods is forbidden"}, "the refusal")


async def test_a_cluster_without_resource_slices_blocks_nothing_else(tenants):
    """dcgm-exporter waits for ever for an informer of an API that is absent."""
    settings = ExporterSettings(node_name=NODE, pod_labels=("team",), resource_slices=True)
    kube = OldCluster()
    await kube.create(POD_IDENTITY, POD, "ml")
    async with following(settings, tenants, connect=connection(kube)) as cluster:
        await until(lambda: list(cluster.faults) == ["ResourceSlice"], "all but the slices")

        assert tenants.pods.current[PodName("ml", "p")].labels == {"team": "vision"}
        assert "404" in cluster.faults["ResourceSlice"]


async def test_the_end_of_the_body_ends_the_watches_and_the_connection(tenants):
    kube, closed = FakeKube(), []

    @asynccontextmanager
    async def connect():
        try:
            yield kube
        finally:
            closed.append(True)

    before = asyncio.all_tasks()
    async with following(LABELS, tenants, connect=connect) as cluster:
        await until(lambda: not cluster.faults, "the watch")
        assert asyncio.all_tasks() > before
        assert not closed

    assert asyncio.all_tasks() == before
    assert closed


PROGRAM = """
import asyncio, sys
import exporter.app, exporter.cluster
from exporter.settings import ExporterSettings
from exporter.tenants.tenants import TenantMap

async def main():
    settings = ExporterSettings(pod_workloads={on})
    if settings.asks_cluster:
        async with exporter.cluster.following(settings, TenantMap()):
            pass

asyncio.run(main())
print(any(name.split(".")[0] == "kubernetes" for name in sys.modules))
"""


@pytest.mark.parametrize("on", [False, True])
def test_a_kubernetes_client_is_imported_only_where_it_is_used(pytestconfig, on):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(on=on)],
        env=os.environ | {"PYTHONPATH": str(pytestconfig.rootpath)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == str(on)
