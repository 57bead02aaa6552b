"""Programs out of Debian's packages: found, or installed as root where apt is there.

The one place that installs anything on the machine. What is installed starts no service: the tests
start what they need, on loopback, and end it.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from typing import Final

from testbed.binaries import Unavailable

SEARCH_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_INSTALL_TIMEOUT_SECONDS: Final = 600
# RUNLEVEL=1: the packages' own services must not start next to ours.
_ENVIRONMENT: Final = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}


def program(name: str, *, package: str) -> str:
    """Return the path of a program, installing its package if need be.

    Raises:
        Unavailable: it is not there and cannot be installed.
    """
    found = shutil.which(name, path=SEARCH_PATH)
    if found is None:
        install([package])
        found = shutil.which(name, path=SEARCH_PATH)
    if found is None:
        raise Unavailable(f"Debian's package {package} is not installed")
    return found


def install(packages: Iterable[str]) -> None:
    """Install packages where that is possible; whether it was, the caller looks for himself."""
    apt = shutil.which("apt-get", path=SEARCH_PATH)
    if apt is None or sys.platform != "linux" or os.geteuid() != 0:
        return
    command = [apt, "-o", "DPkg::Lock::Timeout=120", "install", "-y", "--no-install-recommends"]
    command += packages
    for attempt in (command, [apt, "update"], command):
        done = subprocess.run(
            attempt,
            env=os.environ | _ENVIRONMENT,
            capture_output=True,
            timeout=_INSTALL_TIMEOUT_SECONDS,
            check=False,
        )
        if done.returncode == 0 and attempt is command:
            return
