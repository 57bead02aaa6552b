"""Entry point of ``slicewatch``.

The long-running processes are dispatched before typer is imported: they run on every node, and
a help screen is not worth their memory.
"""

import os
import sys

# What people ask of monitors; all else, nothing included, is for the monitor itself.
QUESTIONS_ABOUT_HEALTH = (["status"], ["simulate"], ["evidence"])


def main() -> None:
    """Run the subcommand that the command line names and exit with its status."""
    command, *arguments = sys.argv[1:] or [""]
    if command == "exporter":
        from exporter.main import run as run_exporter

        sys.exit(run_exporter(arguments, os.environ))
    if command == "adapter":
        from adapter.main import run as run_adapter

        sys.exit(run_adapter(arguments, os.environ))
    if command == "health" and arguments[:1] not in QUESTIONS_ABOUT_HEALTH:
        from health.main import run as run_health

        sys.exit(run_health(arguments[arguments[:1] == ["run"] :], os.environ))
    if command == "doctor":
        from cli.doctor import run as run_doctor

        sys.exit(run_doctor(arguments, os.environ))
    from cli.commands import application

    application()
