"""The API port: a single handler, since we split paths by our own rules.

What a request is about is found here; who answers it, in the offering. What exporters read is in
memory, so nothing of it waits; only a provider that has a backend may.
"""

import math
import time
from collections.abc import Callable
from http import HTTPMethod, HTTPStatus
from typing import Final

import msgspec
from aiohttp import web

from adapter.api.authentication import Gate
from adapter.api.media_types import JSON, accepts_json
from adapter.api.paths import GROUPS, DiscoveryPath, ExternalPath, MetricPath
from adapter.api.paths import parse as parse_path
from adapter.api.request import ApiRequest, parse
from adapter.api.status import Reason, Refusal, Subject
from adapter.offering import Offering
from adapter.provider import Answer, ExternalQuestion, Question, Tree
from adapter.readiness import Readiness
from slicewatch.catalog.own import FRESHNESS_SECONDS, REQUEST_SECONDS
from slicewatch.service import logs
from slicewatch.service.own_metrics import OwnMetrics

log = logs.logger(__name__)

CACHED_BYTES: Final = 32 << 20
READING: Final = (HTTPMethod.GET, HTTPMethod.HEAD)
_ALLOW: Final = {"Allow": ", ".join(READING)}
_PRETTY_AGENTS: Final = ("curl/", "Wget/", "Mozilla/")


class MetricsApi:
    """Handler of the API port."""

    def __init__(
        self,
        offering: Offering,
        gate: Gate,
        readiness: Readiness,
        metrics: OwnMetrics,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._offering = offering
        self._gate = gate
        self._readiness = readiness
        self._monotonic = monotonic
        self._wall = wall
        self._seconds = metrics.histogram(REQUEST_SECONDS)
        self._freshness = metrics.histogram(FRESHNESS_SECONDS)
        self._cached: dict[str, Answer] = {}
        self._cached_bytes = 0

    def app(self) -> web.Application:
        """Return the application."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.handle)
        return app

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request, or refuse it with a Status."""
        connection = request.get_extra_info("ssl_object")
        if self._gate.distrusts(connection):
            return _unanswered(request)
        began = time.perf_counter()
        try:
            response = await self._respond(request)
        except Refusal as refusal:
            response = _refused(refusal, _subject(request.raw_path))
        except Exception:  # The boundary: a bug costs one request.
            log.exception("request failed", path=request.raw_path)
            failure = Refusal(Reason.InternalError, "the adapter failed; see its log")
            response = _refused(failure, None)
        if self._gate.outdated(connection):
            response.force_close()  # The next connection has to present a certificate again.
        elapsed = time.perf_counter() - began
        self._seconds.labels(_api(request.raw_path), str(response.status)).observe(elapsed)
        return response

    async def _respond(self, request: web.Request) -> web.Response:
        self._gate.check(request.get_extra_info("peercert"))
        wanted = parse(request.raw_path)
        _check_form(request, wanted)
        given = await self._given(request.raw_path, wanted)
        body = given.body
        if _pretty(wanted, request.headers.get("User-Agent", "")):
            body = msgspec.json.format(body, indent=2) + b"\n"
        headers = {"Warning": given.warning} if given.warning else None
        return web.Response(body=body, content_type=JSON, headers=headers)

    async def _given(self, raw_path: str, wanted: ApiRequest) -> Answer:
        if isinstance(wanted.path, DiscoveryPath):
            return Answer(body=self._offering.discovery(wanted.path))
        if wanted.explain:
            return Answer(body=msgspec.json.encode(await self._explained(wanted)))
        given = self._unchanged(raw_path) or await self._answered(raw_path, wanted)
        if not math.isnan(given.read_at):
            age = max(0.0, self._wall() - given.read_at)
            self._freshness.labels(_api(raw_path)).observe(age)
        return given

    def _unchanged(self, raw_path: str) -> Answer | None:
        """Return the previous answer to the same URL if nothing has changed since."""
        cached = self._cached.get(raw_path)
        if cached is None or not cached.holds() or self._monotonic() >= cached.expires_at:
            return None
        return cached

    async def _answered(self, raw_path: str, wanted: ApiRequest) -> Answer:
        given = await self._asked(wanted)
        # Replaced answers are still counted: cheaper than a sum, and errs on the safe side.
        self._cached_bytes += len(raw_path) + len(given.body)
        if self._cached_bytes > CACHED_BYTES:
            self._cached, self._cached_bytes = {}, 0
        self._cached[raw_path] = given
        return given

    async def _asked(self, wanted: ApiRequest) -> Answer:
        if isinstance(wanted.path, ExternalPath):
            external = self._offering.of_external(wanted.path)
            return await external.answer_external(_external(wanted, wanted.path))
        path = self._offering.canonical(_metric(wanted))
        custom = self._offering.of(path)
        self._check_pods()
        return await custom.answer(_custom(wanted, path))

    async def _explained(self, wanted: ApiRequest) -> Tree:
        if isinstance(wanted.path, ExternalPath):
            external = self._offering.of_external(wanted.path)
            return await external.explain_external(_external(wanted, wanted.path))
        path = self._offering.canonical(_metric(wanted))
        custom = self._offering.of(path)
        self._check_pods()
        return await custom.explain(_custom(wanted, path))

    def _check_pods(self) -> None:
        """Refuse what is asked of objects before all pods are known; 404s come first."""
        if fault := self._readiness.pods_listed():
            raise Refusal(Reason.ServiceUnavailable, fault)


def _unanswered(request: web.Request) -> web.Response:
    """Break the connection off without a word.

    kube-apiserver then asks again on a new connection, where a refusal would go to its client.
    """
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=HTTPStatus.UNAUTHORIZED)  # for aiohttp, which wants one


