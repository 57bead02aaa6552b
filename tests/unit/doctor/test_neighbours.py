"""Those that the exporter asks besides the driver: each present, absent, and wrong."""

import asyncio
import json
import socket

import pytest
from aiohttp import web

from exporter.doctor import neighbours
from exporter.doctor.collection import collect
from exporter.doctor.facts import NoAnswer
from exporter.nvml.simulated import SimulatedNvml
from exporter.settings import ExporterSettings
from exporter.tenants.fake import FakeKubelet
from exporter.tenants.protocol import Allocation, DeadlineError, Offer, UnreachableError
from slicewatch.kube.errors import ForbiddenError
from slicewatch.service.server import Address, add_health, serving

ANYWHERE = Address("127.0.0.1", 0)
HELD = Allocation(namespace="n", pod="p", container="c", resource="nvidia.com/gpu", device_id="G")


def settings(**about):
    return ExporterSettings(**{"simulate": "demo", "kubelet_socket": ""} | about)


def told(question, **about):
    return asyncio.to_thread(question, settings(**about))


def health(fault):
    app = web.Application()
    add_health(app, {"snapshots": lambda: fault})
    return app


async def test_a_port_that_nobody_has_is_free():
    async with serving(web.Application(), ANYWHERE) as address:
        pass
    assert await told(neighbours.ask_port, listen=address) == neighbours.FREE


@pytest.mark.parametrize(("fault", "ready"), [(None, True), ("last snapshot is 90 s old", False)])
async def test_an_exporter_on_the_port_says_how_it_is(fault, ready):
    """gpu-monitoring-tools #188: frozen values behind a health check that is content."""
    async with serving(health(fault), ANYWHERE) as address:
        said = await told(neighbours.ask_port, listen=address)
    assert (fault or "ok") in (said if ready else said.why)
    assert isinstance(said, NoAnswer) != ready


async def test_something_else_on_the_port_is_no_exporter():
    async with serving(web.Application(), ANYWHERE) as address:
        said = await told(neighbours.ask_port, listen=address)
    assert "Address already in use" in said.why


async def test_a_listener_that_says_nothing_costs_a_second():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        listen = Address("127.0.0.1", silent.getsockname()[1])
        async with asyncio.timeout(10):
            said = await told(neighbours.ask_port, listen=listen)
    assert "does not say how it is" in said.why


async def test_the_kubelet_lists_and_offers(tmp_path):
    async with FakeKubelet(tmp_path / "k.sock") as kubelet:
        kubelet.give([HELD])
        kubelet.offer([Offer("nvidia.com/gpu", "G")])
        assert await neighbours.ask_allocations(str(kubelet.socket)) == (HELD,)
        offers = await neighbours.ask_offers(str(kubelet.socket))
    assert offers == (Offer("nvidia.com/gpu", "G"),)


@pytest.mark.parametrize("ask", [neighbours.ask_allocations, neighbours.ask_offers])
async def test_a_kubelet_that_is_not_there_raises_what_is_to_be_said(ask, tmp_path):
    with pytest.raises(UnreachableError, match="no kubelet answers"):
        await ask(str(tmp_path / "k.sock"))


async def test_a_kubelet_that_hangs_costs_the_deadline(tmp_path):
    async with FakeKubelet(tmp_path / "k.sock") as kubelet:
        kubelet.hangs = True
        with pytest.raises(DeadlineError, match="within 2 s"):
            await neighbours.ask_allocations(str(kubelet.socket))


@pytest.mark.parametrize(("page", "said"), [
    ('DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID="G",GPU_I_ID="1"} 0.5', "has profiling"),
    ('DCGM_FI_DEV_GPU_TEMP{UUID="G"} 40', "dcgm_no_profiling"),
    ("up 1", "dcgm_other_page"),
])  # fmt: skip
async def test_the_page_of_dcgm_is_judged_by_what_is_on_it(page, said):
    async def metrics(_):
        return web.Response(text=page + "\n")

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    async with serving(app, ANYWHERE) as address:
        about = settings(dcgm_url=f"http://{address}/metrics", listen=Address("", 1))
        answer = await neighbours.ask_dcgm(about)
    assert said in (answer.why if isinstance(answer, NoAnswer) else answer)


async def test_dcgm_that_is_not_there_is_unreachable():
    async with serving(web.Application(), ANYWHERE) as address:
        pass
    about = settings(dcgm_url=f"http://{address}/metrics", listen=Address("", 1))
    assert "dcgm_unreachable" in (await neighbours.ask_dcgm(about)).why


def kubeconfig(folder, address):
    """Return a kubeconfig of a server without TLS."""
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": f"http://{address}"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }  # fmt: skip
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return str(path)


async def test_what_the_api_server_refuses_is_named(tmp_path):
    async def pods(_):
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})

    async def slices(_):
        status = {"kind": "Status", "message": "may not list resourceslices", "code": 403}
        return web.json_response(status, status=403)

    app = web.Application()
    app.router.add_get("/api/v1/pods", pods)
    app.router.add_get("/apis/resource.k8s.io/v1/resourceslices", slices)
    async with serving(app, ANYWHERE) as address:
        file = kubeconfig(tmp_path, address)
        allowed = settings(kubeconfig=file, pod_workloads=True)
        refused = settings(kubeconfig=file, pod_workloads=True, resource_slices=True)
        assert await neighbours.ask_api_server(allowed) == "lists what is asked for"
        with pytest.raises(ForbiddenError, match="resourceslices"):
            await neighbours.ask_api_server(refused)


def test_links_are_counted_and_an_empty_folder_is_a_fault(tmp_path):
    about = settings(container_links=str(tmp_path))
    assert "is empty" in neighbours.ask_links(about).why
    (tmp_path / "p_n_c-0.log").symlink_to("/nowhere")
    assert neighbours.ask_links(about) == "1 links"


def test_files_that_the_settings_name_are_read(tmp_path):
    (tmp_path / "web.yml").write_text("tls_servr_config: {}\n")
    (tmp_path / "tokens").write_text("\n")
    about = settings(
        web_config_file=str(tmp_path / "web.yml"), snapshot_token_file=str(tmp_path / "tokens")
    )
    named = [fault.partition(":")[0] for fault in neighbours.file_faults(about)]
    assert named == ["web_config_file", "snapshot_token_file"]


@pytest.mark.parametrize("shared", [True, False])
def test_processes_are_judged_by_the_pid_namespace(shared, tmp_path):
    """Whatever namespace the test runs in, "any" asks for no other one."""
    about = settings(pid_namespace="any" if shared else "host")
    said = neighbours.ask_processes(about)
    assert said == "all can be read" or (not shared and "namespace" in said.why)


def test_everything_that_the_settings_name_is_asked(tmp_path):
    about = settings(
        dcgm_url="http://127.0.0.1:1/metrics", pod_workloads=True, kubeconfig=str(tmp_path / "no"),
        listen=ANYWHERE,
    )  # fmt: skip
    facts = collect(about, SimulatedNvml.of("demo"), now_us=lambda: 0, settings_faults=("bad",))
    assert facts.services["settings"] == NoAnswer("bad")
    assert "does not exist" in facts.services["api-server"].why
    assert "dcgm_unreachable" in facts.services["dcgm"].why
    assert facts.services["port"] == neighbours.FREE
    assert (facts.machine, facts.library, facts.allocations) == (None, None, None)
