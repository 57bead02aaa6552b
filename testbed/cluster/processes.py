"""Processes of the harness: distinguished from others that reuse a PID, and ended by PID.

Nothing here looks up a process by name; what is not proven to be ours is left alone.
"""

import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from testbed.cluster import waiting

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
# Fields of /proc/PID/stat, counted after the command's closing bracket.
_STATE_FIELD: Final = 0
_PARENT_FIELD: Final = 1
_START_FIELD: Final = 19
_END_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A process, not a PID: PIDs are reused, but not together with the start time."""

    pid: int
    started_ticks: int
    boot_id: str

    @classmethod
    def of(cls, pid: int) -> Self:
        """Return the process that has this PID now.

        Raises:
            ProcessLookupError: there is none.
        """
        return cls(pid=pid, started_ticks=int(_stat(pid)[_START_FIELD]), boot_id=_boot_id())

    def alive(self) -> bool:
        """Whether exactly this process still runs; a zombie does not."""
        try:
            return Identity.of(self.pid) == self and _stat(self.pid)[_STATE_FIELD] != "Z"
        except ProcessLookupError:
            return False

    def kill(self) -> None:
        """Kill this process, unless its PID belongs to another one by now."""
        if self.alive():
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                return
            waiting.until(
                lambda: not self.alive(), what=f"process {self.pid} to end", seconds=_END_SECONDS
            )


def child_of(pid: int) -> int | None:
    """Return the first child of a process, or None; PIDs are those of its own namespace."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            if int(_stat(int(entry.name))[_PARENT_FIELD]) == pid:
                return int(entry.name)
        except ProcessLookupError:
            continue
    return None


class NodeProcess(subprocess.Popen[bytes]):
    """A process on the node. Signals go to it, not to the nsenter that waits for it outside."""

    log: Path

    def send_signal(self, sig: int) -> None:
        """Signal the process on the node; does nothing once it has ended."""
        if self.poll() is not None:
            return
        inner = child_of(self.pid)
        if inner is None or sig == signal.SIGCONT:
            # Not forked yet; and nsenter stops along with its child, so it must go on too.
            super().send_signal(sig)
        if inner is not None:
            os.kill(inner, sig)

    def end(self, *, seconds: float = _END_SECONDS) -> int:
        """Terminate the process, kill it after the deadline, and return its exit status."""
        self.terminate()
        try:
            return self.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.wait(timeout=seconds)

    def require_alive(self) -> None:
        """Raise, with the end of its log, if the process has ended."""
        if (status := self.poll()) is not None:
            raise waiting.ClusterError(
                f"{self.log.stem} ended with status {status}:\n{waiting.tail(self.log)}"
            )


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ProcessLookupError(f"no process {pid}") from error
    return text.rpartition(")")[2].split()


def _boot_id() -> str:
    return _BOOT_ID.read_text().strip()
