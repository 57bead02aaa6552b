"""How a process of ours starts: settings, then logs, then the root of all its tasks.

Whatever the user can fix is reported in one line each on standard error; the exit status is 2.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from slicewatch.service import logs, tasks
from slicewatch.service.settings import SettingsError, load


class Program(NamedTuple):
    """What is left to run once the settings are known.

    Attributes:
        main: the root of all tasks.
        user_errors: errors that whoever started the process can fix, such as a taken port.
    """

    main: tasks.Main
    user_errors: tuple[type[Exception], ...] = ()


class HasLogLevel(Protocol):
    """Settings of a process."""

    @property
    def log_level(self) -> str:
        """Least severe level to log."""
        ...


S = TypeVar("S", bound=HasLogLevel)


def run(
    name: str,
    settings_class: type[S],
    prepare: Callable[[S], Program],
    arguments: Sequence[str],
    environment: Mapping[str, str],
) -> int:
    """Run a process until a signal ends it; return the exit status.

    Args:
        name: the subcommand, for error messages.
        settings_class: the dataclass that flags, environment and file fill.
        prepare: turns settings into a program; imports the heavy libraries here, so that a wrong
            flag is reported at once. May raise ``SettingsError``.
        arguments: the command line, without the subcommand.
        environment: the environment variables.
    """
    title = f"slicewatch {name}"
    try:
        settings = load(settings_class, arguments, environment)
        logs.configure(settings.log_level)
        program = prepare(settings)
    except SettingsError as error:
        return tasks.refuse(title, error.faults)
    return tasks.run(program.main, name=title, user_errors=program.user_errors)
