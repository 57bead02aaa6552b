"""Refusals in Kubernetes' form: a Status whose message people read in their autoscaler.

No answer ever carries ``Retry-After``: it makes clients sleep and retry inside one of the few
workers that all autoscalers of the cluster share.
"""

from enum import Enum
from http import HTTPStatus

import msgspec


class Reason(Enum):
    """The reasons we give, each with its HTTP status."""

    BadRequest = HTTPStatus.BAD_REQUEST
    Unauthorized = HTTPStatus.UNAUTHORIZED
    NotFound = HTTPStatus.NOT_FOUND
    MethodNotAllowed = HTTPStatus.METHOD_NOT_ALLOWED
    NotAcceptable = HTTPStatus.NOT_ACCEPTABLE
    InternalError = HTTPStatus.INTERNAL_SERVER_ERROR
    ServiceUnavailable = HTTPStatus.SERVICE_UNAVAILABLE


class Refusal(Exception):  # noqa: N818 - an answer, not a failure
    """A request is refused; ``message`` tells the user why."""

    def __init__(self, reason: Reason, message: str) -> None:
        self.reason = reason
        self.message = message
        super().__init__(message)

    @property
    def code(self) -> int:
        """Return the HTTP status."""
        return int(self.reason.value)

    def body(self) -> bytes:
        """Return the Status object."""
        return msgspec.json.encode(
            {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": self.message,
                "reason": self.reason.name,
                "code": self.code,
            }
        )
