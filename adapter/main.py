"""Start of the adapter's process: settings, logs, and the errors that a person can mend."""

import sys
from collections.abc import Mapping, Sequence

from adapter.settings import AdapterSettings
from slicewatch.service import logs, settings


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the adapter until a signal ends it; return the exit status.

    Status 2 means that the settings cannot be used; what to change is on standard error.
    """
    try:
        chosen = settings.load(AdapterSettings, arguments, environment)
    except settings.SettingsError as error:
        return _refuse(error)
    logs.configure(chosen.log_level)
    # After the settings: a wrong flag is to be told at once, and the libraries take a second.
    from adapter.api.certificate import CertificateError
    from adapter.app import serve
    from slicewatch.kube.configuration import ConfigurationError
    from slicewatch.service import tasks

    mendable = (ConfigurationError, CertificateError, OSError)
    try:
        return tasks.run(lambda: serve(chosen), mendable=mendable)
    except mendable as error:
        return _refuse(error)


def _refuse(error: Exception) -> int:
    sys.stderr.write(f"slicewatch adapter: {error}\n")
    return 2
