"""Files that take effect while the process runs: read again and again, applied when they differ.

What is compared is what the files say, not their times: mounted ConfigMaps and Secrets are
replaced by renaming a link to their folder, which no watch on a file notices and which may leave
times unchanged. A faulty file changes nothing.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from slicewatch.service import logs
from slicewatch.service.threads import Threads

EVERY_SECONDS = 5.0
# A pipe without a writer, or a server of files that is gone, never answers.
PATIENCE_SECONDS = 5.0

T = TypeVar("T")

log = logs.logger(__name__)


class Watched(Generic[T]):
    """One thing that is made of files.

    Args:
        what: names it in the log.
        load: reads the files, on a thread; what it returns is compared with ``==``. May raise
            ``OSError`` or ``ValueError`` with what is wrong and what to do.
        apply: makes it take effect, on the event loop. May raise the same, and then has to have
            changed nothing.
    """

    def __init__(self, what: str, load: Callable[[], T], apply: Callable[[T], None]) -> None:
        self.what = what
        self.fault = ""
        self._load = load
        self._apply = apply
        self._applied: T | None = None
        self._loading: asyncio.Future[T] | None = None

    def start(self) -> None:
        """Load and apply for the first time; whatever is wrong is raised."""
        loaded = self._load()
        self._apply(loaded)
        self._applied = loaded

    async def check(self) -> bool:
        """Load once more, and apply if it differs; tell whether it did. Faults are logged once."""
        try:
            loaded = await self._loaded()
            differs = loaded != self._applied
            if differs:
                self._apply(loaded)
        except (OSError, ValueError) as error:
            self._note(str(error))
            return False
        if differs:
            log.info("reloaded", what=self.what)
        elif self.fault:
            log.info("valid again", what=self.what)
        self._applied = loaded
        self.fault = ""
        return differs

    async def _loaded(self) -> T:
        """Load, with patience; one that hangs is waited for again by the next look.

        Raises:
            TimeoutError: an ``OSError``; it hangs.
        """
        if self._loading is None:
            threads = Threads()
            self._loading = threads.call(self._load)
            threads.close()
        done, _ = await asyncio.wait({self._loading}, timeout=PATIENCE_SECONDS)
        if not done:
            raise TimeoutError(f"the files could not be read within {PATIENCE_SECONDS:g} s")
        loading, self._loading = self._loading, None
        return loading.result()

    def _note(self, fault: str) -> None:
        if fault != self.fault:
            log.error("not reloaded, the last valid one stays", what=self.what, fault=fault)
        self.fault = fault


class Reload:
    """Keeps looking at some watched things.

    Args:
        watched: all of one process, started.
        report: told when all are valid (True), after each change and each recovery, and when one
            became faulty (False).
        at_once: setting it, as a signal may do, makes the next look happen now.
    """

    def __init__(
        self,
        *watched: Watched[Any],
        report: Callable[[bool], None],
        at_once: asyncio.Event | None = None,
        every_seconds: float = EVERY_SECONDS,
    ) -> None:
        self._watched = watched
        self._report = report
        self._at_once = at_once or asyncio.Event()
        self._every_seconds = every_seconds

    async def run(self) -> None:
        """Look until cancelled."""
        self._report(True)
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._at_once.wait(), self._every_seconds)
            asked = self._at_once.is_set()
            self._at_once.clear()
            await self._look(asked=asked)

    async def _look(self, *, asked: bool) -> None:
        was_valid = self._valid()
        changes = [await one.check() for one in self._watched]
        valid = self._valid()
        if valid and (any(changes) or not was_valid or asked):
            self._report(True)
        elif not valid:
            self._report(False)
        if asked and valid and not any(changes):
            log.info("nothing to reload: no file says anything else than before")

    def _valid(self) -> bool:
        return not any(one.fault for one in self._watched)
