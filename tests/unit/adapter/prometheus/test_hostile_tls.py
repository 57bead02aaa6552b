"""A backend that is suddenly somebody else: nothing is sent to it, and users are told why."""

import contextlib
import ssl

import pytest

from adapter.sources.prometheus.credentials import Access
from testbed.cluster.pki import Pki
from testbed.front_proxy import WALL
from testbed.scripted_prometheus import Said, ScriptedPrometheus
from tests.unit.adapter.prometheus.scene import POD_RULE, PODS

PATH = f"{PODS}/*/dcgm_utilization"


def context(pki):
    own = pki.issue("prometheus", sans=["127.0.0.1"], client=False)
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made.load_cert_chain(own.certificate, own.key)
    return made


class Place:
    """One address, where one server after the other listens, and what the adapter knows of it."""

    def __init__(self, folder, port):
        self.known, self.other = Pki(folder / "known"), Pki(folder / "other")
        self.ca, self.token = folder / "trusted.crt", folder / "token"
        self.token.write_text("secret")
        self.port = port
        self.url = f"https://127.0.0.1:{port}/prefix"
        self.follow(self.known)

    @property
    def access(self):
        return Access(ca_file=str(self.ca), token_file=str(self.token))

    def follow(self, pki):
        fresh = self.ca.with_name("fresh")
        fresh.write_bytes(pki.ca.read_bytes())
        fresh.replace(self.ca)

    @contextlib.asynccontextmanager
    async def taken(self, tls):
        server = ScriptedPrometheus()
        server.values(({"pod": "a"}, 30), at=WALL)
        async with server.serving(tls, self.port):
            yield server


@pytest.fixture
def place(tmp_path, unused_tcp_port, prometheus):
    made = Place(tmp_path, unused_tcp_port)
    prometheus.url = made.url
    return made


async def asked_again(served):
    """Ask once what is kept of the last answer is too old."""
    served.port.pass_seconds(10)
    return await served.dcgm()


async def refused_again(served):
    served.port.pass_seconds(10)
    return await served.ask.refusal(PATH, 503)


async def test_a_certificate_of_another_authority_is_refused_until_the_file_follows(serve, place):
    async with serve(POD_RULE, access=place.access) as served:
        async with place.taken(context(place.known)) as first:
            assert await served.dcgm() == {"a": "30"}
            assert first.asked[-1].headers["Authorization"] == "Bearer secret"
        async with place.taken(context(place.other)) as second:
            message = await refused_again(served)
            assert "the backend default shows a certificate that is not accepted" in message
            assert "127.0.0.1" not in message
            assert second.asked == []
            place.follow(place.other)
            assert await asked_again(served) == {"a": "30"}


async def test_a_backend_that_speaks_no_tls_any_more_gets_no_token(serve, place):
    async with serve(POD_RULE, access=place.access) as served:
        async with place.taken(context(place.known)):
            assert await served.dcgm() == {"a": "30"}
        async with place.taken(None) as plain:
            message = await refused_again(served)
            assert "the backend default cannot be reached: no TLS there" in message
            assert plain.asked == []
        async with place.taken(context(place.known)):
            assert await asked_again(served) == {"a": "30"}


async def test_a_backend_that_points_to_plain_http_is_not_followed(serve, place):
    async with (
        serve(POD_RULE, access=place.access) as served,
        ScriptedPrometheus().serving() as to,
    ):
        async with place.taken(context(place.known)) as first:
            elsewhere = {"Location": f"{to.url}/api/v1/query"}
            first.say = lambda _: Said(body=b"", status=307, headers=elsewhere)
            assert "307 Temporary Redirect" in await served.ask.refusal(PATH, 503)
        assert to.asked == []
