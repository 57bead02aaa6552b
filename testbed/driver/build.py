"""Builds the driver's libraries with gcc, once per change of what they are made from.

The header comes from the nvidia-nvml-dev package, which is NVIDIA's own: nothing of the interface
is retyped here, so a wrong signature does not compile.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Final

from testbed.binaries import Unavailable

SOURCES: Final = Path(__file__).parent
SONAME: Final = "libnvidia-ml.so.1"
WRITER: Final = "libslicewatch-writer.so"
VARIABLE: Final = "SLICEWATCH_FAKE_NVML_STATE"
_DRIVER: Final = (
    "lifecycle.c", "devices.c", "mig.c", "events.c", "answers.c", "board.c", "clocks.c",
    "power.c", "utilization.c", "memory.c", "errors.c", "links.c", "fields.c", "processes.c",
    "vgpu.c", "gpm.c",
)  # fmt: skip
_FLAGS: Final = (
    "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-pthread",
)  # fmt: skip
_LINK: Final = (f"-Wl,-soname,{SONAME}", "-Wl,-z,defs", "-Wl,-Bsymbolic")
_TIMEOUT_SECONDS: Final = 120


def library(*, old_driver: bool = False) -> Path:
    """Return the path of libnvidia-ml.so.1, alone in its folder, built now if need be.

    Args:
        old_driver: without the entry points that drivers before R510 lack.

    Raises:
        Unavailable: no gcc, no header, or it does not compile; the message says which.
    """
    return _cached(SONAME, _DRIVER, (*_LINK, *(("-DOLD_DRIVER",) if old_driver else ())))


def writer() -> Path:
    """Return the path of the library that writes the state file.

    Raises:
        Unavailable: as for ``library``.
    """
    return _cached(WRITER, ("publish.c",), ())


def environment(state: Path, *, old_driver: bool = False) -> dict[str, str]:
    """Return the variables with which another process finds this driver and this state."""
    return {"LD_LIBRARY_PATH": str(library(old_driver=old_driver).parent), VARIABLE: str(state)}


def header() -> Path:
    """Return NVIDIA's nvml.h.

    Raises:
        Unavailable: the package that brings it is not installed.
    """
    try:
        files = metadata.distribution("nvidia-nvml-dev").files or []
    except metadata.PackageNotFoundError as error:
        raise Unavailable("nvidia-nvml-dev, which has nvml.h, is not installed") from error
    for file in files:
        if file.name == "nvml.h":
            return Path(str(file.locate()))
    raise Unavailable("the installed nvidia-nvml-dev has no nvml.h")


def _cached(name: str, sources: tuple[str, ...], flags: tuple[str, ...]) -> Path:
    compiler = shutil.which("gcc")
    if compiler is None:
        raise Unavailable("gcc, which builds the test driver, is not installed")
    command = [compiler, *_FLAGS, *flags, "-I", str(header().parent)]
    paths = [SOURCES / source for source in sources]
    target = _home() / _digest(command) / name
    if not target.exists():
        _build([*command, *map(str, paths)], target)
    return target


def _home() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "slicewatch" / "driver"


def _digest(command: list[str]) -> str:
    digest = hashlib.sha256("\0".join(command).encode())
    for path in (*sorted(SOURCES.glob("*.[ch]")), header()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _build(command: list[str], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent.parent) as scratch:
        output = Path(scratch) / target.name
        done = subprocess.run(
            [*command, "-o", str(output)],
            capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False,
        )  # fmt: skip
        if done.returncode:
            raise Unavailable(f"{target.name} does not build: {done.stderr[-2000:]}")
        # Two builders may race: each renames a whole file over the other's equal one.
        output.replace(target)
