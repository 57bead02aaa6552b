"""A reading that drivers give in more than one way."""

from collections.abc import Callable
from typing import Generic, TypeVar

from pynvml import NVMLError

from exporter.nvml.protocol import Unsupported
from exporter.nvml.real.returns import outcome_of

R = TypeVar("R")


class Ways(Generic[R]):
    """Calls that tell the same, of which a driver knows one or the other.

    The one that the driver knew last is asked first. One thread at a time may use it.
    """

    def __init__(self, first: Callable[..., R], second: Callable[..., R]) -> None:
        self._ways = (first, second)

    def ask(self, *arguments: object) -> R:
        """Return what the driver tells in the way that it knows.

        Raises:
            NVMLError: it knows neither, or fails in the one that it knows.
        """
        first, second = self._ways
        try:
            return first(*arguments)
        except NVMLError as error:
            if not _is_unknown(error):
                raise
        try:
            found = second(*arguments)
        except NVMLError as error:
            if not _is_unknown(error):
                self._ways = (second, first)
            raise
        self._ways = (second, first)
        return found


def _is_unknown(error: NVMLError) -> bool:
    return isinstance(outcome_of(error.value), Unsupported)
