"""A report of checks, as a table for people and as JSON."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, TextIO

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from advisor.rules.check import Need, Report, Severity, Unchecked

_COLOURS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow"}
_WIDTH_OF_FILES: Final = 120


def write_table(report: Report, stream: TextIO, *, verbose: bool = False) -> None:
    """Write a row per finding, what was not looked at, and a summary.

    Args:
        report: what was found.
        stream: a terminal, or a file, which gets no colours.
        verbose: name each check that could not be made, not only what they lack.
    """
    console = Console(file=stream, highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = _WIDTH_OF_FILES
    if report.findings:
        console.print(_table(report))
    for line in _unchecked(report.unchecked, verbose=verbose):
        console.print(Text(line, style="dim"))
    counts = Counter(finding.severity for finding in report.findings)
    console.print(", ".join(f"{severity}s: {counts[severity]}" for severity in Severity))


def _table(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in report.findings:
        head = Text(str(finding.severity), style=_COLOURS[finding.severity])
        body = Text.assemble(
            (f"{finding.place}\n", "bold"),
            f"{finding.what}\n",
            f"-> {finding.fix}  ",
            (f"[{finding.check}]\n", "dim"),
        )
        table.add_row(head, body)
    return table


def _unchecked(unchecked: Sequence[Unchecked], *, verbose: bool) -> list[str]:
    if verbose:
        return [
            f"{'checked partly' if each.partly else 'not checked'}: {each.check}, which needs "
            + ", ".join(each.lacks)
            for each in unchecked
        ]
    lines = []
    for need in Need:
        names = [each.check for each in unchecked if need in each.lacks]
        if names:
            lines.append(f"without {need}: {', '.join(names)} not, or not fully, checked")
    return lines


def write_json(report: Report, stream: TextIO) -> None:
    """Write ``{"findings": [...], "unchecked": [...]}``."""
    encoded = msgspec.json.encode({"findings": report.findings, "unchecked": report.unchecked})
    stream.write(msgspec.json.format(encoded).decode() + "\n")
