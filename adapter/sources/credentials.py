"""What the adapter shows to exporters, and whom it takes for one: token, certificate, authorities.

Files may be replaced at any time; streams that are opened afterwards use the new ones. A stream
that is open stays: whoever was let in does not have to come back.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slicewatch.service.reload import Watched
from slicewatch.service.tls import no_password


class CredentialsError(ValueError):
    """Files that cannot be used towards exporters; says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialFiles:
    """Paths of PEM files and of a token; empty for none.

    Attributes:
        ca: authorities of the exporters' certificates; by default those of the system.
        certificate, key: what we show; both or neither.
        token: sent as ``Authorization: Bearer``.
    """

    ca: str = ""
    certificate: str = ""
    key: str = ""
    token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    """What the files say: equal ones need no new context."""

    pem: tuple[bytes, ...] = ()
    token: str = field(default="", repr=False)


class Credentials:
    """The options of each request to an exporter.

    Args:
        files: where they come from.
        server_name: the name that every exporter's certificate is for; empty to expect the host
            of its URL, which is an address where exporters are found by their Service.
    """

    def __init__(self, files: CredentialFiles | None = None, server_name: str = "") -> None:
        self._files = files or CredentialFiles()
        self._server_name = server_name
        self._options: dict[str, Any] = {}

    @property
    def options(self) -> Mapping[str, Any]:
        """Return arguments for ``aiohttp.ClientSession.get``."""
        return self._options

    def watched(self) -> Watched[Any]:
        """Return the files as something to reload; starting it loads them.

        Starting raises ``OSError`` or ``CredentialsError``.
        """
        return Watched("credentials for exporters", self._load, self._apply)

    def _load(self) -> _Content:
        files = self._files
        paths = [path for path in (files.ca, files.certificate, files.key) if path]
        return _Content(
            pem=tuple(Path(path).read_bytes() for path in paths),
            token=_token(Path(files.token)) if files.token else "",
        )

    def _apply(self, content: _Content) -> None:
        made: dict[str, Any] = {"ssl": self._context()}
        if self._server_name:
            made["server_hostname"] = self._server_name
        if content.token:
            made["headers"] = {"Authorization": f"Bearer {content.token}"}
        self._options = made

    def _context(self) -> ssl.SSLContext:
        files = self._files
        try:
            context = ssl.create_default_context(cafile=files.ca or None)
        except (OSError, ValueError) as error:
            raise CredentialsError(f"{files.ca} holds no authorities (PEM): {error}") from error
        if files.certificate:
            try:
                context.load_cert_chain(files.certificate, files.key, password=no_password)
            except (OSError, ValueError) as error:
                raise CredentialsError(
                    f"certificate {files.certificate} with key {files.key}: {error}"
                ) from error
        return context


def _token(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace").strip()
    if not text:
        raise CredentialsError(f"{path} has no token")
    if not all("!" <= character <= "~" for character in text):
        raise CredentialsError(f"{path} has no token: a token is one word of printable ASCII")
    return text
