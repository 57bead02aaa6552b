"""The API port: a single handler, since we split paths by our own rules.

What a request is about is found here; who answers it, in the offering. What exporters read is in
memory, so nothing of it waits; only a provider that has a backend may.
"""

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from http import HTTPMethod
from typing import Final

import msgspec
from aiohttp import web

from adapter.api.authentication import Gate
from adapter.api.paths import GROUPS, DiscoveryPath, ExternalPath, MetricPath
from adapter.api.request import ApiRequest, parse
from adapter.api.status import Reason, Refusal
from adapter.offering import Offering
from adapter.provider import Answer, ExternalQuestion, Question, Tree
from adapter.readiness import Readiness
from slicewatch.catalog.own import REQUEST_SECONDS
from slicewatch.service import logs
from slicewatch.service.own_metrics import OwnMetrics

log = logs.logger(__name__)

JSON: Final = "application/json"
CACHED_BYTES: Final = 32 << 20
# The most specific first: it is the one that counts.
_ACCEPTABLE: Final = (JSON, "application/*", "*/*")
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
    ) -> None:
        self._offering = offering
        self._gate = gate
        self._readiness = readiness
        self._monotonic = monotonic
        self._seconds = metrics.histogram(REQUEST_SECONDS)
        self._cached: dict[str, Answer] = {}
        self._cached_bytes = 0

    def app(self) -> web.Application:
        """Return the application."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.handle)
        return app

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request, or refuse it with a Status."""
        began = time.perf_counter()
        try:
            response = await self._respond(request)
        except Refusal as refusal:
            response = _refused(refusal)
        except Exception:  # The boundary: a bug costs one request.
            log.exception("request failed", path=request.raw_path)
            response = _refused(Refusal(Reason.InternalError, "the adapter failed; see its log"))
        if self._gate.outdated(request.get_extra_info("ssl_object")):
            response.force_close()  # The next connection has to present a certificate again.
        elapsed = time.perf_counter() - began
        self._seconds.labels(_api(request.raw_path), str(response.status)).observe(elapsed)
        return response

    async def _respond(self, request: web.Request) -> web.Response:
        self._gate.check(request.get_extra_info("peercert"), request.get_extra_info("ssl_object"))
        _check_form(request.method, request.headers.get("Accept", ""))
        wanted = parse(request.raw_path)
        if isinstance(wanted.path, DiscoveryPath):
            given = Answer(body=self._offering.discovery(wanted.path))
        elif wanted.explain:
            given = Answer(body=msgspec.json.encode(await self._explained(wanted)))
        else:
            given = self._unchanged(request.raw_path) or await self._answered(
                request.raw_path, wanted
            )
        body = given.body
        if _pretty(wanted, request.headers.get("User-Agent", "")):
            body = msgspec.json.format(body, indent=2) + b"\n"
        headers = {"Warning": given.warning} if given.warning else None
        return web.Response(body=body, content_type=JSON, headers=headers)

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
        custom = self._offering.of(_metric(wanted))
        self._check_pods()
        return await custom.answer(_custom(wanted))

    async def _explained(self, wanted: ApiRequest) -> Tree:
        if isinstance(wanted.path, ExternalPath):
            external = self._offering.of_external(wanted.path)
            return await external.explain_external(_external(wanted, wanted.path))
        custom = self._offering.of(_metric(wanted))
        self._check_pods()
        return await custom.explain(_custom(wanted))

    def _check_pods(self) -> None:
        """Refuse what is asked of objects before all pods are known; 404s come first."""
        if fault := self._readiness.pods_listed():
            raise Refusal(Reason.ServiceUnavailable, fault)


def _refused(refusal: Refusal) -> web.Response:
    return web.Response(body=refusal.body(), status=refusal.code, content_type=JSON)


def _metric(wanted: ApiRequest) -> MetricPath:
    if not isinstance(wanted.path, MetricPath):
        raise TypeError(f"{wanted.path} is not about objects")
    return wanted.path


def _custom(wanted: ApiRequest) -> Question:
    return Question(path=_metric(wanted), objects=wanted.objects, series=wanted.series)


def _external(wanted: ApiRequest, path: ExternalPath) -> ExternalQuestion:
    return ExternalQuestion(path=path, series=wanted.objects)


def _check_form(method: str, accept: str) -> None:
    if method not in {HTTPMethod.GET, HTTPMethod.HEAD}:
        raise Refusal(
            Reason.MethodNotAllowed, f"{method} is not allowed: metrics can only be read"
        )
    if accept and not _accepts_json(accept):
        raise Refusal(Reason.NotAcceptable, f"only the following media types are accepted: {JSON}")


@lru_cache(maxsize=256)
def _accepts_json(accept: str) -> bool:
    weights: dict[str, float] = {}
    for part in accept.lower().split(","):
        media, *parameters = (text.strip() for text in part.split(";"))
        weights[media] = max(weights.get(media, 0.0), _weight(parameters))
    return next((weights[media] for media in _ACCEPTABLE if media in weights), 0.0) > 0


def _weight(parameters: Sequence[str]) -> float:
    """Return how much a media type is wanted; what is no number does not restrict it."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 1.0
    return 1.0


def _pretty(wanted: ApiRequest, agent: str) -> bool:
    return agent.startswith(_PRETTY_AGENTS) if wanted.pretty is None else wanted.pretty


def _api(raw_path: str) -> str:
    group = (*raw_path.partition("?")[0].split("/"), "", "", "")[2]
    return group if group in GROUPS else "other"
