"""Refusals in Kubernetes' form: a Status whose message people read in their autoscaler.

No answer ever carries ``Retry-After``, nor ``retryAfterSeconds``: it makes clients sleep and retry
inside one of the few workers that all autoscalers of the cluster share.
"""

from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Any

import msgspec


class Reason(Enum):
    """The reasons we give, each with its HTTP status.

    There is no UnsupportedMediaType among them: nothing that is sent to us is ever read, so a
    request with a body has already been refused for its method.
    """

    BadRequest = HTTPStatus.BAD_REQUEST
    Unauthorized = HTTPStatus.UNAUTHORIZED
    NotFound = HTTPStatus.NOT_FOUND
    MethodNotAllowed = HTTPStatus.METHOD_NOT_ALLOWED
    NotAcceptable = HTTPStatus.NOT_ACCEPTABLE
    InternalError = HTTPStatus.INTERNAL_SERVER_ERROR
    ServiceUnavailable = HTTPStatus.SERVICE_UNAVAILABLE
    Timeout = HTTPStatus.GATEWAY_TIMEOUT


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a refused request was about, as the details of a Status name it.

    Attributes:
        kind: the resource in the path, as Kubernetes has it there, such as ``pods``.
        name: of the metric.
    """

    group: str
    kind: str
    name: str


class Refusal(Exception):  # noqa: N818 - an answer, not a failure
    """A request is refused; ``message`` tells the user why.

    Args:
        reason: the class of it, which programs decide by.
        message: the cause, for people.
        field: the query parameter that is at fault, if one is.
    """

    def __init__(self, reason: Reason, message: str, *, field: str = "") -> None:
        self.reason = reason
        self.message = message
        self.field = field
        super().__init__(message)

    @property
    def code(self) -> int:
        """Return the HTTP status."""
        return int(self.reason.value)

    def body(self, subject: Subject | None = None) -> bytes:
        """Return the Status object; ``subject`` is what the request was about, once that is known."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            # A path may have held bytes that are no text.
            "message": _text(self.message),
            "reason": self.reason.name,
        }
        if details := self._details(subject):
            status["details"] = details
        return msgspec.json.encode(status | {"code": self.code})

    def _details(self, subject: Subject | None) -> dict[str, Any]:
        details: dict[str, Any] = {}
        if subject is not None:
            named = {"name": subject.name, "group": subject.group, "kind": subject.kind}
            details = {key: _text(value) for key, value in named.items() if value}
        if self.field:
            cause = {"reason": "FieldValueInvalid", "message": _text(self.message)}
            details["causes"] = [cause | {"field": self.field}]
        return details


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def not_available(
    metric: str, why: object, *, reason: Reason = Reason.ServiceUnavailable
) -> Refusal:
    """Return the refusal of a metric that there is, and whose values are missing for now."""
    return Refusal(reason, f"the metric {metric} is not available now: {why}")
