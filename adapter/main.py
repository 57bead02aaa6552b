"""Start of the adapter process."""

from collections.abc import Mapping, Sequence

from adapter.settings import AdapterSettings
from slicewatch.service import process


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the adapter until a signal ends it; return the exit status (2: user error)."""
    return process.run("adapter", AdapterSettings, _prepare, arguments, environment)


def _prepare(settings: AdapterSettings) -> process.Program:
    # Imported after the settings: a wrong flag is reported at once, and these take a second.
    from adapter.api.certificate import CertificateError
    from adapter.app import serve
    from adapter.sources.credentials import CredentialsError
    from adapter.sources.workloads.document import WorkloadsError
    from slicewatch.kube.configuration import ConfigurationError
    from slicewatch.service.documents import DocumentError

    user_errors = (
        ConfigurationError,
        CertificateError,
        CredentialsError,
        WorkloadsError,
        DocumentError,
        OSError,
    )
    return process.Program(lambda: serve(settings), user_errors=user_errors)
