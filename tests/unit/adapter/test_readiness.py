"""When the adapter may get requests, and what it does when it is about to end."""

import time
from pathlib import Path

import aiohttp
import aiohttp.web
import pytest

from adapter.readiness import GRACE_SECONDS, Readiness
from adapter.registration import Registration, of_file
from adapter.sources.source import Target
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.objects import ServiceReference
from slicewatch.service.server import Address, add_health, serving
from testbed.front_proxy import ApiPort

PATH = "/apis/custom.metrics.k8s.io/v1beta2"


@pytest.fixture
def port(tmp_path: Path) -> ApiPort:
    return ApiPort(tmp_path)


def readiness(port: ApiPort, registration: Registration | None = None) -> Readiness:
    return Readiness(
        gate=port.gate, pods=port.cache, source=port.source, registration=registration
    )


def faults(of: Readiness) -> dict[str, str]:
    found = {name: check() for name, check in of.checks().items()}
    return {name: fault for name, fault in found.items() if fault is not None}


def test_it_is_ready_once_pods_are_listed_and_exporters_have_been_tried(port: ApiPort) -> None:
    made = readiness(port)
    port.cache.synced = False
    port.source.want(Target("http://a:9400"))
    assert faults(made).keys() == {"pods", "exporters"}
    port.cache.synced = True
    port.source.disconnect(Target("http://a:9400"), "refused")
    assert faults(made) == {}


def test_no_backend_makes_it_unready_again(port: ApiPort) -> None:
    """k8s #75788, #83332, #60807, agones #4381: while the API is unavailable no namespace can be deleted."""
    made = readiness(port)
    port.source.disconnect(Target("http://a:9400"), "refused")
    assert faults(made) == {}
    port.source.want(Target("http://b:9400"))
    port.cache.fault = "the watch is broken"
    assert faults(made) == {}


async def test_it_waits_for_a_certificate_that_can_be_verified_but_not_for_ever(
    port: ApiPort,
) -> None:
    registration = Registration(
        FakeKube(),
        service=ServiceReference(namespace="gpu", name="adapter"),
        names=(),
        bundle=of_file(""),
    )
    made = readiness(port, registration)
    assert faults(made) == {"certificate": "the serving certificate is not issued yet"}
    made.began_at = time.monotonic() - GRACE_SECONDS - 1
    assert faults(made) == {}
    made.began_at = time.monotonic()
    await registration.settle()
    assert faults(made) == {}


async def test_while_draining_it_is_unready_and_every_answer_is_the_last_of_its_connection(
    port: ApiPort,
) -> None:
    made = readiness(port)
    async with port.serving(), port.client(port.front_proxy()) as client:
        before = await port.ask(PATH, client=client)
        assert (before.status, before.headers.get("Connection")) == (200, None)
        made.drain()
        assert faults(made) == {"shutdown": "the process is shutting down"}
        for _ in range(2):  # The second comes over a new connection.
            answer = await port.ask(PATH, client=client)
            assert (answer.status, answer.headers["Connection"]) == (200, "close")


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        ("", 500, "[-]shutdown the process is shutting down\n[+]front-proxy ok\n"),
        ("/shutdown", 500, "[-]shutdown the process is shutting down\n"),
        ("/pods", 200, "ok\n"),
        ("?exclude=shutdown", 200, "ok\n"),
        ("?exclude=shutdown&exclude=pods&verbose", 200, "[+]front-proxy ok\n"),
        ("?exclude=fan&exclude=shutdown&verbose", 200, "no check fan to exclude\n"),
    ],
)
async def test_checks_can_be_asked_for_listed_and_left_out(
    port: ApiPort, query: str, status: int, text: str
) -> None:
    made = readiness(port)
    made.drain()
    app = aiohttp.web.Application()
    add_health(app, made.checks())
    async with (
        serving(app, Address("127.0.0.1", 0)) as address,
        aiohttp.ClientSession() as client,
        client.get(f"http://{address}/readyz{query}") as answer,
    ):
        assert (answer.status, text in await answer.text()) == (status, True)
        assert "pods" not in await answer.text() or "exclude=pods" not in query
