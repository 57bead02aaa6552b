"""A network of the benchmark's own, in which addresses exist that the machine does not have.

An API server refuses loopback addresses as endpoints. Whoever needs thousands of others gets them
here, and no route of the machine changes: what is set up vanishes with the last process in it.
"""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path
from typing import Final

from testbed.binaries import Unavailable

BENCHMARKS: Final = IPv4Network("198.18.0.0/15")
"""Set aside for measurements (RFC 2544): no public server has an address of it."""
_COMMAND_SECONDS: Final = 10.0
_OURS: Final = Path("/proc/thread-self/ns/net")
_NEW_NETWORK: Final = 0x4000_0000  # CLONE_NEWNET of the kernel's sched.h
_libc: Final = ctypes.CDLL(None, use_errno=True)


@contextmanager
def own(network: IPv4Network = BENCHMARKS) -> Iterator[None]:
    """Have a loopback, and these addresses on it, and nothing else while the body runs.

    This holds for the calling thread, and for the processes and threads that it starts.

    Raises:
        Unavailable: this user may not, or iproute2 is missing.
    """
    ip = shutil.which("ip", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if ip is None:
        raise Unavailable("a network of its own needs iproute2")
    with _OURS.open() as outside:
        if _libc.unshare(_NEW_NETWORK):
            raise Unavailable(f"a network of its own needs root: {_reason()}")
        try:
            _run(ip, "link", "set", "lo", "up")
            _run(ip, "route", "add", "local", str(network), "dev", "lo")
            yield
        finally:
            if _libc.setns(outside.fileno(), _NEW_NETWORK):
                raise OSError(f"cannot return to the machine's network: {_reason()}")


def _reason() -> str:
    return os.strerror(ctypes.get_errno())


def _run(*command: str) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_COMMAND_SECONDS, check=False
    )
    if done.returncode:
        raise Unavailable(f"{' '.join(command)}: {done.stderr.strip()}")
