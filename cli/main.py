"""Entry point of ``slicewatch``.

The long-running processes are dispatched before typer is imported: they run on every node, and
a help screen is not worth their memory.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence

Run = Callable[[Sequence[str], Mapping[str, str]], int]


def main() -> None:
    """Run the subcommand that the command line names and exit with its status."""
    command, arguments = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("", [])
    if (process := _process(command)) is not None:
        sys.exit(process(arguments, os.environ))
    from cli.commands import application

    application()


def _process(command: str) -> Run | None:
    if command == "exporter":
        from exporter.main import run as run_exporter

        return run_exporter
    if command == "adapter":
        from adapter.main import run as run_adapter

        return run_adapter
    return None
