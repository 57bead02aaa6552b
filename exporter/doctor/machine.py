"""What the kernel shows of NVIDIA's driver: modules, PCI devices, device files, MIG instances."""

import ctypes
import os
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from exporter.doctor.facts import Machine, MigInstance, NoAnswer
from exporter.doctor.question import Question

NVIDIA: Final = "0x10de"
DISPLAY_CLASS: Final = "0x03"
# Opening a file initialises a GPU that nobody uses.
OPENING_SECONDS: Final = 2.0
_VERSION = re.compile(r"\s(\d+\.\d+(?:\.\d+)?)\s")
_MINOR = re.compile(r"Minor:\s*(\d+)")
_INSTANCE = re.compile(r"gpu(\d+)/mig/gi(\d+)/ci(\d+)/access")


def library() -> str:
    """Return the file of the NVML that this process gets; raise ``OSError`` if there is none."""
    name = "libnvidia-ml.so"
    ctypes.CDLL(f"{name}.1")
    mapped = (line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines())
    return next((parts[5] for parts in mapped if len(parts) > 5 and name in parts[5]), name)


def look(root: Path) -> Machine:
    """Return what there is below ``root``, where ``proc``, ``sys`` and ``dev`` lie."""
    driver = root / "proc/driver/nvidia"
    capabilities = driver / "capabilities"
    shown = [
        MigInstance(*map(int, found.groups()))
        for path in capabilities.glob("gpu*/mig/gi*/ci*/access")
        if (found := _INSTANCE.search(str(path)))
    ]
    version = _VERSION.search(_text(driver / "version"))
    return Machine(
        module=version[1] if version else "",
        pci_gpus=_pci_gpus(root / "sys/bus/pci/devices"),
        files=_faults(_device_files(driver, root / "dev")) if version else {},
        instances=frozenset(shown) if capabilities.is_dir() else None,
    )


def _pci_gpus(folder: Path) -> dict[str, str] | None:
    if not folder.is_dir():
        return None
    return {
        device.name: (device / "driver").resolve().name if (device / "driver").exists() else ""
        for device in sorted(folder.iterdir())
        if _text(device / "vendor").strip() == NVIDIA
        and _text(device / "class").startswith(DISPLAY_CLASS)
        # A virtual function is a part of a GPU that a vGPU has.
        and not (device / "physfn").exists()
    }


def _device_files(driver: Path, dev: Path) -> Iterator[Path]:
    yield dev / "nvidiactl"
    yield dev / "nvidia-uvm"
    for path in sorted(driver.glob("gpus/*/information")):
        if minor := _MINOR.search(_text(path)):
            yield dev / f"nvidia{minor[1]}"
    capabilities = driver / "capabilities"
    for path in [capabilities / "mig/monitor", *sorted(capabilities.glob("gpu*/mig/**/access"))]:
        if minor := _MINOR.search(_text(path)):
            yield dev / f"nvidia-caps/nvidia-cap{minor[1]}"


def _faults(files: Iterator[Path]) -> dict[str, str]:
    questions = {str(path): Question(partial(_fault, path)) for path in files}
    until = time.monotonic() + OPENING_SECONDS
    answers = {path: question.answer(until) for path, question in questions.items()}
    return {path: a.why if isinstance(a, NoAnswer) else a for path, a in answers.items()}


def _fault(path: Path) -> str:
    # A capability is granted by a right to read.
    flags = os.O_RDONLY if path.parent.name == "nvidia-caps" else os.O_RDWR
    try:
        os.close(os.open(path, flags | os.O_NONBLOCK))
    except OSError as error:
        return str(error.strerror)
    return ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
