"""``python -m cli.generate``: write the generated files, or check that they are up to date."""

import argparse
import difflib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from alerts.files import prometheus_rule, rule_file
from alerts.index import GROUPS
from cli.generate.alerts_page import alerts_page
from cli.generate.contract import contract_of
from cli.generate.dashboards_page import dashboards_page
from cli.generate.health_page import health_page
from cli.generate.metrics_page import metrics_page
from cli.generate.settings_page import settings_page
from dashboards.drawing import text_of
from dashboards.index import DASHBOARDS
from slicewatch.catalog import CATALOG

CHECKOUT: Final = Path(__file__).parents[2]
CONTRACT: Final = "tests/golden/catalog.json"


def generated() -> dict[str, str]:
    """Return every generated file: path below the checkout, and its text."""
    return {
        **{f"alerts/rules/{group.name}.yaml": rule_file(group) for group in GROUPS},
        "alerts/prometheusrule.yaml": prometheus_rule(GROUPS),
        **{f"dashboards/json/{board.name}.json": text_of(board) for board in DASHBOARDS},
        "docs/reference/alerts.md": alerts_page(),
        "docs/reference/dashboards.md": dashboards_page(),
        "docs/reference/health-checks.md": health_page(),
        "docs/reference/metrics.md": metrics_page(),
        "docs/reference/settings.md": settings_page(),
        CONTRACT: contract_of(CATALOG),
    }


def main(arguments: Sequence[str]) -> int:
    """Write or check; return 1 where a file is out of date."""
    options = _parser().parse_args(arguments)
    files = generated()
    if options.check:
        return _check(options.root, files)
    _write(options.root, files)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m cli.generate", description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="write the files")
    action.add_argument(
        "--check", action="store_true", help="show what is out of date, and exit with 1"
    )
    parser.add_argument("--root", type=Path, default=CHECKOUT, help="the checkout")
    return parser


def _check(root: Path, files: Mapping[str, str]) -> int:
    stale = {path: text for path, text in files.items() if _current(root / path) != text}
    for path, text in stale.items():
        before = _current(root / path).splitlines(keepends=True)
        lines = difflib.unified_diff(
            before, text.splitlines(keepends=True), f"{path} (current)", f"{path} (generated)"
        )
        print(*lines, sep="", end="")
    if stale:
        print(f"Out of date: {', '.join(stale)}. Run: make generate", file=sys.stderr)
    return 1 if stale else 0


def _write(root: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        if _current(root / path) != text:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
            print(f"wrote {path}")


def _current(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
