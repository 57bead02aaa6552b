"""What the test cluster needs from the machine, checked before anything is started."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from testbed import debian
from testbed.binaries import Unavailable
from testbed.cluster import cgroups, waiting

SEARCH_PATH: Final = debian.SEARCH_PATH
_CNI_FOLDERS: Final = (Path("/usr/lib/cni"), Path("/opt/cni/bin"), Path("/usr/libexec/cni"))
_PACKAGES: Final = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
}


def check() -> None:
    """Make sure that a cluster can start here, installing Debian packages where that is possible.

    Raises:
        Unavailable: with what is missing.
    """
    if sys.platform != "linux" or os.geteuid() != 0:
        raise Unavailable("the test cluster needs root on Linux: namespaces, mounts, iptables")
    if packages := missing_packages():
        debian.install(packages)
    if packages := missing_packages():
        raise Unavailable(f"the test cluster needs {', '.join(packages)}")
    _check_namespaces()


def check_unshared() -> None:
    """Make sure that no other kubelet runs here: the two would end one another's pods.

    To be called once the remains of an earlier cluster are cleaned up.
    """
    if strangers := cgroups.members():
        raise Unavailable(
            f"pods of another kubelet are running here, processes {sorted(strangers)}"
        )
    for entry in Path("/proc").glob("[0-9]*/comm"):
        if _text(entry).strip() == "kubelet":
            raise Unavailable(f"another kubelet is running here, process {entry.parent.name}")


def missing_packages() -> list[str]:
    """Return the Debian packages that are missing."""
    missing = {
        package
        for program, package in _PACKAGES.items()
        if shutil.which(program, path=SEARCH_PATH) is None
    }
    if cni_folder() is None:
        missing.add("containernetworking-plugins")
    return sorted(missing)


def cni_folder() -> Path | None:
    """Return where the CNI plugins are installed."""
    return next((folder for folder in _CNI_FOLDERS if (folder / "bridge").exists()), None)


def _check_namespaces() -> None:
    done = subprocess.run(
        ["unshare", "--net", "--mount", "--pid", "--fork", "true"],
        capture_output=True,
        text=True,
        timeout=waiting.COMMAND_SECONDS,
        check=False,
    )
    if done.returncode:
        raise Unavailable(f"namespaces cannot be created here: {done.stderr.strip()}")


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
