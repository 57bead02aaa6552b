"""Who is admitted, over real TLS."""

import asyncio
import datetime
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from yarl import URL

from adapter.api.authentication import FrontProxy, Gate, TrustError
from adapter.api.certificate import CertificateError, ServingCertificate, self_signed
from testbed.cluster.pki import FRONT_PROXY_AUTHORITY, Certificate, Pki
from testbed.front_proxy import FORGED, ApiPort

PATH = "/apis/custom.metrics.k8s.io/v1beta2"


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[ApiPort]:
    made = ApiPort(tmp_path / "pki")
    async with made.serving():
        yield made


async def test_the_front_proxy_is_admitted(port: ApiPort) -> None:
    assert await port.status(port.front_proxy(), PATH) == 200


async def test_nobody_is_admitted_without_a_certificate_whatever_the_headers_say(
    port: ApiPort,
) -> None:
    assert await port.status(None, PATH) == 0


async def test_a_certificate_of_the_clusters_other_authority_is_refused(port: ApiPort) -> None:
    admin = port.pki.issue("front-proxy-client", organizations=["system:masters"])
    assert await port.status(admin, PATH) == 0


async def test_a_certificate_of_a_strangers_authority_of_the_same_name_is_refused(
    port: ApiPort, tmp_path: Path
) -> None:
    stranger = Pki(tmp_path / "stranger").issue("front-proxy-client", ca=FRONT_PROXY_AUTHORITY)
    assert await port.status(stranger, PATH) == 0


async def test_a_certificate_for_servers_only_is_refused(port: ApiPort) -> None:
    server = port.pki.issue(
        "front-proxy-client", ca=FRONT_PROXY_AUTHORITY, sans=["localhost"], client=False
    )
    assert await port.status(server, PATH) == 0


SPOOFED: Final = {
    "nothing": {},
    "a user": {"X-Remote-User": "system:kube-aggregator"},
    "all": FORGED,
    "other case": {"x-REMOTE-user": "admin", "X-REMOTE-GROUP": "system:masters"},
    "a token": {"Authorization": "Bearer anything", "Impersonate-User": "admin"},
}
PRESENTED: Final = {
    "none": (None, 0),
    "cluster authority": (("ca", "front-proxy-client", True), 0),
    "cluster authority, masters": (("ca", "admin", True), 0),
    "stranger": (("stranger", "front-proxy-client", True), 0),
    "right authority, other name": ((FRONT_PROXY_AUTHORITY, "kubelet", True), 401),
    "right authority, name in other case": (
        (FRONT_PROXY_AUTHORITY, "Front-Proxy-Client", True),
        401,
    ),
    "right authority, server only": ((FRONT_PROXY_AUTHORITY, "front-proxy-client", False), 0),
    "front proxy": ((FRONT_PROXY_AUTHORITY, "front-proxy-client", True), 200),
}


def presented(
    port: ApiPort, folder: Path, what: tuple[str, str, bool] | None
) -> Certificate | None:
    """Return a certificate of an authority, with a name, for clients or else for servers."""
    if what is None:
        return None
    authority, name, client = what
    pki = Pki(folder / "stranger") if authority == "stranger" else port.pki
    sans = () if client else ("localhost",)
    ca = FRONT_PROXY_AUTHORITY if authority == "stranger" else authority
    return pki.issue("shown", common_name=name, ca=ca, client=client, sans=sans)


@pytest.mark.parametrize("headers", SPOOFED.values(), ids=SPOOFED)
@pytest.mark.parametrize(("what", "status"), PRESENTED.values(), ids=PRESENTED)
async def test_whoever_asks_is_who_the_certificate_says_whatever_the_headers_say(
    port: ApiPort,
    tmp_path: Path,
    what: tuple[str, str, bool] | None,
    status: int,
    headers: dict[str, str],
) -> None:
    shown = presented(port, tmp_path, what)
    got, said = 0, b""
    with suppress(aiohttp.ClientError, ConnectionError, ssl.SSLError):
        async with port.client(shown) as client:
            answer = await port.ask(PATH, client=client, headers=headers)
            got, said = answer.status, answer.body
    assert got == status
    assert b"admin" not in said