def _refused(refusal: Refusal, subject: Subject | None) -> web.Response:
    headers = _ALLOW if refusal.reason is Reason.MethodNotAllowed else None
    return web.Response(
        body=refusal.body(subject), status=refusal.code, content_type=JSON, headers=headers
    )


def _subject(raw_path: str) -> Subject | None:
    try:
        return parse_path(raw_path.partition("?")[0]).subject
    except Refusal:
        return None


def _metric(wanted: ApiRequest) -> MetricPath:
    if not isinstance(wanted.path, MetricPath):
        raise TypeError(f"{wanted.path} is not about objects")
    return wanted.path


def _custom(wanted: ApiRequest, path: MetricPath) -> Question:
    return Question(
        path=path,
        objects=wanted.objects,
        series=wanted.series,
        combine=wanted.combine,
        window_seconds=wanted.window_seconds,
    )


def _external(wanted: ApiRequest, path: ExternalPath) -> ExternalQuestion:
    return ExternalQuestion(path=path, series=wanted.objects)


def _check_form(request: web.Request, wanted: ApiRequest) -> None:
    if request.method not in READING:
        raise Refusal(
            Reason.MethodNotAllowed, f"{request.method} is not allowed: metrics can only be read"
        )
    # A list in place of a stream of changes would be asked for again at once, and for ever.
    if wanted.watch and not isinstance(wanted.path, DiscoveryPath):
        raise Refusal(
            Reason.MethodNotAllowed, "watch is not allowed: metrics have values, not changes"
        )
    if not accepts_json(", ".join(request.headers.getall("Accept", ()))):
        raise Refusal(Reason.NotAcceptable, f"only the following media types are accepted: {JSON}")


def _pretty(wanted: ApiRequest, agent: str) -> bool:
    return agent.startswith(_PRETTY_AGENTS) if wanted.pretty is None else wanted.pretty


def _api(raw_path: str) -> str:
    group = (*raw_path.partition("?")[0].split("/"), "", "", "")[2]
    return group if group in GROUPS else "other"
