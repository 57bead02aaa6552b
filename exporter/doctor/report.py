"""Findings as text for people and as JSON, and the exit status that they make."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from exporter.doctor.check import Finding, Verdict

_COLOURS: Final = {
    Verdict.OK: "\x1b[32m", Verdict.WARNING: "\x1b[33m", Verdict.FAILED: "\x1b[31m",
    Verdict.UNKNOWN: "\x1b[36m",
}  # fmt: skip
_PLAIN: Final = "\x1b[0m"


def table(findings: Sequence[Finding], *, coloured: bool) -> str:
    """Return a line per finding, with what to do below it, and a summary."""
    width = max((len(finding.check) for finding in findings), default=0)
    lines = []
    for finding in findings:
        verdict = f"{finding.verdict:<8}"
        if coloured:
            verdict = f"{_COLOURS[finding.verdict]}{verdict}{_PLAIN}"
        lines.append(f"{verdict} {finding.check:<{width}}  {finding.seen}")
        if finding.remedy:
            lines.append(f"{'':<{width + 9}}  -> {finding.remedy}")
    counts = Counter(finding.verdict for finding in findings)
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
    return "\n".join([*lines, "", summary, ""])


def document(findings: Sequence[Finding]) -> str:
    """Return the findings as one JSON object, ``{"findings": [...]}``."""
    return msgspec.json.format(msgspec.json.encode({"findings": findings})).decode() + "\n"


def status(findings: Sequence[Finding]) -> int:
    """Return 1 if anything failed, 0 if not."""
    return int(any(finding.verdict is Verdict.FAILED for finding in findings))
