"""The gate on a real server: TLS that is replaced, client names, passwords, headers, limits."""

import datetime
import ssl
from contextlib import asynccontextmanager

import aiohttp
import bcrypt
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.service import certificates
from slicewatch.service.server import Address, add_health, serving
from slicewatch.service.tls import ClientAuth, ServerTls, TlsError, client_names
from slicewatch.service.web.config import RateLimit, WebConfig
from slicewatch.service.web.gate import Bucket, Gate, _basic

DAY = datetime.timedelta(days=1)
USERS = {"alice": bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()}
ALICE = {"Authorization": aiohttp.encode_basic_auth("alice", "secret")}
WRONG = {"Authorization": aiohttp.encode_basic_auth("alice", "x")}


class Authority:
    """An authority that certifies servers and clients, and a client's context that trusts it."""

    def __init__(self, folder, name):
        self.folder = folder
        self.name = name
        self.issued = certificates.issue(name, lifetime=DAY, authority=True)

    def server(self, name="127.0.0.1"):
        made = certificates.issue(
            name, lifetime=DAY, issuer=self.issued, server_names=["127.0.0.1"]
        )
        return made.certificate_pem, made.key_pem

    def client(self, name=None, sans=()):
        context = ssl.create_default_context(cadata=self.issued.certificate_pem.decode())
        if name is not None:
            made = certificates.issue(
                name, lifetime=DAY, issuer=self.issued, server_names=sans, client=True
            )
            path = self.folder / f"{name}.pem"
            path.write_bytes(made.certificate_pem + made.key_pem)
            context.load_cert_chain(path)
        return context


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path, "authority")


def tls_of(authority, **options):
    certificate, key = authority.server()
    return ServerTls(certificate_pem=certificate, key_pem=key, **options)


def verifying(authority, client_auth=ClientAuth.REQUIRE):
    pem = authority.issued.certificate_pem
    return tls_of(authority, client_auth=client_auth, client_ca_pem=pem)


@asynccontextmanager
async def running(config, **options):
    async def hello(_):
        return web.Response(text="hello")

    gate = Gate(**options)
    gate.apply(config)
    app = web.Application()
    gate.guard(app)
    app.router.add_get("/", hello)
    add_health(app, {})
    async with serving(app, Address("127.0.0.1", 0), gate.tls) as address:
        yield gate, f"{address}"


async def get(url, context=None, headers=None):
    """Return status, headers and text over a new connection."""
    async with (
        aiohttp.ClientSession(headers=headers) as client,
        client.get(url, ssl=context or True) as response,
    ):
        return response.status, response.headers, await response.text()


async def test_without_configuration_everything_passes():
    async with running(WebConfig()) as (_, place):
        assert (await get(f"http://{place}/"))[0] == 200


async def test_a_certificate_that_is_replaced_is_served_on_the_next_connection(tmp_path):
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    async with running(WebConfig(tls=tls_of(old))) as (gate, place):
        assert (await get(f"https://{place}/", old.client()))[0] == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await get(f"https://{place}/", new.client())
        gate.apply(WebConfig(tls=tls_of(new)))
        assert (await get(f"https://{place}/", new.client()))[0] == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await get(f"https://{place}/", old.client())


async def test_the_clients_authority_and_tls_itself_can_be_replaced(tmp_path):
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    client = old.client("old-client")
    async with running(WebConfig(tls=verifying(old))) as (gate, place):
        assert (await get(f"https://{place}/", client))[0] == 200
        trusting_new = tls_of(
            old, client_auth=ClientAuth.REQUIRE, client_ca_pem=new.issued.certificate_pem
        )
        gate.apply(WebConfig(tls=trusting_new))
        with pytest.raises(aiohttp.ClientError):
            await get(f"https://{place}/", client)
        gate.apply(WebConfig())
        assert (await get(f"http://{place}/"))[0] == 200


async def test_what_cannot_be_served_leaves_what_is_served(authority):
    async with running(WebConfig(tls=tls_of(authority))) as (gate, place):
        garbled = ServerTls(certificate_pem=b"garbled", key_pem=b"")
        with pytest.raises(TlsError, match="certificate and key cannot be used"):
            gate.apply(WebConfig(tls=garbled, users=USERS))
        assert (await get(f"https://{place}/", authority.client()))[0] == 200


async def test_a_client_without_certificate_is_refused_where_one_is_required(authority):
    async with running(WebConfig(tls=verifying(authority))) as (_, place):
        with pytest.raises(aiohttp.ClientError):
            await get(f"https://{place}/", authority.client())
    for kind in (ClientAuth.VERIFY_IF_GIVEN, ClientAuth.REQUEST):
        async with running(WebConfig(tls=verifying(authority, kind))) as (_, place):
            assert (await get(f"https://{place}/", authority.client()))[0] == 200


