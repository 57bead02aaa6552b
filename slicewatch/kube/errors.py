"""What can go wrong at the seam to Kubernetes: a family of five, told apart by what to do next."""

from http import HTTPStatus
from typing import Final


class KubeError(Exception):
    """A request to the API server was not answered as hoped; says which and why."""


class NotFound(KubeError):  # noqa: N818 - the API's own word
    """The object, or its whole kind, does not exist."""


class Forbidden(KubeError):  # noqa: N818 - the API's own word
    """Our account may not do this: a role or the credentials have to change first."""


class Conflict(KubeError):  # noqa: N818 - the API's own word
    """The object exists already, or has changed since it was read."""


class Gone(KubeError):  # noqa: N818 - the API's own word
    """The version to go on from is forgotten; list anew."""


class Unavailable(KubeError):  # noqa: N818 - the API's own word
    """The API server cannot be reached, fails or is overloaded; try again later."""


_BY_STATUS: Final[dict[int, type[KubeError]]] = {
    HTTPStatus.UNAUTHORIZED: Forbidden,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.CONFLICT: Conflict,
    HTTPStatus.GONE: Gone,
    HTTPStatus.TOO_MANY_REQUESTS: Unavailable,
}


def of_status(code: int, message: str) -> KubeError:
    """Return the error that an HTTP status of the API server stands for."""
    if code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Unavailable(message)
    return _BY_STATUS.get(code, KubeError)(message)
