"""What can go wrong at the Kubernetes seam: one small family, told apart by what to do next."""

from http import HTTPStatus
from typing import Final


class KubeError(Exception):
    """A request to the API server failed; the message says which one and why.

    Attributes:
        code: HTTP status of the answer; None without one.
        said: the message of the answer's Status, which is what other clients show.
    """

    code: int | None = None
    said: str = ""


class NotFoundError(KubeError):
    """The object, or its whole kind, does not exist."""


class ForbiddenError(KubeError):
    """Our account may not do this: a role or the credentials have to change first."""


class ConflictError(KubeError):
    """The object already exists, or has changed since it was read."""


class GoneError(KubeError):
    """The API server has forgotten the requested version; list again."""


class MalformedError(KubeError):
    """An answer of the API server cannot be read as what was asked for."""


class UnavailableError(KubeError):
    """The API server is unreachable, failing or overloaded; try again later."""


_BY_STATUS: Final[dict[int, type[KubeError]]] = {
    HTTPStatus.UNAUTHORIZED: ForbiddenError,
    HTTPStatus.FORBIDDEN: ForbiddenError,
    HTTPStatus.NOT_FOUND: NotFoundError,
    HTTPStatus.CONFLICT: ConflictError,
    HTTPStatus.GONE: GoneError,
    HTTPStatus.TOO_MANY_REQUESTS: UnavailableError,
}


def of_status(code: int, message: str, said: str = "") -> KubeError:
    """Return the error for an HTTP status of the API server."""
    failing = code >= HTTPStatus.INTERNAL_SERVER_ERROR
    error = (UnavailableError if failing else _BY_STATUS.get(code, KubeError))(message)
    error.code, error.said = code, said
    return error
