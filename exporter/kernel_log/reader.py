"""Follows the kernel's log and picks out the Xids.

Each read of ``/dev/kmsg`` returns one record, the oldest that the kernel still has first: so what
happened before this process is read too, as far as it is of this boot. The file never blocks, so
it is read on the event loop, a bounded number of records at a time.
"""

import asyncio
import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from exporter.kernel_log.record import KERNEL, records
from exporter.kernel_log.xid import LoggedXid, xid_in
from slicewatch.service import logs
from slicewatch.service.backoff import Backoff

READS_AT_ONCE: Final = 256
# The longest record of the kernel, CONSOLE_EXT_LOG_MAX; a shorter buffer would be refused.
LONGEST_RECORD_BYTES: Final = 8192
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0

OFF: Final = "off"
STARTING: Final = "starting"
READS: Final = ""
ENDED: Final = "ended"

_WORDS: Final = {
    errno.ENOENT: "no_file", errno.EPERM: "permission", errno.EACCES: "permission",
}  # fmt: skip

log = logs.logger(__name__)


class KernelLog:
    """The log of this node's kernel. For one event loop.

    Args:
        path: ``/dev/kmsg``, or a pipe that records of its form are written to.
        take: called with the Xids of each read that has any.
        pause: between attempts to open the file.

    Attributes:
        reason: why it is not read, in one word; empty while it is.
        lost: how many records were overwritten before they were read.
    """

    def __init__(
        self,
        path: Path,
        take: Callable[[Sequence[LoggedXid]], None],
        *,
        pause: Backoff | None = None,
    ) -> None:
        self._path = path
        self._take = take
        self._pause = pause or Backoff(
            first_seconds=FIRST_PAUSE_SECONDS, most_seconds=LONGEST_PAUSE_SECONDS
        )
        self._newest: int | None = None
        self.reason = STARTING
        self.lost = 0

    async def run(self) -> None:
        """Follow the log until cancelled; begin anew where it fails."""
        while True:
            try:
                await self._follow()
                self._say(ENDED)
            except OSError as error:
                self._say(_WORDS.get(error.errno or 0, "failed"), str(error))
            await asyncio.sleep(self._pause.next_seconds())

    async def _follow(self) -> None:
        """Read until the file ends, which that of the kernel never does."""
        descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "a plain file cannot be followed; name /dev/kmsg")
            loop.add_reader(descriptor, self._read, descriptor, over)
            self._say(READS)
            await over
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)

    def _read(self, descriptor: int, over: "asyncio.Future[None]") -> None:
        """Take what is there, in part if it is much: the loop calls again."""
        if over.done():
            return
        found: list[LoggedXid] = []
        try:
            for chunk in _chunks(descriptor):
                if not chunk:
                    over.set_result(None)
                    break
                found += self._xids(chunk)
        except OSError as error:
            over.set_exception(error)
        if found:
            self._take(found)

    def _xids(self, chunk: bytes) -> Iterator[LoggedXid]:
        self._pause.reset()
        for record in records(chunk):
            if self._is_new(record.sequence) and record.facility == KERNEL:
                xid = xid_in(record.text, record.at_seconds)
                if xid is not None:
                    yield xid

    def _is_new(self, sequence: int) -> bool:
        """Tell whether a record was not read before, and count those that went before it."""
        newest = self._newest
        if newest is not None and sequence <= newest:
            # The file was opened anew, and begins with what is oldest.
            return False
        if newest is not None and sequence > newest + 1:
            self.lost += sequence - newest - 1
            log.warning("records of the kernel's log lost", count=sequence - newest - 1)
        self._newest = sequence
        return True

    def _say(self, reason: str, why: str = "") -> None:
        if reason == self.reason:
            return
        self.reason = reason
        if reason == READS:
            log.info("the kernel's log is read", path=str(self._path))
        else:
            log.warning("the kernel's log is not read", reason=reason, error=why)


def _chunks(descriptor: int) -> Iterator[bytes]:
    """Yield what the next reads return; an empty one is the end of the file."""
    for _ in range(READS_AT_ONCE):
        try:
            yield os.read(descriptor, LONGEST_RECORD_BYTES)
        except BlockingIOError:
            return
        except BrokenPipeError:
            # Records were overwritten; the next read returns the oldest that is left, whose
            # number tells how many.
            continue
