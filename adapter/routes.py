"""The API port: a single handler, since we split paths by our own rules.

It never waits: what it needs is in memory, or the request is refused.
"""

import time
from collections.abc import Sequence
from functools import lru_cache
from http import HTTPMethod
from typing import Final

import msgspec
from aiohttp import web

from adapter.answers import Answer, answer
from adapter.api.authentication import Gate
from adapter.api.discovery import BODIES
from adapter.api.paths import GROUPS, DiscoveryPath, ExternalPath
from adapter.api.request import ApiRequest, parse
from adapter.api.status import Reason, Refusal
from adapter.explain import explain
from adapter.query import Query, check
from adapter.readiness import Readiness
from adapter.view import View
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

    def __init__(self, view: View, gate: Gate, readiness: Readiness, metrics: OwnMetrics) -> None:
        self._view = view
        self._gate = gate
        self._readiness = readiness
        self._seconds = metrics.histogram(REQUEST_SECONDS)
        self._cached: dict[str, tuple[int, int, Answer]] = {}
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
            response = self._respond(request)
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

    def _respond(self, request: web.Request) -> web.Response:
        self._gate.check(request.get_extra_info("peercert"), request.get_extra_info("ssl_object"))
        _check_form(request.method, request.headers.get("Accept", ""))
        wanted = parse(request.raw_path)
        if isinstance(wanted.path, DiscoveryPath):
            given = Answer(body=BODIES[wanted.path])
        else:
            given = self._metric(request.raw_path, wanted)
        body = given.body
        if _pretty(wanted, request.headers.get("User-Agent", "")):
            body = msgspec.json.format(body, indent=2) + b"\n"
        headers = {"Warning": given.warning} if given.warning else None
        return web.Response(body=body, content_type=JSON, headers=headers)

    def _metric(self, raw_path: str, wanted: ApiRequest) -> Answer:
        if fault := self._readiness.pods_listed():
            _query(wanted)  # What is never served is not found, even now.
            raise Refusal(Reason.ServiceUnavailable, fault)
        if wanted.explain:
            return Answer(body=explain(self._view, _query(wanted)))
        return self._unchanged(raw_path) or self._answered(raw_path, _query(wanted))

    def _unchanged(self, raw_path: str) -> Answer | None:
        """Return the previous answer to the same URL if nothing has changed since."""
        cached = self._cached.get(raw_path)
        if cached is None:
            return None
        readings, pods, given = cached
        same = readings == self._view.revision and pods == self._view.pods.revision
        return given if same and self._view.monotonic() < given.expires_at else None

    def _answered(self, raw_path: str, query: Query) -> Answer:
        given = answer(self._view, query)
        # Replaced answers are still counted: cheaper than a sum, and errs on the safe side.
        self._cached_bytes += len(raw_path) + len(given.body)
        if self._cached_bytes > CACHED_BYTES:
            self._cached, self._cached_bytes = {}, 0
        self._cached[raw_path] = (self._view.revision, self._view.pods.revision, given)
        return given


def _refused(refusal: Refusal) -> web.Response:
    return web.Response(body=refusal.body(), status=refusal.code, content_type=JSON)


def _query(wanted: ApiRequest) -> Query:
    path = wanted.path
    if isinstance(path, ExternalPath):
        raise Refusal(
            Reason.NotFound,
            f"the server could not find the metric {path.metric} for namespaces; "
            "no external metrics are configured",
        )
    if isinstance(path, DiscoveryPath):
        raise TypeError("a discovery path has no values")
    return check(path, wanted.objects, wanted.devices)


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
