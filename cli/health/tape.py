"""Evidence as it was recorded: the answers of an exporter, one per line, with times made of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from health.source import LONGEST_ANSWER_BYTES
from slicewatch.wire.evidence import Evidence, EvidenceError, decode


class TapeError(ValueError):
    """The file is no record of evidence; the message says which line and why."""


def played(path: Path, interval_seconds: float) -> Iterator[tuple[float, Evidence]]:
    """Yield the recorded answers with the seconds since the first of them.

    Within a boot the node's uptime says how much time passed; after a boot it is taken for one
    interval, since nothing says how long the node was down. An event that several answers tell of,
    as of an exporter that was asked for all of them each time, is played once.

    Args:
        path: JSON lines; empty ones are skipped.
        interval_seconds: what lies between two answers where nothing says it.

    Raises:
        TapeError: a line is no evidence, or none is there.
        OSError: the file cannot be read.
    """
    at, last = 0.0, None
    with path.open("rb") as lines:
        for number, line in enumerate(_parts(lines), start=1):
            if not line.strip():
                continue
            evidence = _decoded(line, f"{path}:{number}")
            if last is not None:
                at += _passed(last, evidence, interval_seconds)
            yield at, _news(last, evidence)
            last = evidence
    if last is None:
        raise TapeError(f"{path}: there is no line in it; record the answers of /evidence in one")


def _parts(lines: BinaryIO) -> Iterator[bytes]:
    """Yield lines, and of one that no answer can be so long as no more than is needed to say so."""
    while line := lines.readline(LONGEST_ANSWER_BYTES + 1):
        yield line


def _passed(last: Evidence, evidence: Evidence, interval_seconds: float) -> float:
    passed = evidence.uptime_seconds - last.uptime_seconds
    return passed if last.boot_id == evidence.boot_id and passed > 0 else interval_seconds


def _news(last: Evidence | None, evidence: Evidence) -> Evidence:
    """Return evidence without the events that the answer before it has told of."""
    if last is None or last.run != evidence.run:
        return evidence
    events = tuple(event for event in evidence.events if event.number > last.newest)
    return msgspec.structs.replace(evidence, events=events)


def _decoded(line: bytes, where: str) -> Evidence:
    if len(line) > LONGEST_ANSWER_BYTES:
        raise TapeError(f"{where}: longer than the {LONGEST_ANSWER_BYTES} bytes of an answer")
    try:
        return decode(line)
    except EvidenceError as error:
        raise TapeError(f"{where}: {error}") from error
