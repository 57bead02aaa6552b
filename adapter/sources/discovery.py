"""Which exporters there are: a list that a person wrote, or the endpoints of their Service."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from adapter.sources.protocol import Target
from slicewatch.kube.cache import Cache
from slicewatch.kube.objects import EndpointSlice, Selection

SERVICE_LABEL: Final = "kubernetes.io/service-name"
DEFAULT_PORT: Final = 9400


def target(url: str) -> Target:
    """Return the target of a URL or of ``host:port``.

    Raises:
        ValueError: it is neither.
    """
    text = url if "://" in url else f"http://{url}"
    parts = urlsplit(text.rstrip("/"))
    try:
        fits = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError as error:
        raise ValueError(f"{url!r} is no address of an exporter: {error}") from error
    if not fits or parts.query or parts.fragment:
        raise ValueError(f"{url!r} is no address of an exporter; write http://10.0.0.7:9400")
    return Target(parts.geturl())


def fixed(urls: Iterable[str]) -> Callable[[], frozenset[Target]]:
    """Return targets that never change."""
    targets = frozenset(target(url) for url in urls)
    return lambda: targets


def selection(service: str, namespace: str) -> Selection:
    """Return what to watch to know the endpoints of a Service."""
    return Selection(namespace=namespace, labels={SERVICE_LABEL: service})


def of_slices(slices: Cache[EndpointSlice]) -> Callable[[], frozenset[Target]]:
    """Return the targets of all endpoints of the slices that a cache holds at each call."""
    return lambda: endpoints(slices.objects)


def endpoints(slices: Mapping[tuple[str, str], EndpointSlice]) -> frozenset[Target]:
    """Return a target for each endpoint that is not about to end.

    Readiness is not asked for: an exporter that waits for its driver is not ready, and still
    tells which devices it lost.
    """
    return frozenset(
        Target(f"http://{_bracketed(endpoint.addresses[0])}:{_port(piece)}")
        for piece in slices.values()
        for endpoint in piece.endpoints or ()
        if endpoint.addresses and not endpoint.conditions.terminating
    )


def _port(piece: EndpointSlice) -> int:
    ports = {port.name: port.port for port in piece.ports or () if port.port}
    named = ports.get("http") or ports.get("metrics")
    return named or next(iter(ports.values()), None) or DEFAULT_PORT


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
