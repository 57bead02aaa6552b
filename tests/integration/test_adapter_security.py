"""The adapter's process: its own certificate, exporters behind TLS, and a quiet end."""

import asyncio
import contextlib
import datetime
import json
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from adapter.registration import api_services
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.objects import API_SERVICE, CONFIG_MAP, POD, SECRET
from slicewatch.service import certificates
from testbed import fleet
from testbed.adapter_process import (
    SECONDS,
    ExporterStub,
    World,
    authentication,
    eventually,
    running,
)
from testbed.cluster.pki import FRONT_PROXY_AUTHORITY, Pki

PATH = "/apis/custom.metrics.k8s.io/v1beta2"
CUSTOM = "v1beta2.custom.metrics.k8s.io"
EXTERNAL = "v1beta1.external.metrics.k8s.io"
SELF_MADE = ("--tls-cert-file=", "--tls-key-file=")
DAY = datetime.timedelta(days=1)


async def world_of(folder: Path) -> World:
    made = World(kube=FakeKube(), exporter=ExporterStub(), pki=Pki(folder / "pki"))
    await made.kube.create(POD, fleet.pod_json("web-a", labels={"app": "web"}), "ml")
    await made.kube.create(CONFIG_MAP, authentication(made.pki), "kube-system")
    return made


async def api_service(kube: FakeKube, name: str, service: str) -> None:
    version, _, group = name.partition(".")
    place = {"namespace": "default", "name": service, "port": 443}
    spec = {"group": group, "version": version, "service": place, "insecureSkipTLSVerify": True}
    await kube.create(API_SERVICE, {"metadata": {"name": name}, "spec": spec})


async def status_as_kubernetes(world: World, authorities: bytes, path: str = PATH) -> int:
    """Ask as kube-apiserver does, which verifies the Service's name against the caBundle."""
    context = ssl.create_default_context(cadata=authorities.decode())
    shown = world.pki.issue("front-proxy-client", ca=FRONT_PROXY_AUTHORITY)
    context.load_cert_chain(shown.certificate, shown.key)
    async with (
        aiohttp.ClientSession() as client,
        client.get(
            world.api + path, ssl=context, server_hostname="slicewatch-adapter.default.svc"
        ) as answer,
    ):
        return answer.status


async def test_replicas_are_verified_by_one_authority_that_kubernetes_is_told_of(
    tmp_path: Path,
) -> None:
    """prometheus-adapter #591: no certificate has to be made, mounted or renewed by hand."""
    first = await world_of(tmp_path)
    await api_service(first.kube, CUSTOM, "slicewatch-adapter")
    await api_service(first.kube, EXTERNAL, "keda-operator-metrics-apiserver")
    second = World(kube=first.kube, exporter=first.exporter, pki=first.pki)
    (tmp_path / "second").mkdir()

    async def trusted() -> bytes:
        return (await first.kube.get(API_SERVICE, CUSTOM)).spec.ca_bundle

    async with running(first, tmp_path, *SELF_MADE):
        bundle = await eventually(trusted, "the authority in the APIService")
        async with running(second, tmp_path / "second", *SELF_MADE):
            for world in (first, second):
                await eventually(lambda: is_ready(world), "readiness")  # noqa: B023 - awaited here
                assert await status_as_kubernetes(world, bundle) == 200
        families = await page(first)
    custom = await first.kube.get(API_SERVICE, CUSTOM)
    assert custom.spec.ca_bundle == bundle
    assert not custom.spec.insecure_skip_tls_verify
    secret = await first.kube.get(SECRET, "slicewatch-adapter-authority", "default")
    assert secret.data["ca.crt"] == bundle
    external = await first.kube.get(API_SERVICE, EXTERNAL)
    assert (external.spec.ca_bundle, external.spec.insecure_skip_tls_verify) == (b"", True)
    assert f'api_service_registered{{api="{CUSTOM}",reason=""}} 1.0' in families
    assert f'api_service_registered{{api="{EXTERNAL}",reason="other"}} 0.0' in families


