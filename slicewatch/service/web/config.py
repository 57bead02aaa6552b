"""The web configuration file that exporters of the Prometheus project share.

Format: prometheus/exporter-toolkit, ``docs/web-configuration.md``. A file that the toolkit serves
with means the same here, or is refused with the key and what to do. Differences: no HTTP/2, no
TLS before 1.2, no certificates that are not verified, one curve at most (Python's ssl module has
no more). Nothing is served here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from slicewatch.service.documents import DocumentError, parse_yaml
from slicewatch.service.settings import duration
from slicewatch.service.tls import ServerTls, TlsError
from slicewatch.service.web import passwords
from slicewatch.service.web.encryption import TlsSection, allowed_sans, server_tls
from slicewatch.service.web.reading import Reading

SECTIONS: Final = ("tls_server_config", "http_server_config", "basic_auth_users", "rate_limit")
# Header -> values that it may have; none means any.
HEADERS: Final[Mapping[str, tuple[str, ...]]] = {
    "Content-Security-Policy": (),
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
}


class WebConfigError(ValueError):
    """The file cannot be served with; one line per fault."""

    def __init__(self, path: Path, faults: list[str]) -> None:
        self.faults = tuple(f"web configuration {path}: {fault}" for fault in faults)
        super().__init__("\n".join(self.faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """At most ``burst`` requests at once, and one more per interval."""

    interval_seconds: float
    burst: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WebConfig:
    """What the file and the files that it names say. Equal ones serve the same.

    Attributes:
        tls: None for plain HTTP.
        allowed_sans: of which a client's certificate must have one; None allows any.
        users: user name -> bcrypt hash; nobody is asked for a password if empty.
        headers: added to every response.
    """

    tls: ServerTls | None = None
    allowed_sans: frozenset[str] | None = None
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    rate_limit: RateLimit | None = None

    @property
    def verifies_clients(self) -> bool:
        """Tell whether clients can be told apart by certificates."""
        return self.tls is not None and self.tls.client_auth.verifies


class _Http(msgspec.Struct, frozen=True, kw_only=True):
    http2: bool = True  # known, and without effect
    headers: dict[str, str] = {}


class _Rate(msgspec.Struct, frozen=True, kw_only=True):
    interval: str = "0"
    burst: int = 0


def read(path: Path) -> WebConfig:
    """Return the configuration of a file, with the content of the certificates that it names.

    Relative paths in it are relative to its folder. Blocks on the file system.

    Raises:
        WebConfigError: with every fault that was found.
    """
    try:
        config = parse(path.read_text(encoding="utf-8"), path)
        if config.tls is not None:
            config.tls.context()
    except TlsError as error:
        raise WebConfigError(path, [f"tls_server_config: {error}"]) from error
    except UnicodeDecodeError as error:
        raise WebConfigError(path, [f"not text in UTF-8: {error}"]) from error
    except OSError as error:
        raise WebConfigError(path, [f"cannot be read: {error.strerror}"]) from error
    return config


def parse(text: str, path: Path) -> WebConfig:
    """Return the configuration of a text that is, or could be, in the file ``path``.

    Raises:
        WebConfigError: with every fault that was found.
    """
    try:
        content = parse_yaml(text, typed=False)
    except DocumentError as error:
        raise WebConfigError(path, [str(error)]) from error
    content = {} if content in ("", None) else content
    if not isinstance(content, dict):
        raise WebConfigError(path, ["must map the names of sections to their keys"])
    reading = Reading(path.parent)
    reading.unknown("top level", content, SECTIONS)
    encryption, http, users, rate = (content.get(name) for name in SECTIONS)
    tls = reading.section(SECTIONS[0], encryption, TlsSection)
    config = WebConfig(
        tls=server_tls(reading, tls) if tls.enabled else None,
        allowed_sans=allowed_sans(reading, tls),
        users=_users(reading, users),
        headers=_headers(reading, reading.section(SECTIONS[1], http, _Http).headers),
        rate_limit=_rate_limit(reading, reading.section(SECTIONS[3], rate, _Rate)),
    )
    if reading.faults:
        raise WebConfigError(path, reading.faults)
    return config


def _headers(reading: Reading, given: Mapping[str, str]) -> Mapping[str, str]:
    reading.unknown("headers", given, tuple(HEADERS))
    for name, value in given.items():
        allowed = HEADERS.get(name, ())
        if value and allowed and value not in allowed:
            reading.faults.append(f"headers: {name} must be {' or '.join(allowed)}, not {value!r}")
        elif not value.isprintable():
            reading.faults.append(f"headers: {name} has characters that no header may have")
    return {name: value for name, value in given.items() if value}


def _users(reading: Reading, given: object) -> Mapping[str, str]:
    if given in ("", None):
        return {}
    if not isinstance(given, dict) or not all(
        isinstance(text, str) for pair in given.items() for text in pair
    ):
        reading.faults.append("basic_auth_users: must map user names to bcrypt hashes")
        return {}
    for user, hashed in given.items():
        if fault := passwords.fault_of(hashed):
            reading.faults.append(f"basic_auth_users: what {user!r} has {fault}")
        if ":" in user:
            reading.faults.append(f"basic_auth_users: {user!r} has a colon, which HTTP splits at")
    return given


def _rate_limit(reading: Reading, given: _Rate) -> RateLimit | None:
    try:
        seconds = duration(given.interval)
    except ValueError as error:
        reading.faults.append(f"rate_limit: interval: {error}")
        return None
    if seconds == 0:
        return None
    if given.interval.strip().replace(".", "").isdigit():
        reading.faults.append(f"rate_limit: interval: {given.interval} has no unit; write 1s")
    if given.burst < 1:
        reading.faults.append("rate_limit: burst: must be at least 1, or nothing is answered")
    return RateLimit(interval_seconds=seconds, burst=given.burst)
