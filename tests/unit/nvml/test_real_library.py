"""The life of NVML in a process: start, stop, and the ways in which it does not start."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pynvml
import pytest

from exporter.nvml.enumeration import Enumeration
from exporter.nvml.protocol import Driver, DriverUnavailableError, Value
from exporter.nvml.real.returns import Return
from testbed.driver import build
from testbed.driver.state import SystemState

SCENARIO = """
nodes:
  - name: n
    gpus:
      - {model: A100-80GB}
      - {model: A100-80GB, mig: [1g.10gb+me, 1g.10gb]}
"""
REPOSITORY = Path(__file__).parents[3]
TIMEOUT_SECONDS = 50

READ_EVERYTHING = """
import json
from exporter.nvml.real import RealNvml
from slicewatch.catalog import CATALOG
nvml = RealNvml(lambda: 0)
nvml.start()
said = {}
for index in range(nvml.count()):
    session = nvml.open(nvml.identify(index).value)
    for device in session.devices().value:
        key = device.profile or f"gpu{device.gpu}"
        said[key] = {p.name: str(session.read(p, device)) for p in CATALOG.probes()}
nvml.stop()
print(json.dumps(said))
"""

APPEARS_LATER = """
import json, shutil, sys
from exporter.nvml.protocol import DriverUnavailableError
from exporter.nvml.real import RealNvml
nvml = RealNvml()
try:
    nvml.start()
    first = "started"
except DriverUnavailableError as error:
    first = error.reason
shutil.copy(sys.argv[1], sys.argv[2])
nvml.start()
print(json.dumps([first, nvml.count()]))
nvml.stop()
"""


IS_REPLACED = """
import json, os, sys
from exporter.nvml.protocol import DriverUnavailableError
from exporter.nvml.real import RealNvml
import pynvml
link, fitting, state, good = sys.argv[1:]
nvml = RealNvml()
try:
    nvml.start()
    first = "started"
except DriverUnavailableError as error:
    first = error.reason
os.replace(good, state)
os.remove(link)
os.symlink(fitting, link)
nvml.start()
print(json.dumps([first, hasattr(pynvml.nvmlLib, "nvmlDeviceGetTemperatureV")]))
nvml.stop()
"""


@pytest.fixture
def world(driver):
    """Not started: these tests are about the start."""
    return driver


def python(code, *arguments, **variables):
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, **variables},
        cwd=REPOSITORY, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refuse(world, **errors):
    world.feed.file.put_system(SystemState(gpu_count=2, cuda=13000, **errors))


def holds(path: Path) -> tuple[int, int]:
    """Count the mappings and descriptors of the file in this process; the feed has one of each."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").count(str(path))
    links = []
    for descriptor in Path("/proc/self/fd").iterdir():
        # The one that lists the folder is closed by now.
        with contextlib.suppress(OSError):
            links.append(descriptor.readlink())
    return maps, links.count(path)


def test_a_stop_releases_everything_that_the_start_took(world, tmp_path):
    before = holds(tmp_path / "driver.state")
    world.nvml.start()
    gpus = tuple(slot.gpu.value for slot in Enumeration(world.nvml).slots())
    sessions = [world.nvml.open(gpu) for gpu in gpus]
    assert all(isinstance(session.devices(), Value) for session in sessions)
    events = world.nvml.events(gpus).value
    assert (world.driver.references, world.feed.file.clients) == (1, 1)
    assert holds(tmp_path / "driver.state") != before
    events.close()
    world.nvml.stop()
    assert (world.driver.references, world.feed.file.clients) == (0, 0)
    assert holds(tmp_path / "driver.state") == before


def test_many_lives_leave_no_reference_behind(world):
    for _ in range(3):
        world.nvml.start()
        world.nvml.stop()
    assert world.driver.references == 0


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (Return.DRIVER_NOT_LOADED, "no_driver"),
        (Return.LIB_RM_VERSION_MISMATCH, "version_mismatch"),
        (Return.NO_PERMISSION, "permission"),
        (Return.UNKNOWN, "unknown"),
    ],
)
def test_a_start_that_the_driver_refuses_says_why_and_works_later(world, code, reason):
    refuse(world, init_error=code)
    with pytest.raises(DriverUnavailableError) as error:
        world.nvml.start()
    assert error.value.reason == reason
    assert world.driver.references == 0
    world.show()
    assert world.nvml.start().driver == "580.95.05"
    world.nvml.stop()


