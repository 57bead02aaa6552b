"""``python -m cli.generate``: write the generated files, or check that they are up to date."""

import argparse
import difflib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from cli.generate import contract
from cli.generate.metrics_page import metrics_page
from cli.generate.settings_page import settings_page
from slicewatch.catalog import CATALOG

CHECKOUT: Final = Path(__file__).parents[2]
CONTRACT: Final = "tests/golden/catalog.json"


def generated() -> dict[str, str]:
    """Return every generated file: path below the checkout, and its text."""
    return {
        "docs/reference/metrics.md": metrics_page(),
        "docs/reference/settings.md": settings_page(),
        CONTRACT: contract.encode(contract.contract_of(CATALOG)),
    }


def main(arguments: Sequence[str]) -> int:
    """Write or check; return 1 where a file is out of date or a stable metric would break."""
    options = _parser().parse_args(arguments)
    files = generated()
    if options.check:
        return _check(options.root, files)
    if not options.allow_breaking and (broken := _broken(options.root, files)):
        print(*broken, sep="\n", file=sys.stderr)
        print("Stable metrics would break. Where that is meant: --allow-breaking", file=sys.stderr)
        return 1
    _write(options.root, files)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m cli.generate", description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="write the files")
    action.add_argument("--check", action="store_true", help="show what is out of date, exit 1")
    parser.add_argument(
        "--allow-breaking", action="store_true", help="let --write break stable metrics"
    )
    parser.add_argument("--root", type=Path, default=CHECKOUT, help="the checkout")
    return parser


def _check(root: Path, files: Mapping[str, str]) -> int:
    stale = {path: text for path, text in files.items() if _present(root / path) != text}
    for path, text in stale.items():
        before = _present(root / path).splitlines(keepends=True)
        lines = difflib.unified_diff(
            before, text.splitlines(keepends=True), f"{path} (present)", f"{path} (generated)"
        )
        print(*lines, sep="", end="")
    if stale:
        print(f"Out of date: {', '.join(stale)}. Run: make generate", file=sys.stderr)
    return 1 if stale else 0


def _broken(root: Path, files: Mapping[str, str]) -> list[str]:
    present = _present(root / CONTRACT)
    if not present:
        return []
    try:
        return contract.breaks(contract.decode(present), contract.decode(files[CONTRACT]))
    except contract.ContractError as error:
        return [str(error)]


def _write(root: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        if _present(root / path) != text:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
            print(f"wrote {path}")


def _present(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
