"""What all tests share."""

from collections.abc import Callable
from pathlib import Path

import pytest

Compare = Callable[[Path, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write golden files anew instead of comparing with them; read the diff before a commit",
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Compare:
    """Hold a text against its golden file."""
    update = request.config.getoption("--update-golden")

    def compare(path: Path, text: str) -> None:
        if update:
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare
