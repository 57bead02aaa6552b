"""What the kernel says: about this machine, and about what a process takes of it."""

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

KIBIBYTE: Final = 1024
_MEGABYTE: Final = 1e6


def description() -> str:
    """Return one line about the machine, and how busy it is already."""
    cores = len(os.sched_getaffinity(0))
    model = _field(Path("/proc/cpuinfo"), r"model name\s*:\s*(.+)") or platform.machine()
    total = _field(Path("/proc/meminfo"), r"MemTotal:\s*(\d+) kB") or "0"
    load = os.getloadavg()[0]
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return (
        f"{cores} cores ({model}), {int(total) * KIBIBYTE / 1e9:.0f} GB, "
        f"{platform.system()} {platform.release()}, {python}, load average {load:.1f} at the start"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory of a process, in megabytes (10⁶ bytes).

    Attributes:
        resident: pages that are in memory, shared ones in full (VmRSS).
        proportional: the same with each shared page divided by those who share it (PSS).
    """

    resident: float
    proportional: float


def memory(pid: int) -> Memory:
    """Return what a process has in memory now.

    Raises:
        OSError: there is no such process, or it is not ours to look at.
    """
    status = _field(Path(f"/proc/{pid}/status"), r"VmRSS:\s*(\d+) kB")
    rollup = _field(Path(f"/proc/{pid}/smaps_rollup"), r"Pss:\s*(\d+) kB")
    return Memory(resident=_megabytes(status), proportional=_megabytes(rollup))


def cpu_seconds(pid: int) -> float:
    """Return the user and system time that all threads of a process have used so far.

    Raises:
        OSError: there is no such process.
    """
    # The name, in brackets, may have blanks.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _megabytes(kibibytes: str | None) -> float:
    return int(kibibytes or 0) * KIBIBYTE / _MEGABYTE


def _field(file: Path, pattern: str) -> str | None:
    found = re.search(pattern, file.read_text())
    return found[1].strip() if found else None
