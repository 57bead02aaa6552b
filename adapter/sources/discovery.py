"""Which exporters there are: a list given by hand, or the endpoints of their Service."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from adapter.sources.source import Target
from slicewatch.kube.cache import Cache
from slicewatch.kube.objects import Endpoint, EndpointSlice, Selection

SERVICE_LABEL: Final = "kubernetes.io/service-name"
DEFAULT_PORT: Final = 9400
PORT_NAMES: Final = ("http", "https", "metrics")
SCHEMES: Final = ("http", "https")


def target(url: str) -> Target:
    """Return the target for a URL or for ``host:port``.

    Raises:
        ValueError: it is neither.
    """
    text = url if "://" in url else f"http://{url}"
    parts = urlsplit(text.rstrip("/"))
    try:
        valid = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError as error:
        raise ValueError(f"{url!r} is not a valid exporter address: {error}") from error
    if not valid or parts.query or parts.fragment:
        raise ValueError(
            f"{url!r} is not a valid exporter address; write it like http://10.0.0.7:9400"
        )
    return Target(parts.geturl())


def fixed(urls: Iterable[str]) -> Callable[[], Mapping[Target, str]]:
    """Return targets that never change; nobody says on which nodes they are."""
    targets = {target(url): "" for url in urls}
    return lambda: targets


def selection(service: str, namespace: str) -> Selection:
    """Return what to watch in order to know the endpoints of a Service."""
    return Selection(namespace=namespace, labels={SERVICE_LABEL: service})


def of_slices(
    slices: Cache[EndpointSlice], scheme: str = "http"
) -> Callable[[], Mapping[Target, str]]:
    """Return the targets of all endpoints in a cache, looked up anew at each call."""
    return lambda: endpoints(slices.objects, scheme)


def endpoints(
    slices: Mapping[tuple[str, str], EndpointSlice], scheme: str = "http"
) -> Mapping[Target, str]:
    """Return one target for each exporter that is not terminating, with the node that it is on.

    A dual-stack Service lists an exporter once per address family; it is streamed from once, over
    IPv4. Readiness does not matter: an exporter that waits for its driver is not ready, and still
    reports which devices it has lost.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for piece in slices.values():
        for endpoint in piece.endpoints or ():
            if endpoint.addresses and not endpoint.conditions.terminating:
                url = f"{scheme}://{_bracketed(endpoint.addresses[0])}:{_port(piece)}"
                found.setdefault(_exporter(endpoint), []).append((url, endpoint.node_name or ""))
    chosen = (min(places, key=_ipv4_first) for places in found.values())
    return {Target(url): node for url, node in sorted(chosen)}


def _exporter(endpoint: Endpoint) -> str:
    """Return what the addresses of one exporter have in common: its pod, else its node."""
    pod = endpoint.target_ref
    if pod is not None and pod.name:
        return f"pod {pod.namespace}/{pod.name}"
    return f"node {endpoint.node_name}" if endpoint.node_name else endpoint.addresses[0]


def _ipv4_first(place: tuple[str, str]) -> tuple[bool, tuple[str, str]]:
    return "[" in place[0], place


def _port(piece: EndpointSlice) -> int:
    ports = {port.name: port.port for port in piece.ports or () if port.port}
    named = next((ports[name] for name in PORT_NAMES if name in ports), None)
    return named or next(iter(ports.values()), None) or DEFAULT_PORT


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
