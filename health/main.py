"""Start of the health monitor."""

from collections.abc import Mapping, Sequence

from health.settings import HealthSettings
from slicewatch.service import process


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the monitor until a signal ends it; return the exit status (2: user error)."""
    return process.run("health", HealthSettings, _prepare, arguments, environment)


def _prepare(settings: HealthSettings) -> process.Program:
    # Imported after the settings: a wrong flag is reported at once.
    from health.app import serve
    from slicewatch.kube.configuration import ConfigurationError

    return process.Program(lambda: serve(settings), user_errors=(ConfigurationError, OSError))
