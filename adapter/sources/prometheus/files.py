"""The files of rules, read again while the process runs."""

from collections.abc import Sequence
from pathlib import Path

from adapter.sources.prometheus.backend import BackendConfig
from adapter.sources.prometheus.configuration import Configuration, configuration
from adapter.sources.prometheus.rules import Rules
from slicewatch.service.reload import Watched

WHAT = "rules"


class RuleFiles:
    """Reads the files that make a configuration.

    Args:
        paths: in the order in which they count; as named by the user, and so in messages.
        settings_backend: the backend that the settings describe, if they do.
    """

    def __init__(
        self, paths: Sequence[str], settings_backend: BackendConfig | None = None
    ) -> None:
        self._paths = tuple(paths)
        self._backend = settings_backend
        self._last: Configuration | None = None

    def read(self) -> Configuration:
        """Return what the files say now. Blocks on the file system.

        Raises:
            OSError, ValueError: a file cannot be read, or is no YAML.
        """
        texts = [(path, _text(path)) for path in self._paths]
        # Compiling the same texts every few seconds would cost more than all answers.
        if self._last is None or self._last.texts != tuple(texts):
            self._last = configuration(texts, self._backend)
        return self._last


def watched(files: RuleFiles, rules: Rules) -> Watched[Configuration]:
    """Return what keeps rules in step with their files; to be started before they are offered."""
    return Watched(WHAT, files.read, rules.apply)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not text in UTF-8: {error}") from error
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
