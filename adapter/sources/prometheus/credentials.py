"""What the adapter shows to a backend, as it is on disk now: tokens, passwords, certificates.

Files are looked at before each request and read when they have been replaced: a token of
Kubernetes lives for an hour. One that cannot be read does not cost what was read before.
"""

import ssl
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

from slicewatch.service.stamp import Stamp, stamp
from slicewatch.service.tls import no_password

LONGEST_SECRET: Final = 65_536

T = TypeVar("T")


class CredentialsError(ValueError):
    """Credentials cannot be used; says which file and why, and never what is in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How a backend is entered. Paths are empty for what it does not need.

    Attributes:
        token_file: a bearer token.
        username: of basic authentication, with a password or the file that has it.
        ca_file: authorities of the backend's certificate; empty for those of the system.
        certificate_file, key_file: what the adapter identifies itself with.
        server_name: in the backend's certificate, if it is not the host of its URL.
        verify: False takes any certificate of the backend.
    """

    token_file: str = ""
    username: str = ""
    password: str = ""
    password_file: str = ""
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    server_name: str = ""
    verify: bool = True

    def __repr__(self) -> str:
        return "Access(...)"


class Credentials:
    """The headers and the TLS context of requests to one backend."""

    def __init__(self, access: Access) -> None:
        self._access = access
        secret = access.token_file or access.password_file
        self._authorization = _Kept([secret] if secret else [], self._read_authorization)
        files = (access.ca_file, access.certificate_file, access.key_file)
        self._context = _Kept([path for path in files if path], self._read_context)

    def headers(self) -> Mapping[str, str]:
        """Return the header that authenticates, or none.

        Raises:
            CredentialsError: a file cannot be read, and never could.
        """
        said = self._authorization.now()
        return {"Authorization": said} if said else {}

    def context(self) -> ssl.SSLContext:
        """Return the context for connections; the same one until a file is replaced.

        Raises:
            CredentialsError: a file cannot be used, and none could before.
        """
        return self._context.now()

    def _read_authorization(self) -> str:
        access = self._access
        if access.token_file:
            return f"Bearer {_secret(access.token_file)}"
        if not access.username:
            return ""
        password = _secret(access.password_file) if access.password_file else access.password
        return f"Basic {b64encode(f'{access.username}:{password}'.encode()).decode()}"

    def _read_context(self) -> ssl.SSLContext:
        access = self._access
        try:
            context = ssl.create_default_context(cafile=access.ca_file or None)
            if access.certificate_file:
                context.load_cert_chain(
                    access.certificate_file, access.key_file, password=no_password
                )
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            named = ", ".join(self._context.paths)
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
            raise CredentialsError(f"certificates cannot be used ({named}): {reason}") from error
        if not access.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


class _Kept(Generic[T]):
    """What is made of files, made again when they are replaced."""

    def __init__(self, paths: Sequence[str], make: Callable[[], T]) -> None:
        self.paths = tuple(paths)
        self._make = make
        self._made: tuple[T, Stamp] | None = None

    def now(self) -> T:
        # Taken before the files are read: a change in between is seen by the next call.
        now = stamp(self.paths)
        if self._made is not None and (self._made[1] == now or (self.paths and not now)):
            return self._made[0]
        try:
            made = self._make()
        except CredentialsError:
            if self._made is None:
                raise
            return self._made[0]
        self._made = (made, now)
        return made


def _secret(path: str) -> str:
    try:
        with Path(path).open(encoding="ascii") as file:
            text = file.read(LONGEST_SECRET).strip()
    except OSError as error:
        raise CredentialsError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CredentialsError(f"{path} has characters that no header may have") from error
    if not text or not text.isprintable():
        raise CredentialsError(f"{path} is empty or has more than one line")
    return text
