"""The adapter as a running process, and a client with the front proxy's certificate for it."""

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec

from bench import processes
from bench.errors import BenchError
from bench.processes import Child
from bench.programs.adapter_server import Pods
from bench.programs.static_server import Identity
from testbed.api_server import free_port
from testbed.cluster.pki import FRONT_PROXY_AUTHORITY, Pki

START_SECONDS: Final = 30.0
FRONT_PROXY: Final = "front-proxy-client"
# Connections of a client: as many as an HPA controller has workers.
WORKERS: Final = 5
_SCALES: Final = {"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


class Trust:
    """Certificates of both sides: the adapter's, and the front proxy's."""

    def __init__(self, folder: Path) -> None:
        pki = Pki(folder / "pki")
        self.serving = pki.issue("adapter", sans=["127.0.0.1"], client=False)
        self.client = pki.issue(FRONT_PROXY, ca=FRONT_PROXY_AUTHORITY)

    @property
    def identity(self) -> Identity:
        """What a peer with the same TLS needs."""
        return Identity(
            certificate=str(self.serving.certificate),
            key=str(self.serving.key),
            authority=str(self.client.authority),
        )

    def flags(self) -> list[str]:
        """Return the adapter's flags for it."""
        return [
            f"--tls-cert-file={self.serving.certificate}",
            f"--tls-key-file={self.serving.key}",
            f"--requestheader-client-ca-file={self.client.authority}",
            f"--requestheader-allowed-names={FRONT_PROXY}",
        ]

    def context(self) -> ssl.SSLContext:
        """Return what a client in Python needs."""
        context = ssl.create_default_context(cafile=str(self.serving.authority))
        context.load_cert_chain(self.client.certificate, self.client.key)
        return context


class Value(msgspec.Struct):
    """One item of a metric list; the value is a Kubernetes quantity."""

    value: str


class Answer(msgspec.Struct):
    """A metric list."""

    items: list[Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningAdapter:
    """A running adapter process, asked as the API server asks it."""

    child: Child
    url: str
    client: aiohttp.ClientSession
    trust: Trust

    async def body(self, path: str) -> bytes:
        """Return the answer to a request.

        Raises:
            BenchError: it was refused; says how.
        """
        async with self.client.get(f"{self.url}{path}") as answer:
            body = await answer.read()
        if answer.status != 200:
            raise BenchError(f"GET {path}: {answer.status}: {body[:300].decode()}")
        return body

    async def values(self, path: str) -> list[float]:
        """Return the values of a metric list; none while there is none."""
        async with self.client.get(f"{self.url}{path}") as answer:
            if answer.status != 200:
                return []
            listed = msgspec.json.decode(await answer.read(), type=Answer)
        return [_number(item.value) for item in listed.items]


@asynccontextmanager
async def adapter(
    pods: Sequence[dict[str, Any]], namespace: str, exporters: Sequence[str], folder: Path
) -> AsyncIterator[RunningAdapter]:
    """Run an adapter process that knows these pods and follows these exporters."""
    file = folder / "pods.json"
    file.write_bytes(msgspec.json.encode(Pods(namespace=namespace, manifests=list(pods))))
    program = ["bench.programs.adapter_server", str(file), f"--exporters={','.join(exporters)}"]
    async with started(program, folder) as running:
        yield running


@asynccontextmanager
async def started(program: Sequence[str], folder: Path) -> AsyncIterator[RunningAdapter]:
    """Run an adapter process: a module and its arguments, to which ports and TLS are added."""
    trust = Trust(folder)
    port, plain = free_port(), free_port()
    arguments = [
        *program,
        f"--listen=127.0.0.1:{port}", f"--plain-listen=127.0.0.1:{plain}", *trust.flags(),
    ]  # fmt: skip
    connector = aiohttp.TCPConnector(ssl=trust.context(), limit=WORKERS)
    async with (
        processes.running("adapter", arguments, folder) as child,
        aiohttp.ClientSession(connector=connector) as client,
    ):
        yield RunningAdapter(
            child=child, url=f"https://127.0.0.1:{port}", client=client, trust=trust
        )


def _number(quantity: str) -> float:
    """Return what a quantity of the metrics API means."""
    scale = _SCALES.get(quantity[-1])
    return float(quantity) if scale is None else float(quantity[:-1]) * scale
