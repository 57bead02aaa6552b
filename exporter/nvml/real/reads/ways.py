"""A reading that drivers give in more than one way."""

from collections.abc import Callable
from typing import Generic, TypeVar

from pynvml import NVMLError

from exporter.nvml.real.returns import UNSUPPORTED

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
            if error.value not in UNSUPPORTED:
                raise
        try:
            found = second(*arguments)
        except NVMLError as error:
            if error.value not in UNSUPPORTED:
                self._ways = (second, first)
            raise
        self._ways = (second, first)
        return found
