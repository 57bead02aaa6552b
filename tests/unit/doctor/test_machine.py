"""What is read of the kernel's files, from trees that look like a machine's."""

import pytest

from exporter.doctor.facts import MigInstance
from exporter.doctor.machine import look

OPEN_MODULE = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (a@b)\n"
    "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
)
OLD_MODULE = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  450.80  Wed Sep 23 01:13:39 UTC 2020\n"
)


def write(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def pci(root, address, *, vendor="0x10de", kind="0x030200", driver=""):
    device = root / "sys/bus/pci/devices" / address
    write(device / "vendor", f"{vendor}\n")
    write(device / "class", f"{kind}\n")
    if driver:
        target = root / "sys/bus/pci/drivers" / driver
        target.mkdir(parents=True, exist_ok=True)
        (device / "driver").symlink_to(target)
    return device


@pytest.fixture
def root(tmp_path):
    driver = tmp_path / "proc/driver/nvidia"
    write(driver / "version", OPEN_MODULE)
    write(driver / "gpus/0000:3b:00.0/information", "Model: \t NVIDIA H100\nDevice Minor: \t 0\n")
    for name in ("nvidiactl", "nvidia-uvm", "nvidia0"):
        write(tmp_path / "dev" / name)
    return tmp_path


@pytest.mark.parametrize(("text", "version"), [(OPEN_MODULE, "580.95.05"), (OLD_MODULE, "450.80")])
def test_the_version_of_the_module_is_read(root, text, version):
    write(root / "proc/driver/nvidia/version", text)
    assert look(root).module == version


def test_a_machine_without_driver_has_no_files_to_miss(tmp_path):
    machine = look(tmp_path)
    assert (machine.module, machine.files, machine.pci_gpus) == ("", {}, None)


def test_files_that_are_there_can_be_opened(root):
    assert look(root).files == {
        f"{root}/dev/{name}": "" for name in ("nvidiactl", "nvidia-uvm", "nvidia0")
    }


def test_a_file_that_a_restarted_container_lost_is_named(root):
    """DataDog #54128."""
    (root / "dev/nvidia0").unlink()
    assert look(root).files[f"{root}/dev/nvidia0"] == "No such file or directory"


def test_a_file_that_may_not_be_opened_says_why(root):
    (root / "dev/nvidia0").unlink()
    (root / "dev/nvidia0").mkdir()
    assert look(root).files[f"{root}/dev/nvidia0"] == "Is a directory"


def test_mig_instances_and_their_files_are_found(root):
    """gpu-monitoring-tools #142: the files of new instances are missing."""
    capabilities = root / "proc/driver/nvidia/capabilities"
    write(capabilities / "mig/monitor", "DeviceFileMinor: 2\nDeviceFileMode: 256\n")
    write(capabilities / "gpu0/mig/gi7/access", "DeviceFileMinor: 66\n")
    write(capabilities / "gpu0/mig/gi7/ci0/access", "DeviceFileMinor: 67\n")
    write(root / "dev/nvidia-caps/nvidia-cap2")
    machine = look(root)
    assert machine.instances == {MigInstance(0, 7, 0)}
    missing = {path for path, why in machine.files.items() if why}
    assert missing == {f"{root}/dev/nvidia-caps/nvidia-cap{n}" for n in (66, 67)}


def test_gpus_on_the_bus_are_those_of_nvidia_that_are_no_part_of_another(root):
    pci(root, "0000:3b:00.0", driver="nvidia")
    pci(root, "0000:5e:00.0", kind="0x030000")
    pci(root, "0000:3b:00.1", kind="0x040300", driver="snd_hda_intel")
    pci(root, "0000:00:02.0", vendor="0x8086", kind="0x030000", driver="i915")
    (pci(root, "0000:3b:00.4", driver="nvidia") / "physfn").mkdir()
    assert look(root).pci_gpus == {"0000:3b:00.0": "nvidia", "0000:5e:00.0": ""}
