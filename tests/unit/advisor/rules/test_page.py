"""The page about the command has every check as it is declared, and every option."""

from pathlib import Path

import typer

from advisor.rules.page import checks_table
from cli.commands import application

PAGE = (Path(__file__).parents[4] / "docs/reference/lint.md").read_text(encoding="utf-8")


def test_the_table_of_checks_is_that_of_the_declarations():
    assert PAGE.partition("\n## Checks\n\n")[2] == checks_table()


def test_every_option_is_named():
    command = typer.main.get_command(application).commands["lint"]
    options = [name for parameter in command.params for name in parameter.opts if name[:2] == "--"]
    assert len(options) >= 6
    assert [name for name in options if f"`{name}" not in PAGE] == []