@pytest.mark.timeout(90)
async def test_a_certificate_and_its_authority_that_are_replaced_at_once_cost_no_request(
    tmp_path: Path,
) -> None:
    """Each request verifies by the caBundle of its moment, as kube-apiserver does."""
    world = await world_of(tmp_path)
    names = [name for name in api_services(external=True) if name != EXTERNAL]
    for name in names:
        await api_service(world.kube, name, "slicewatch-adapter")
    mounted = Mounted(tmp_path / "mounted")
    first, second = (mounted.issued(name) for name in ("first", "second"))
    mounted.put(first)
    statuses: list[int] = []

    async def registered() -> bytes:
        return (await world.kube.get(API_SERVICE, CUSTOM)).spec.ca_bundle

    async def asked() -> bool:
        statuses.append(await status_as_kubernetes(world, await registered()))
        return any(one["event"] == "serving certificate replaced" for one in world.log)

    async with running(world, tmp_path, *mounted.flags):
        await eventually(registered, "the first authority in the APIService")
        mounted.put(second)
        deadline = asyncio.get_running_loop().time() + 60
        while not await asked() and asyncio.get_running_loop().time() < deadline:
            pass
        for _ in range(3):
            assert await asked()
        bundle = await registered()
    assert set(statuses) == {200}
    assert bundle == first.authority + second.authority


@dataclass(frozen=True, kw_only=True)
class Issue:
    """A certificate and who signed it, all PEM."""

    authority: bytes
    certificate: bytes
    key: bytes


@dataclass(frozen=True)
class Mounted:
    """A Secret of certificates as the kubelet mounts it: replaced as a whole, by one rename."""

    folder: Path

    @property
    def flags(self) -> list[str]:
        files = {"cert": "tls.crt", "key": "tls.key", "ca": "ca.crt"}
        data = self.folder / "..data"
        return [f"--tls-{name}-file={data / file}" for name, file in files.items()]

    def issued(self, name: str) -> Issue:
        """Return a new certificate of a new authority."""
        authority = certificates.issue(name, lifetime=DAY, authority=True)
        names = ["slicewatch-adapter.default.svc", "127.0.0.1"]
        own = certificates.issue("own", lifetime=DAY, issuer=authority, server_names=names)
        return Issue(
            authority=authority.certificate_pem, certificate=own.certificate_pem, key=own.key_pem
        )

    def put(self, issue: Issue) -> None:
        self.folder.mkdir(exist_ok=True)
        written = self.folder / f"..{len(list(self.folder.iterdir()))}"
        written.mkdir()
        content = {"ca.crt": issue.authority, "tls.crt": issue.certificate, "tls.key": issue.key}
        for name, pem in content.items():
            (written / name).write_bytes(pem)
        link = self.folder / "..new"
        link.symlink_to(written.name)
        link.replace(self.folder / "..data")


async def is_ready(world: World) -> bool:
    async with aiohttp.ClientSession(world.plain) as client, client.get("/readyz") as answer:
        return answer.status == 200


async def page(world: World) -> str:
    async with aiohttp.ClientSession(world.plain) as client, client.get("/metrics") as answer:
        return await answer.text()


async def test_after_sigterm_it_is_unready_answers_on_and_ends_in_order(tmp_path: Path) -> None:
    """k8s #75788: the aggregator goes on sending until it has seen that we are not ready."""
    world = await world_of(tmp_path)
    async with running(world, tmp_path, "--drain-seconds=2"), world.client() as client:
        await eventually(lambda: is_ready(world), "readiness")
        async with client.get(PATH) as answer:
            assert "Connection" not in answer.headers
        assert world.process is not None
        world.process.terminate()

        async def unready() -> bool:
            return not await is_ready(world)

        await eventually(unready, "the drain")
        async with aiohttp.ClientSession(world.plain) as plain:
            async with plain.get("/readyz") as answer:
                assert "[-]shutdown" in await answer.text()
            async with plain.get("/livez") as answer:
                assert answer.status == 200
        for _ in range(2):  # The second needs a new connection, which is accepted still.
            async with client.get(PATH) as answer:
                assert (answer.status, answer.headers["Connection"]) == (200, "close")
        assert await asyncio.wait_for(world.process.wait(), SECONDS) == 0


async def test_a_rotation_that_was_not_published_is_seen_on_our_side(tmp_path: Path) -> None:
    """prometheus-adapter #591; cluster-monitoring-operator PR #244 restarted it with every rotation."""
    world = await world_of(tmp_path)
    rotated = Pki(tmp_path / "rotated").issue("front-proxy-client", ca=FRONT_PROXY_AUTHORITY)
    async with running(world, tmp_path):
        with contextlib.suppress(aiohttp.ClientError, ConnectionError):
            async with world.client(rotated) as client:
                await client.get(PATH)

        async def told() -> bool:
            return 'refused_handshakes_total{reason="untrusted"}' in await page(world)

        await eventually(told, "the refused handshake")
    assert any(entry["event"] == "client certificate refused" for entry in world.log)


@dataclass(kw_only=True)
class TlsExporter:
    """A real exporter of simulated GPUs that serves over TLS and asks for a token."""

    folder: Path
    address: str = ""
    log: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def tokens(self) -> Path:
        return self.folder / "tokens"

    def prepare(self) -> None:
        authority = certificates.issue("authority", lifetime=DAY, authority=True)
        name = "slicewatch-exporter.gpu.svc"
        own = certificates.issue(name, lifetime=DAY, issuer=authority, server_names=[name])
        self.ca.write_bytes(authority.certificate_pem)
        (self.folder / "tls.crt").write_bytes(own.certificate_pem)
        (self.folder / "tls.key").write_bytes(own.key_pem)
        web = "tls_server_config: {cert_file: tls.crt, key_file: tls.key}\n"
        (self.folder / "web.yml").write_text(web)
        self.tokens.write_text("right\n")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.prepare()
        process = await asyncio.create_subprocess_exec(
            *[sys.executable, "-m", "cli", "exporter", "--listen=127.0.0.1:0", "--simulate=demo"],
            *["--kubelet-socket=", "--tick-seconds=0.2", "--window-seconds=1"],
            *["--stale-seconds=2", f"--web-config-file={self.folder / 'web.yml'}"],
            f"--snapshot-token-file={self.tokens}",
            stderr=asyncio.subprocess.PIPE,
        )
        reader = asyncio.ensure_future(self._follow(process.stderr))
        try:
            await eventually(self._served, "the exporter to serve")
            yield
        finally:
            process.kill()
            await process.wait()
            await reader

    async def _follow(self, lines: asyncio.StreamReader | None) -> None:
        assert lines is not None
        async for line in lines:
            entry = json.loads(line) if line.startswith(b"{") else {"event": line.decode()}
            self.log.append(entry)
            if entry["event"] == "serving":
                self.address = f"https://{entry['address']}"

    async def _served(self) -> bool:
        return bool(self.address)


async def test_an_exporter_behind_tls_is_followed_with_the_right_token_only(
    tmp_path: Path,
) -> None:
    """prometheus-adapter #598: a replaced token is used without a restart."""
    world = await world_of(tmp_path)
    (tmp_path / "exporter").mkdir()
    exporter = TlsExporter(folder=tmp_path / "exporter")
    token = tmp_path / "token"
    token.write_text("wrong\n")
    async with exporter.running():
        flags = (
            f"--exporters={exporter.address}",
            f"--exporter-ca-file={exporter.ca}",
            "--exporter-server-name=slicewatch-exporter.gpu.svc",
            f"--exporter-token-file={token}",
        )
        async with running(world, tmp_path, *flags):

            async def refused() -> bool:
                return 'stream_faults_total{reason="unauthorized"}' in await page(world)

            await eventually(refused, "the refusal")
            (entry,) = [one for one in world.log if one["event"] == "exporter lost"]
            assert "401 Unauthorized: the bearer token is not valid" in entry["error"]
            token.write_text("right\n")

            async def connected() -> bool:
                return any(
                    line.startswith("slicewatch_adapter_exporter_connected{")
                    and line.endswith(" 1.0")
                    for line in (await page(world)).splitlines()
                )

            await eventually(connected, "the stream")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"exporter-ca-file": "pki/ca.crt"}, "CERTIFICATE_VERIFY_FAILED"),
        ({"exporter-server-name": "another.gpu.svc"}, "another.gpu.svc"),
    ],
)
async def test_an_exporter_that_is_not_who_it_should_be_gets_no_token(
    tmp_path: Path, changed: dict[str, str], reason: str
) -> None:
    world = await world_of(tmp_path)
    (tmp_path / "exporter").mkdir()
    exporter = TlsExporter(folder=tmp_path / "exporter")
    async with exporter.running():
        chosen = {
            "exporters": exporter.address,
            "exporter-ca-file": str(exporter.ca),
            "exporter-server-name": "slicewatch-exporter.gpu.svc",
            "exporter-token-file": str(exporter.tokens),
        } | {k: str(tmp_path / v) if "/" in v else v for k, v in changed.items()}
        async with running(world, tmp_path, *(f"--{k}={v}" for k, v in chosen.items())):

            async def refused() -> bool:
                return 'stream_faults_total{reason="tls"}' in await page(world)

            await eventually(refused, "the refusal")
            (entry,) = [one for one in world.log if one["event"] == "exporter lost"]
            assert reason in entry["error"]
