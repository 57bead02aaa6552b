"""Where the page of a pod is: its own address, and the port and path in its annotations.

Whoever may annotate a pod decides what the adapter requests, so nothing but the pod's own address
is ever asked: an annotation cannot name a host.
"""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from yarl import URL

from slicewatch.kube.objects import Annotations, Pod

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")
_MOST_PORT: Final = 65535
_SCHEMES: Final = ("http", "https")
# What may stand in a path and its query, percent-encoded where need be.
_PATH: Final = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]{0,1023}", re.ASCII)


class TargetError(Exception):
    """A pod's annotations cannot be used; says which, and how to write it."""


class NotOfferedError(TargetError):
    """A pod does not offer its metrics."""


class NoAddressError(TargetError):
    """A pod has no address yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A page of one pod. Another pod of the same name, or at the same address, has another."""

    uid: str
    url: URL


def is_pod_address(address: Address) -> bool:
    """Tell whether a pod can have an address: it never has one that means the asking machine."""
    return not (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
    )


def of_pod(pod: Pod, permitted: Callable[[Address], bool] = is_pod_address) -> Target:
    """Return where the page of a pod is.

    Raises:
        NotOfferedError: it is not annotated to be scraped.
        NoAddressError: it is, and has no address yet.
        TargetError: it is, but not in a way that can be used.
    """
    given = pod.metadata.annotations
    if given.scrape != "true":
        said = f"{given.scrape!r}" if given.scrape else "missing"
        raise NotOfferedError(f'prometheus.io/scrape is {said}; write "true" to offer a page')
    scheme, port, path = _scheme(given), _port(given), _path(given)
    if not pod.status.pod_ip:
        raise NoAddressError("it has no address yet")
    host = _host(pod.status.pod_ip, permitted)
    # Put together from parts: no part can reach into another.
    base = URL.build(scheme=scheme, host=host, port=port)
    return Target(uid=pod.metadata.uid, url=base.join(URL(path, encoded=True)))


def _scheme(given: Annotations) -> str:
    scheme = given.scheme or "http"
    if scheme not in _SCHEMES:
        raise TargetError(f"prometheus.io/scheme is {scheme!r}; write http or https")
    return scheme


def _port(given: Annotations) -> int:
    text = given.port
    if not text:
        raise TargetError("prometheus.io/port is missing; write the number of the port")
    if not _PORT.fullmatch(text) or int(text) > _MOST_PORT:
        raise TargetError(f"prometheus.io/port is {text!r}; write a number from 1 to {_MOST_PORT}")
    return int(text)


def _path(given: Annotations) -> str:
    path = given.path or "/metrics"
    if not _PATH.fullmatch(path) or path.startswith("//"):
        raise TargetError(
            f"prometheus.io/path is {path[:100]!r}; write a path that begins with one /, "
            "with anything unusual percent-encoded"
        )
    return path


def _host(text: str, permitted: Callable[[Address], bool]) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise TargetError(f"its address {text!r} is not an IP address") from error
    if not permitted(address):
        raise TargetError(f"its address {address} is none that a pod can have")
    return str(address)
