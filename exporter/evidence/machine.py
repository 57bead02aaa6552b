"""Which life of the machine's kernel this is, and how old it is."""

import time
from pathlib import Path
from typing import Final

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def boot_id(path: Path = BOOT_ID) -> str:
    """Return what the kernel calls this boot; empty where it is not told."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def uptime_seconds() -> float:
    """Return how long ago that began, time in which the machine was suspended included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
