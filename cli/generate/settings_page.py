"""``docs/reference/settings.md``: every setting of every process, with all its names."""

from typing import Any, Final

from adapter.settings import AdapterSettings
from cli.generate.tables import HEADER, code, table
from exporter.settings import ExporterSettings
from health.settings import HealthSettings
from slicewatch.service.settings import Field, fields

PROCESSES: Final[tuple[tuple[str, type[Any]], ...]] = (
    ("exporter", ExporterSettings),
    ("adapter", AdapterSettings),
    ("health", HealthSettings),
)

COLUMNS: Final = ("File key", "Flag", "Environment", "Default", "Meaning")

INTRODUCTION: Final = """\
# Settings

A process takes its settings from flags, environment variables and one file. Flags beat the
environment, the environment beats the file, the file beats the default. The file is YAML, or JSON
if its name ends in `.json`; `--config FILE` or `SLICEWATCH_CONFIG` names it.

Durations are written like `15s`, `250ms` or `1m30s`; a plain number is seconds. In flags and
variables a list is written `a,b` and a map `name=value,name=value`. An unknown flag or file key
aborts the start and names the closest match, and so does a variable that is nearly one of these;
all errors are reported at once. `slicewatch <process> --help` prints the same.
"""


def settings_page() -> str:
    """Return the page."""
    sections = (_section(name, cls) for name, cls in PROCESSES)
    source = "the settings classes of the processes"
    return HEADER.format(source=source) + "\n" + INTRODUCTION + "".join(sections)


def _section(name: str, cls: type[Any]) -> str:
    summary = (cls.__doc__ or "").partition("\n")[0]
    rows = [_row(field) for field in fields(cls)]
    return f"\n## `slicewatch {name}`\n\n{summary}\n\n{table(COLUMNS, rows)}"


def _row(field: Field) -> tuple[str, ...]:
    return (
        code(field.name),
        code(field.flag),
        code(field.variable),
        code(field.default_text),
        field.declaration.help,
    )
