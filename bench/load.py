"""Load from bombardier: a client in Go, so that it is not the client that is measured.

It takes client certificates, which wrk does not, and never more connections than it is told.
"""

import asyncio
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from bench.errors import BenchError
from testbed.binaries import binary
from testbed.cluster.pki import Certificate

LONGEST_SECONDS: Final = 120.0
_MICROSECONDS: Final = 1000.0


class Latency(msgspec.Struct):
    """Microseconds."""

    percentiles: dict[str, float]


class Fault(msgspec.Struct):
    """An error of the client, and how often it occurred."""

    description: str
    count: int


class Outcome(msgspec.Struct, rename="camel"):
    """What bombardier states of a run."""

    time_taken_seconds: float
    req2xx: int
    req1xx: int
    req3xx: int
    req4xx: int
    req5xx: int
    others: int
    latency: Latency
    errors: list[Fault] = []

    def failed(self) -> int:
        """Return how many requests got no good answer."""
        return self.req1xx + self.req3xx + self.req4xx + self.req5xx + self.others


class Run(msgspec.Struct):
    """The document that bombardier prints."""

    result: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How a server did under a load: milliseconds, and requests a second."""

    p50: float
    p99: float
    per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A number of requests over a number of kept connections.

    Attributes:
        per_second: at most so many; None: as fast as they are answered.
        identity: the client's certificate, for a server that wants one.
        timeout_seconds: how long an answer is waited for; one that is later is a failure.
    """

    connections: int
    requests: int
    headers: Sequence[str] = ()
    per_second: int | None = None
    identity: Certificate | None = None
    timeout_seconds: int = 10

    async def on(self, url: str) -> Timing:
        """Send the load to a URL.

        Raises:
            BenchError: a request failed, or the load does not end.
            Unavailable: bombardier cannot be had here.
        """
        program = await asyncio.to_thread(binary, "bombardier")
        client = await asyncio.create_subprocess_exec(
            str(program), *self._flags(), url, stdout=PIPE, stderr=PIPE
        )
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                said, complaint = await client.communicate()
        except TimeoutError as error:
            raise BenchError(f"{url}: the load takes over {LONGEST_SECONDS:g} s") from error
        finally:
            if client.returncode is None:
                client.kill()
                await client.wait()
        if client.returncode:
            raise BenchError(f"{url}: bombardier failed: {complaint.decode(errors='replace')}")
        return _timing(url, said)

    def _flags(self) -> list[str]:
        flags = [f"--connections={self.connections}", f"--requests={self.requests}"]
        flags += ["--latencies", "--format=json", "--print=result"]
        flags.append(f"--timeout={self.timeout_seconds}s")
        flags += [f"--header={header}" for header in self.headers]
        if self.per_second is not None:
            flags.append(f"--rate={self.per_second}")
        if self.identity is not None:
            # It has no flag for an authority; who the server is does not change what it costs.
            flags += [*_named(self.identity), "--insecure"]
        return flags


def _named(identity: Certificate) -> list[str]:
    files: dict[str, Path] = {"cert": identity.certificate, "key": identity.key}
    return [f"--{name}={path}" for name, path in files.items()]


def _timing(url: str, said: bytes) -> Timing:
    try:
        result = msgspec.json.decode(said, type=Run).result
    except msgspec.DecodeError as error:
        raise BenchError(f"{url}: bombardier printed no result: {said[:200]!r}") from error
    if result.failed() or not result.req2xx:
        why = "; ".join(f"{f.count} × {f.description}" for f in result.errors[:3])
        raise BenchError(
            f"{url}: {result.failed()} of {result.failed() + result.req2xx} requests failed {why}"
        )
    return Timing(
        p50=result.latency.percentiles["50"] / _MICROSECONDS,
        p99=result.latency.percentiles["99"] / _MICROSECONDS,
        per_second=result.req2xx / result.time_taken_seconds,
    )
