"""The driver inside this process: loaded once, before the binding looks for it.

A loaded library is found by its SONAME, so the binding's own search ends at this one. It cannot be
unloaded: a test that needs another one, or none, runs in a process of its own with the variables
of ``build.environment``.
"""

import ctypes
import os
from pathlib import Path

from testbed.driver import build
from testbed.driver.state import CALLS


class LoadedDriver:
    """The driver that this process calls.

    Raises:
        Unavailable: it cannot be built here.
    """

    def __init__(self) -> None:
        self._library = ctypes.CDLL(str(build.library()), mode=ctypes.RTLD_GLOBAL)
        self._library.slicewatchCallCount.restype = ctypes.c_uint64

    def attach(self, state: Path) -> None:
        """Let the next initialisation read this state."""
        os.environ[build.VARIABLE] = str(state)

    @property
    def references(self) -> int:
        """How often it was initialised more than shut down."""
        return int(self._library.slicewatchReferences())

    def calls(self) -> dict[str, int]:
        """Return how often each entry point was called since ``forget_calls``, without zeros."""
        counted = {name: self._library.slicewatchCallCount(name.encode()) for name in CALLS}
        return {name: count for name, count in counted.items() if count}

    def forget_calls(self) -> None:
        """Begin to count anew."""
        self._library.slicewatchForgetCalls()