@pytest.mark.parametrize(
    ("values", "status", "text"),
    [(4000, 200, '"items":[]'), (6000, 400, "a label selector may have")],
)
async def test_a_user_of_200_groups_is_answered_and_a_selector_of_20_kb_reaches_its_reader(
    port: ApiPort, values: int, status: int, text: str
) -> None:
    """The server's limits of lines and headers are never what a user sees."""
    groups = [("X-Remote-Group", f"oidc:{number}:" + "g" * 100) for number in range(200)]
    chosen = ",".join(f"v{number}" for number in range(values))
    path = f"{PATH}/namespaces/ml/pods/*/gpu_utilization?labelSelector=app+in+({chosen})"
    assert len(path) > 20_000
    async with port.client(port.front_proxy()) as client:
        url = URL(port.url + path, encoded=True)
        async with client.get(url, headers=groups) as answer:
            assert (answer.status, answer.content_type) == (status, "application/json")
            assert text in await answer.text()


@pytest.mark.parametrize("path", [PATH, "/apis", "/nowhere", f"{PATH}/namespaces/a/pods/*/m"])
async def test_another_name_of_the_right_authority_is_sent_to_kubernetes(
    port: ApiPort, path: str
) -> None:
    other = port.pki.issue("other-client", ca=FRONT_PROXY_AUTHORITY)
    async with port.client(other) as client:
        answer = await port.ask(path, client=client, headers=FORGED)
    assert answer.status == 401
    assert b"other-client" in answer.body
    assert b"Kubernetes API server" in answer.body


async def test_without_a_list_of_names_any_name_of_the_authority_is_admitted(
    port: ApiPort,
) -> None:
    port.trust(port.pki, names=())
    assert await port.status(port.pki.issue("any", ca=FRONT_PROXY_AUTHORITY), PATH) == 200


async def test_a_new_authority_replaces_the_old_one_at_once(port: ApiPort, tmp_path: Path) -> None:
    rotated = Pki(tmp_path / "rotated")
    new = rotated.issue("front-proxy-client", ca=FRONT_PROXY_AUTHORITY)
    assert await port.status(new, PATH) == 0
    port.trust(rotated)
    assert await port.status(new, PATH) == 200
    assert await port.status(port.front_proxy(), PATH) == 0


async def test_an_open_connection_ends_when_trust_has_changed(
    port: ApiPort, tmp_path: Path
) -> None:
    async with port.client(port.front_proxy()) as client:
        for _ in range(2):
            answer = await port.ask(PATH, client=client)
            assert answer.headers.get("Connection") != "close"
        port.trust(Pki(tmp_path / "rotated"))
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            await port.ask(PATH, client=client)


async def test_an_open_connection_that_has_to_end_costs_the_front_proxy_no_answer(
    port: ApiPort, tmp_path: Path
) -> None:
    """Like Go's, this client asks again where a connection in use ends without an answer."""
    rotated = Pki(tmp_path / "rotated")
    both = port.pki.front_proxy_ca.read_text() + rotated.front_proxy_ca.read_text()
    async with port.client(port.front_proxy()) as client:
        assert (await port.ask(PATH, client=client)).status == 200
        port.gate.trust(FrontProxy(authorities=both))
        assert (await port.ask(PATH, client=client)).status == 200


async def test_a_new_serving_certificate_costs_the_front_proxy_no_answer(port: ApiPort) -> None:
    async with port.client(port.front_proxy()) as client:
        assert (await port.ask(PATH, client=client)).status == 200
        port.pki.issue("adapter", sans=["127.0.0.1"], client=False)
        port.gate.renew()
        last = await port.ask(PATH, client=client)
        assert (last.status, last.headers["Connection"]) == (200, "close")


@pytest.mark.parametrize("names", ["[" * 100_000, "[1]", "{"])
def test_names_that_cannot_be_read_are_a_trust_error(names: str) -> None:
    data = {"requestheader-client-ca-file": "any", "requestheader-allowed-names": names}
    with pytest.raises(TrustError, match="requestheader-allowed-names"):
        FrontProxy.of_data(data)