def test_a_driver_that_fails_right_after_the_start_is_not_held(world):
    refuse(world, error=Return.UNKNOWN)
    with pytest.raises(DriverUnavailableError) as error:
        world.nvml.start()
    assert error.value.reason == "unknown"
    assert (world.driver.references, world.feed.file.clients) == (0, 0)


def test_a_driver_that_is_gone_can_be_stopped(world):
    world.nvml.start()
    refuse(world, error=Return.DRIVER_NOT_LOADED)
    world.nvml.stop()
    assert world.driver.references == 0


def test_the_listing_of_mps_partitions_is_turned_off(world, monkeypatch):
    monkeypatch.setenv("NVML_MPS_DEVICE_ENUMERATION", "1")
    world.nvml.start()
    world.nvml.stop()
    assert "NVML_MPS_DEVICE_ENUMERATION" not in os.environ


def test_a_stop_waits_for_a_call_that_hangs(world):
    world.nvml.start()
    session = world.session(0)
    world.feed.file.hang(0, hanging=True)
    reader = threading.Thread(target=session.devices, daemon=True)
    reader.start()
    stopper = threading.Thread(target=world.nvml.stop, daemon=True)
    stopper.start()
    stopper.join(0.05)
    assert stopper.is_alive()
    world.feed.file.hang(0, hanging=False)
    for thread in (reader, stopper):
        thread.join(10)
        assert not thread.is_alive()
    assert world.driver.references == 0


def test_a_library_that_appears_later_is_found(world, tmp_path):
    # The loader remembers folders that were not there, not files: so it is with real mounts.
    folder = tmp_path / "lib"
    folder.mkdir()
    variables = {build.VARIABLE: str(tmp_path / "driver.state"), "LD_LIBRARY_PATH": str(folder)}
    target = folder / build.SONAME
    first, gpus = python(APPEARS_LATER, build.library(), target, **variables)
    if first == "started":
        pytest.skip("this machine has NVIDIA's library")
    assert (first, gpus) == ("no_library", 2)


def test_a_library_that_is_replaced_after_a_mismatch_is_loaded_anew(world, tmp_path):
    state, good = tmp_path / "driver.state", tmp_path / "good.state"
    shutil.copy(state, good)
    refuse(world, init_error=Return.LIB_RM_VERSION_MISMATCH)
    folder = tmp_path / "lib"
    folder.mkdir()
    link = folder / build.SONAME
    link.symlink_to(build.library(old_driver=True))
    variables = {build.VARIABLE: str(state), "LD_LIBRARY_PATH": str(folder)}
    # The old one lacks this call: only a library that was really closed can be replaced.
    found = python(IS_REPLACED, link, build.library(), state, good, **variables)
    assert found == ["version_mismatch", True]


def test_an_old_driver_reports_what_it_can(world, tmp_path):
    """nvitop #89, #94: the lists of processes come and go from one driver to the next."""
    state = tmp_path / "driver.state"
    new = python(READ_EVERYTHING, **build.environment(state))
    old = python(READ_EVERYTHING, **build.environment(state, old_driver=True))
    # Profiles are told by the names of the instances where the driver has no table of them.
    assert list(old) == list(new) == ["gpu0", "gpu1", "1g.10gb+me", "1g.10gb"]
    differ = {
        probe: said
        for device, readings in old.items()
        for probe, said in readings.items()
        if said != new[device][probe]
    }
    # The GPU's own generation, beside that of the slot, came later than the rest of the link.
    assert "gpu_max_generation=None" in differ.pop("pcie_link")
    # Of memory, what is reserved is unknown there, and with it what is truly used.
    assert differ == dict.fromkeys(
        (
            "fabric", "gpm", "gpm_details", "jpeg", "memory", "ofa", "processes", "sram_ecc",
            "temperature_margin",
        ),
        "Unsupported(reason='driver')",
    )  # fmt: skip


def test_a_version_that_is_not_stated_is_no_reason_not_to_start(world, monkeypatch):
    """Containers that may not compute lack libcuda, which is asked for the version of CUDA."""

    def lacks_libcuda():
        raise pynvml.NVMLError(Return.LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlSystemGetCudaDriverVersion_v2", lacks_libcuda)
    assert world.nvml.start() == Driver(driver="580.95.05", nvml="13.580.95.05", cuda="")
    assert world.nvml.count() == 2
    world.nvml.stop()


def test_a_version_that_is_not_text_is_no_reason_not_to_start(world, monkeypatch):
    monkeypatch.setattr(pynvml, "nvmlSystemGetDriverVersion", b"580.\xff".decode)
    assert world.nvml.start().driver == ""
    world.nvml.stop()
