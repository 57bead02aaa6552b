"""When processes end: what makes it safe to remember anything by PID.

The kernel gives the PID of a process that has ended to another. A pidfd refers to one process for
ever and becomes readable when that ends, so that hundreds of them are watched by one system call.
Where there are none, a process is recognised by the time of its start. Needs Linux.
"""

import errno
import os
import resource
import select
from pathlib import Path
from typing import Final

from slicewatch.service import logs

log = logs.logger(__name__)

# The kernel's PID_MAX_LIMIT on 64 bits. Drivers have reported PIDs beyond it.
LARGEST_PID: Final = 2**22

# Processes beyond that are still told apart, at the cost of one read each and tick.
MOST_PIDFDS = 512

# Sockets and files of this process come first.
SHARE_OF_FILE_LIMIT = 4


class Lifetimes:
    """Processes that are watched until they end. Zombies have ended.

    Args:
        proc: where the processes are listed.
        most_pidfds: how many pidfds may be open at a time.
    """

    def __init__(self, proc: Path, most_pidfds: int = MOST_PIDFDS) -> None:
        self._proc = proc
        soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        unlimited = soft_limit == resource.RLIM_INFINITY
        affordable = most_pidfds if unlimited else soft_limit // SHARE_OF_FILE_LIMIT
        self._most_pidfds = min(most_pidfds, affordable)
        self._epoll = select.epoll()
        self._pidfds: dict[int, int] = {}
        self._pids: dict[int, int] = {}
        self._starts: dict[int, int] = {}

    def begin(self, pid: int) -> bool:
        """Watch the process that has this PID now; return whether there is one that runs."""
        if not 0 < pid <= LARGEST_PID:
            return False
        try:
            pidfd = self._open(pid)
        except ProcessLookupError:
            return False
        start = self._start_ticks(pid)
        if pidfd is not None:
            self._pidfds[pid] = pidfd
            self._pids[pidfd] = pid
            self._epoll.register(pidfd, select.EPOLLIN)
        elif start is not None:
            self._starts[pid] = start
        if start is None:
            self.forget(pid)
        return start is not None

    def has_ended(self, pid: int) -> bool:
        """Tell whether a watched process has ended, at this moment."""
        pidfd = self._pidfds.get(pid)
        if pidfd is None:
            return self._start_ticks(pid) != self._starts[pid]
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        return bool(poll.poll(0))

    def ended(self) -> list[int]:
        """Return which of the watched processes have ended, and watch them no longer."""
        gone = [self._pids[pidfd] for pidfd, _ in self._epoll.poll(0)]
        gone += [pid for pid, start in self._starts.items() if self._start_ticks(pid) != start]
        for pid in gone:
            self.forget(pid)
        return gone

    def forget(self, pid: int) -> None:
        """Watch a process no longer."""
        self._starts.pop(pid, None)
        pidfd = self._pidfds.pop(pid, None)
        if pidfd is not None:
            del self._pids[pidfd]
            self._epoll.unregister(pidfd)
            os.close(pidfd)

    def close(self) -> None:
        """Close every pidfd; nothing can be watched after that."""
        for pid in list(self._pidfds):
            self.forget(pid)
        self._epoll.close()

    def _open(self, pid: int) -> int | None:
        """Return a pidfd, or None where there can be none.

        Raises:
            ProcessLookupError: no such process.
        """
        if len(self._pidfds) >= self._most_pidfds:
            return None
        try:
            return os.pidfd_open(pid)
        except ProcessLookupError:
            raise
        except OSError as error:
            # A kernel before 5.3, or a seccomp profile: it will not change.
            if error.errno in (errno.ENOSYS, errno.EPERM):
                log.info("no pidfds here; processes are checked one by one", error=str(error))
                self._most_pidfds = 0
            return None

    def _start_ticks(self, pid: int) -> int | None:
        """Return when a process started, in clock ticks since boot; None unless it runs.

        The name of the program, in parentheses, may contain anything, parentheses included.
        """
        try:
            stat = (self._proc / str(pid) / "stat").read_bytes()
            fields = stat[stat.rindex(b")") + 1 :].split()
            state, start = fields[0], int(fields[19])
        except (OSError, ValueError, IndexError):
            return None
        return None if state in (b"Z", b"X", b"x") else start
