"""Answers of the Prometheus HTTP API, read strictly: what is not understood is never a value.

Format: Prometheus documentation, "HTTP API", which Thanos, Mimir and VictoriaMetrics share.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

# What a backend says ends up in a message of Kubernetes.
LONGEST_SAYING: Final = 500
MOST_WARNINGS: Final = 10
# Everybody waits while an answer is read, and no autoscaler asks for so many objects.
MOST_SERIES: Final = 20_000

T = TypeVar("T")

_LONGEST_NUMBER: Final = 400
_NUMBER: Final = re.compile(
    r"[-+]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|inf(?:inity)?|nan)",
    re.IGNORECASE | re.ASCII,
)


class MalformedResultError(ValueError):
    """An answer is not one of the HTTP API, or not of a kind that can be used; says which."""


class TooLargeResultError(ValueError):
    """An answer has more series than anybody asks for."""


class QueryRefusedError(ValueError):
    """The backend refuses the query; the text is its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A value with its labels; it may be NaN or infinite."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a query came to.

    Attributes:
        histograms: number of series left out, since a native histogram is no number.
        warnings: what the backend remarked, such as a store that did not answer.
    """

    samples: tuple[Sample, ...]
    histograms: int = 0
    warnings: tuple[str, ...] = ()


class _Envelope(msgspec.Struct, frozen=True, rename="camel"):
    status: str
    data: msgspec.Raw = msgspec.Raw(b"null")
    error_type: str = ""
    error: str = ""
    warnings: tuple[str, ...] = ()


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    result_type: str
    result: msgspec.Raw


_Point = tuple[float, str]


class _Series(msgspec.Struct, frozen=True):
    """One series of an instant vector: one without a value is a native histogram."""

    metric: dict[str, str] = {}
    value: _Point | None = None


_envelope = msgspec.json.Decoder(_Envelope)
_data = msgspec.json.Decoder(_Data)
_vector = msgspec.json.Decoder(tuple[_Series, ...])
_scalar = msgspec.json.Decoder(_Point)
_names = msgspec.json.Decoder(tuple[str, ...])


def result(body: bytes) -> Result:
    """Return the samples of the answer to an instant query: a vector, or a scalar.

    Raises:
        QueryRefusedError: the answer is the backend's refusal.
        TooLargeResultError: it has too many series to be read while others wait.
        MalformedResultError: it is no answer, or the query made a matrix or a text.
    """
    # A series has one brace or two. Counted before anything is made of them.
    if body.count(b"{") > 2 * MOST_SERIES:
        raise TooLargeResultError(f"more than {MOST_SERIES} series")
    envelope = _opened(body)
    data = _decoded(_data, envelope.data)
    if data.result_type == "scalar":
        _, text = _decoded(_scalar, data.result)
        samples: tuple[Sample, ...] = (Sample(labels={}, value=_number(text)),)
        histograms = 0
    elif data.result_type == "vector":
        samples, histograms = _samples(_decoded(_vector, data.result))
    else:
        raise MalformedResultError(
            f"the query makes a {data.result_type[:20]}, but an autoscaler needs one value now: "
            "write one that makes an instant vector, with a function over a range"
        )
    warnings = tuple(text[:LONGEST_SAYING] for text in envelope.warnings[:MOST_WARNINGS])
    return Result(samples=samples, histograms=histograms, warnings=warnings)


def names(body: bytes) -> tuple[str, ...]:
    """Return the answer to a question for names or values of labels.

    Raises:
        QueryRefusedError, MalformedResultError: as of ``result``.
    """
    data = _opened(body).data
    return () if bytes(data) == b"null" else _decoded(_names, data)


def refusal(body: bytes) -> str:
    """Return why a backend refuses, in its own words; empty if it does not say so in its form."""
    try:
        envelope = _envelope.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return ""
    return _said(envelope) if envelope.status == "error" else ""


def _opened(body: bytes) -> _Envelope:
    envelope = _decoded(_envelope, body)
    if envelope.status == "error":
        raise QueryRefusedError(_said(envelope))
    if envelope.status != "success":
        raise MalformedResultError(f"its status is {envelope.status[:20]!r}")
    return envelope


def _said(envelope: _Envelope) -> str:
    text = ": ".join(part for part in (envelope.error_type, envelope.error) if part)
    return " ".join(text.split())[:LONGEST_SAYING] or "no reason given"


def _decoded(decoder: msgspec.json.Decoder[T], body: bytes | msgspec.Raw) -> T:
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise MalformedResultError(f"not an answer of the HTTP API: {error}") from error


def _samples(vector: tuple[_Series, ...]) -> tuple[tuple[Sample, ...], int]:
    found = [
        Sample(labels=series.metric, value=_number(series.value[1]))
        for series in vector
        if series.value is not None
    ]
    return tuple(found), len(vector) - len(found)


def _number(text: str) -> float:
    # Python's own would take more, such as 1_000.
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        raise MalformedResultError(f"{text[:40]!r} is not a number")
    return float(text)
