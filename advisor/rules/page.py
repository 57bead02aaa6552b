"""The checks as a table of Markdown: what the page about them is held against."""

from collections.abc import Iterable
from typing import Final

from advisor.rules.check import Check, Need
from advisor.rules.checks import CHECKS

HEAD: Final = ("| Check | Severity | What is wrong | Needs |", "| --- | --- | --- | --- |")


def checks_table() -> str:
    """Return a row per check, in the order of their declaration."""
    return "\n".join((*HEAD, *(_row(check) for check in CHECKS), ""))


def _row(check: Check) -> str:
    needs = _named(check.needs)
    if check.sharper_with:
        needs = "; ".join(
            part for part in (needs, f"better with {_named(check.sharper_with)}") if part
        )
    return f"| `{check.id}` | {check.severity} | {check.title} | {needs} |"


def _named(needs: Iterable[Need]) -> str:
    return ", ".join(need for need in Need if need in set(needs))
