"""Who is let in, over real TLS, and how trust is renewed without a restart."""

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from adapter.api.authentication import FrontProxy, Gate, TrustError
from adapter.api.certificate import CertificateError, ServingCertificate, self_made
from adapter.settings import AdapterSettings
from adapter.trust import Trust
from slicewatch.kube.objects import ConfigMap, Metadata
from testbed.cluster.pki import FRONT_PROXY_AUTHORITY, Certificate, Pki
from testbed.front_proxy import ApiPort

PATH = "/apis/custom.metrics.k8s.io/v1beta2"
FORGED = {
    "X-Remote-User": "system:kube-aggregator",
    "X-Remote-Group": "system:masters",
    "X-Remote-Extra-Scopes": "all",
}


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[ApiPort]:
    made = ApiPort(tmp_path / "pki")
    async with made.serving():
        yield made


async def status(port: ApiPort, shown: Certificate | None, path: str = PATH) -> int:
    async with port.client(shown) as client:
        answer = await port.ask(path, client=client, headers=FORGED)
        return answer.status


async def refused_by_tls(port: ApiPort, shown: Certificate | None) -> bool:
    try:
        await status(port, shown)
    except (aiohttp.ClientError, ConnectionError, ssl.SSLError):
        return True
    return False


async def test_the_front_proxy_is_let_in(port: ApiPort) -> None:
    assert await status(port, port.front_proxy()) == 200


async def test_nobody_gets_in_without_a_certificate_whatever_the_headers_say(
    port: ApiPort,
) -> None:
    assert await refused_by_tls(port, None)


async def test_a_certificate_of_the_clusters_other_authority_is_refused(port: ApiPort) -> None:
    admin = port.pki.issue("front-proxy-client", organizations=["system:masters"])
    assert await refused_by_tls(port, admin)


async def test_a_certificate_of_a_strangers_authority_of_the_same_name_is_refused(
    port: ApiPort, tmp_path: Path
) -> None:
    stranger = Pki(tmp_path / "stranger").issue("front-proxy-client", ca=FRONT_PROXY_AUTHORITY)
    assert await refused_by_tls(port, stranger)


async def test_a_certificate_for_servers_only_is_refused(port: ApiPort) -> None:
    server = port.pki.issue(
        "front-proxy-client", ca=FRONT_PROXY_AUTHORITY, sans=["localhost"], client=False
    )
    assert await refused_by_tls(port, server)


@pytest.mark.parametrize("path", [PATH, "/apis", "/nowhere", f"{PATH}/namespaces/a/pods/*/m"])
async def test_the_right_authority_under_another_name_is_told_to_ask_kubernetes(
    port: ApiPort, path: str
) -> None:
    other = port.pki.issue("other-client", ca=FRONT_PROXY_AUTHORITY)
    async with port.client(other) as client:
        answer = await port.ask(path, client=client, headers=FORGED)
    assert answer.status == 401
    assert b"other-client" in answer.body
    assert b"Kubernetes API server" in answer.body


async def test_no_list_of_names_lets_in_any_name_of_the_authority(port: ApiPort) -> None:
    port.trust(port.pki, names=())
    assert await status(port, port.pki.issue("any", ca=FRONT_PROXY_AUTHORITY)) == 200


async def test_a_new_authority_replaces_the_old_one_at_once(port: ApiPort, tmp_path: Path) -> None:
    rotated = Pki(tmp_path / "rotated")
    new = rotated.issue("front-proxy-client", ca=FRONT_PROXY_AUTHORITY)
    assert await refused_by_tls(port, new)
    port.trust(rotated)
    assert await status(port, new) == 200
    assert await refused_by_tls(port, port.front_proxy())


async def test_an_open_connection_ends_when_trust_has_changed(
    port: ApiPort, tmp_path: Path
) -> None:
    async with port.client(port.front_proxy()) as client:
        for _ in range(2):
            answer = await port.ask(PATH, client=client)
            assert answer.headers.get("Connection") != "close"
        port.trust(Pki(tmp_path / "rotated"))
        last = await port.ask(PATH, client=client)
        assert last.headers["Connection"] == "close"
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            await port.ask(PATH, client=client)


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
    assert [await status(port, c) for c in (old, new)] == [200, 200]
    port.gate.trust(FrontProxy(authorities=second))
    assert await refused_by_tls(port, old)
    assert await status(port, new) == 200


async def test_before_any_authority_is_known_every_handshake_fails(tmp_path: Path) -> None:
    port = ApiPort(tmp_path / "pki")
    own = port.pki.issue("adapter", sans=["127.0.0.1"], client=False)
    untrusting = Gate(ServingCertificate(own.certificate, own.key))
    port.gate, port.api._gate = untrusting, untrusting
    async with port.serving():
        assert await refused_by_tls(port, port.front_proxy())