def key_identified(folder: Path) -> tuple[str, Certificate]:
    """Make an authority as Kubernetes does, known by its key too, and its front proxy."""
    folder.mkdir()
    now = datetime.datetime.now(datetime.UTC)
    key, client_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "front-proxy-ca")])
    client = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "front-proxy-client")])

    def signed(name: x509.Name, of: ec.EllipticCurvePrivateKey, *, authority: bool) -> bytes:
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(issuer)
            .public_key(of.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
        )
        for extension in (
            x509.BasicConstraints(ca=authority, path_length=None),
            x509.SubjectKeyIdentifier.from_public_key(of.public_key()),
            x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()),
        ):
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    made = Certificate(
        certificate=folder / "c.crt", key=folder / "c.key", authority=folder / "ca.crt"
    )
    made.authority.write_bytes(signed(issuer, key, authority=True))
    made.certificate.write_bytes(signed(client, client_key, authority=False))
    made.key.write_bytes(
        client_key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return made.authority.read_text(), made


async def test_two_authorities_of_one_name_are_trusted_while_they_rotate(
    port: ApiPort, tmp_path: Path
) -> None:
    (first, old), (second, new) = (key_identified(tmp_path / n) for n in ("old", "new"))
    port.gate.trust(FrontProxy(authorities=first + second))
    assert [await port.status(c, PATH) for c in (old, new)] == [200, 200]
    port.gate.trust(FrontProxy(authorities=second))
    assert await port.status(old, PATH) == 0
    assert await port.status(new, PATH) == 200


async def test_before_any_authority_is_known_every_handshake_fails(tmp_path: Path) -> None:
    port = ApiPort(tmp_path / "pki")
    own = port.pki.issue("adapter", sans=["127.0.0.1"], client=False)
    untrusting = Gate(ServingCertificate(own.certificate, own.key))
    port.gate, port.api._gate = untrusting, untrusting
    async with port.serving():
        assert await port.status(port.front_proxy(), PATH) == 0


class Caller:
    """A client that resumes its TLS session wherever it can."""

    def __init__(self, port: ApiPort, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> None:
        shown = port.front_proxy()
        self._context = ssl.create_default_context(cafile=str(port.pki.ca))
        self._context.load_cert_chain(shown.certificate, shown.key)
        self._context.maximum_version = version
        self._address = ("127.0.0.1", int(port.url.rpartition(":")[2]))
        self._session: ssl.SSLSession | None = None

    def ask(self) -> tuple[bytes, bool]:
        """Return the first line of an answer, and whether the session was resumed."""
        with (
            socket.create_connection(self._address, timeout=10) as plain,
            self._context.wrap_socket(
                plain, server_hostname="127.0.0.1", session=self._session
            ) as connection,
        ):
            connection.sendall(f"GET {PATH} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            line = connection.recv(4096).partition(b"\r\n")[0]
            self._session = connection.session
            return line, connection.session_reused is True


async def gets_nothing(caller: Caller) -> bool:
    try:
        line, _ = await asyncio.to_thread(caller.ask)
    except OSError:
        return True
    return line == b""


async def test_a_session_is_never_resumed_so_it_ends_with_the_trust_it_was_made_under(
    port: ApiPort, tmp_path: Path
) -> None:
    caller = Caller(port)
    for _ in range(2):
        assert await asyncio.to_thread(caller.ask) == (b"HTTP/1.1 200 OK", False)
    port.trust(Pki(tmp_path / "rotated"))
    assert await gets_nothing(caller)


async def test_protocols_that_resume_without_tickets_are_refused(port: ApiPort) -> None:
    assert await gets_nothing(Caller(port, ssl.TLSVersion.TLSv1_2))


def test_a_self_signed_certificate_is_for_its_names_and_its_key_is_private(tmp_path: Path) -> None:
    made = self_signed(["adapter.ns.svc", "127.0.0.1"], str(tmp_path / "certs"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_into(context)
    assert made.key.stat().st_mode & 0o077 == 0
    certificate = x509.load_pem_x509_certificate(made.certificate.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["adapter.ns.svc"]
    assert [str(a) for a in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


def test_a_serving_certificate_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = ServingCertificate(tmp_path / "a.crt", tmp_path / "a.key")
    with pytest.raises(CertificateError, match=r"a\.crt with key .*a\.key"):
        Gate(missing)


def test_a_missing_authority_says_what_kube_apiserver_lacks() -> None:
    with pytest.raises(TrustError, match="--requestheader-client-ca-file"):
        FrontProxy.of_data({})