async def test_only_clients_of_an_allowed_name_are_answered(authority):
    config = WebConfig(
        tls=verifying(authority), allowed_sans=frozenset({"prometheus", "10.1.2.3"})
    )
    async with running(config) as (_, place):
        for names in (["prometheus"], ["other", "10.1.2.3"]):
            assert (await get(f"https://{place}/", authority.client("c", names)))[0] == 200
        for names in (["grafana"], []):
            status, headers, text = await get(
                f"https://{place}/livez", authority.client("prometheus", names)
            )
            assert status == 403
            assert "client_allowed_sans" in text
            assert headers["Connection"] == "close"


@pytest.mark.parametrize(("lowest", "highest"), [("TLS12", "TLS12"), ("TLS13", "TLS13")])
async def test_versions_are_kept(authority, lowest, highest):
    config = tls_of(authority, min_version=lowest, max_version=highest)
    other = {"TLS12": ssl.TLSVersion.TLSv1_3, "TLS13": ssl.TLSVersion.TLSv1_2}[lowest]
    async with running(WebConfig(tls=config)) as (_, place):
        assert (await get(f"https://{place}/", authority.client()))[0] == 200
        context = authority.client()
        context.minimum_version = context.maximum_version = other
        with pytest.raises(aiohttp.ClientError):
            await get(f"https://{place}/", context)


def test_suites_and_curve_are_those_that_were_chosen(authority):
    suite = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
    for curve in ("CurveP256", "CurveP384", "CurveP521", "X25519"):
        context = tls_of(authority, suites=(suite,), curve=curve, max_version="TLS12").context()
        names = [c["name"] for c in context.get_ciphers() if c["protocol"] == "TLSv1.2"]
        assert names == ["ECDHE-ECDSA-CHACHA20-POLY1305"]
    assert not (
        tls_of(authority, prefer_server_suites=False).context().options
        & ssl.OP_CIPHER_SERVER_PREFERENCE
    )


async def test_users_need_their_password_everywhere_but_for_health():
    async with running(WebConfig(users=USERS)) as (_, place):
        status, headers, text = await get(f"http://{place}/")
        assert status == 401
        assert headers["WWW-Authenticate"].startswith("Basic ")
        assert "basic_auth_users" in text
        assert (await get(f"http://{place}/", headers=ALICE))[0] == 200
        assert (await get(f"http://{place}/", headers=WRONG))[0] == 401
        assert (await get(f"http://{place}/nothing"))[0] == 401
        for path in ("/livez", "/readyz", "/readyz?verbose"):
            assert (await get(f"http://{place}{path}"))[0] == 200


async def test_users_change_with_the_configuration():
    async with running(WebConfig(users=USERS)) as (gate, place):
        assert (await get(f"http://{place}/", headers=ALICE))[0] == 200
        other = bcrypt.hashpw(b"other", bcrypt.gensalt(4)).decode()
        gate.apply(WebConfig(users={"alice": other}))
        assert (await get(f"http://{place}/", headers=ALICE))[0] == 401


async def test_headers_come_with_every_response():
    config = WebConfig(headers={"X-Frame-Options": "deny"}, users=USERS)
    async with running(config) as (_, place):
        for path in ("/", "/livez", "/nothing"):
            assert (await get(f"http://{place}{path}"))[1]["X-Frame-Options"] == "deny"


async def test_a_rate_limit_holds_for_all_but_the_kubelet():
    limit = RateLimit(interval_seconds=3600, burst=2)
    async with running(WebConfig(rate_limit=limit)) as (_, place):
        statuses = [(await get(f"http://{place}/"))[0] for _ in range(4)]
        assert statuses == [200, 200, 429, 429]
        assert (await get(f"http://{place}/livez"))[0] == 200


@given(st.lists(st.floats(0, 3), max_size=50), st.integers(1, 5))
def test_a_bucket_never_gives_more_than_burst_and_rate_allow(waits, burst):
    bucket = Bucket(RateLimit(interval_seconds=1.0, burst=burst))
    now, taken = 100.0, 0
    for wait in waits:
        now += wait
        taken += bucket.take(now)
    assert taken <= burst + (now - 100.0) + 1e-6
    assert taken >= min(len(waits), burst)


@given(st.text(max_size=40))
def test_any_authorization_header_is_read_or_is_none(header):
    assert _basic(header) is None or header.lower().startswith("basic ")


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        ("Basic YWxpY2U6czplY3JldA==", ("alice", b"s:ecret")), ("basic Ojo=", ("", b":")),
        ("Basic YWxpY2U=", None), ("Basic ***", None), ("Bearer YTpi", None), ("", None),
    ],
)  # fmt: skip
def test_user_and_password_are_split_at_the_first_colon(header, shown):
    assert _basic(header) == shown


def test_names_of_a_client_are_those_of_its_certificate():
    peer = {
        "subject": ((("organizationName", "o"),), (("commonName", "adapter"),)),
        "subjectAltName": (("DNS", "a.b"), ("IP Address", "1.2.3.4"), ("URI", "spiffe://x")),
    }
    assert client_names(peer) == ("adapter", frozenset({"a.b", "1.2.3.4", "spiffe://x"}))
    assert client_names({"subject": ()}) == (None, frozenset())
    assert client_names({}) == client_names(None) == (None, frozenset())