async def test_old_protocols_are_refused(port: ApiPort) -> None:
    shown = port.front_proxy()
    context = ssl.create_default_context(cafile=str(port.pki.ca))
    context.load_cert_chain(shown.certificate, shown.key)
    host, _, number = port.url.removeprefix("https://").partition(":")
    _, writer = await asyncio.open_connection(host, int(number), ssl=context)
    assert writer.get_extra_info("ssl_object").version() in {"TLSv1.2", "TLSv1.3"}
    assert port.gate.context.minimum_version == ssl.TLSVersion.TLSv1_2
    writer.close()
    await writer.wait_closed()


def published(pki: Pki, **changed: str) -> ConfigMap:
    data = {
        "requestheader-client-ca-file": pki.front_proxy_ca.read_text(),
        "requestheader-allowed-names": '["front-proxy-client"]',
    }
    return ConfigMap(metadata=Metadata(name="x"), data=data | changed)


def test_the_published_configuration_is_read_and_a_faulty_one_changes_nothing(
    tmp_path: Path,
) -> None:
    pki = Pki(tmp_path)
    own = pki.issue("adapter", sans=["localhost"], client=False)
    certificate = ServingCertificate(own.certificate, own.key)
    gate = Gate(certificate)
    trust = Trust(gate, certificate, AdapterSettings())
    trust.published(None, published(pki))
    good = gate.proxy
    assert good is not None
    assert good.allowed_names == ("front-proxy-client",)
    for faulty in (
        published(pki, **{"requestheader-allowed-names": "no list"}),
        published(pki, **{"requestheader-allowed-names": '{"a": 1}'}),
        published(pki, **{"requestheader-client-ca-file": "no certificate"}),
        published(pki, **{"requestheader-client-ca-file": ""}),
        None,
    ):
        trust.published(None, faulty)
        assert gate.proxy == good


def test_a_missing_authority_says_what_kube_apiserver_lacks() -> None:
    with pytest.raises(TrustError, match="--requestheader-client-ca-file"):
        FrontProxy.of_data({})


def test_names_of_the_settings_override_those_of_the_cluster(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    certificate = self_made(["localhost"], str(tmp_path / "own"))
    gate = Gate(certificate)
    chosen = AdapterSettings(requestheader_allowed_names=("aggregator",))
    Trust(gate, certificate, chosen).published(None, published(pki))
    assert gate.proxy is not None
    assert gate.proxy.allowed_names == ("aggregator",)


def test_an_authority_of_a_file_needs_no_cluster_and_is_read_again(tmp_path: Path) -> None:
    first, second = Pki(tmp_path / "a"), Pki(tmp_path / "b")
    bundle = tmp_path / "ca.crt"
    bundle.write_text(first.front_proxy_ca.read_text())
    certificate = self_made(["localhost"], str(tmp_path / "own"))
    gate = Gate(certificate)
    trust = Trust(gate, certificate, AdapterSettings(requestheader_client_ca_file=str(bundle)))
    assert not trust.from_cluster
    trust.read_files()
    assert gate.proxy == FrontProxy(authorities=first.front_proxy_ca.read_text())
    bundle.unlink()
    trust.read_files()
    assert gate.proxy is not None
    bundle.write_text(second.front_proxy_ca.read_text())
    trust.read_files()
    assert gate.proxy == FrontProxy(authorities=second.front_proxy_ca.read_text())


async def test_a_replaced_serving_certificate_is_shown_to_new_connections(tmp_path: Path) -> None:
    port = ApiPort(tmp_path / "pki")
    own = port.pki.issue("shown", sans=["127.0.0.1"], client=False)
    certificate = ServingCertificate(own.certificate, own.key)
    gate = Gate(certificate)
    gate.trust(FrontProxy(authorities=port.pki.front_proxy_ca.read_text()))
    port.gate, port.api._gate = gate, gate
    trust = Trust(gate, certificate, AdapterSettings())
    async with port.serving():
        assert await status(port, port.front_proxy()) == 200
        stranger = Pki(tmp_path / "stranger").issue("s", sans=["127.0.0.1"], client=False)
        for old, new in ((own.certificate, stranger.certificate), (own.key, stranger.key)):
            new.rename(old)
        trust.read_files()
        assert await refused_by_tls(port, port.front_proxy())
        port.pki.issue("shown", sans=["127.0.0.1"], client=False)
        trust.read_files()
        assert await status(port, port.front_proxy()) == 200


def test_a_self_made_certificate_is_for_its_names_and_its_key_is_private(tmp_path: Path) -> None:
    made = self_made(["adapter.ns.svc", "127.0.0.1"], str(tmp_path / "certs"))
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
