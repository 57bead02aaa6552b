"""Is there a driver, whole and of one version, with its files and all its GPUs?"""

from typing import Final

from exporter.doctor.check import Judged, Verdict, answered, check, listed
from exporter.doctor.facts import Facts, Machine, NoAnswer, known

# CUDA needs them, and MIG instances; NVML starts without.
_DISPENSABLE: Final = ("/dev/nvidia-uvm", "/dev/nvidia-caps/")
# They hand a GPU on to a virtual machine, and NVML of the host does not see it.
_PASSED_THROUGH: Final = frozenset({"vfio-pci", "pci-stub", "xen-pciback"})


@check(
    "let the pod set NVIDIA_VISIBLE_DEVICES=all; see the kernel log for Xid 79, a GPU that has"
    " fallen off the bus; reboot the node, and have a GPU repaired that does not come back"
)
def gpus_on_bus(facts: Facts) -> Judged:
    """The GPUs on the PCI bus against those of NVML."""
    machine = known(facts.machine)
    if machine is None:
        return None
    if machine.pci_gpus is None:
        return Verdict.UNKNOWN, "there is no sysfs to count them in"
    if not facts.has_gpus:
        seen = "no NVIDIA GPU in this node: nothing to measure, and nothing wrong with that"
        return Verdict.OK, f"{seen}; --simulate demo shows what it would be like"
    if isinstance(facts.driver, NoAnswer):
        return Verdict.UNKNOWN, f"{len(machine.pci_gpus)} on the bus; NVML does not count any"
    ours = {a: name for a, name in machine.pci_gpus.items() if name not in _PASSED_THROUGH}
    seen = f"{len(ours)} on the bus, {len(facts.gpus)} in NVML"
    if len(ours) <= len(facts.gpus):
        return Verdict.OK, seen
    # NVML writes eight digits of the domain where the kernel writes four.
    met = {device.pci_bus_id[-12:].lower() for device in facts.devices}
    missing = (f"{a} ({name or 'no driver'})" for a, name in ours.items() if a not in met)
    return Verdict.FAILED, f"{seen}; not seen there: {', '.join(missing)}"


@check(
    "set runtimeClassName: nvidia, so that NVIDIA's container toolkit mounts it, or install the"
    " driver's libraries on the host"
)
def driver_library(facts: Facts) -> Judged:
    """The file that libnvidia-ml.so.1 is."""
    return answered(facts.library)


@check(
    "load it (modprobe nvidia), or let the GPU operator's driver pod finish; the kernel log"
    " (dmesg | grep -i nvrm) says why it does not load"
)
def kernel_module(facts: Facts) -> Judged:
    """The loaded kernel module, by /proc/driver/nvidia/version."""
    machine = known(facts.machine)
    if machine is None:
        return None
    if machine.module:
        return Verdict.OK, machine.module
    verdict = Verdict.FAILED if isinstance(facts.driver, NoAnswer) else Verdict.UNKNOWN
    return verdict, "none is loaded, or procfs does not show it"


@check(
    "after an upgrade drain and reboot the node, or unload and load the modules (rmmod, modprobe);"
    " then restart the pods that have the old library"
)
def driver_versions(facts: Facts) -> Judged:
    """Whether library and kernel module are of one version."""
    if not isinstance(facts.driver, NoAnswer):
        return Verdict.OK, facts.driver.driver
    if facts.driver.reason != "version_mismatch":
        return None
    module = facts.machine.module if isinstance(facts.machine, Machine) else ""
    library = facts.library if isinstance(facts.library, str) else ""
    return Verdict.FAILED, f"module {module or 'unknown'}, library {library or 'unknown'}"


@check(
    "delete the pod, so that it is made anew: a container that only restarts may lose its device"
    " files, after systemctl daemon-reload also the right to open them, and MIG instances have other"
    " ones after repartitioning; for those set NVIDIA_MIG_MONITOR_DEVICES=all as well; on a host,"
    " nvidia-modprobe -u -c 0 makes them"
)
def device_files(facts: Facts) -> Judged:
    """The files in /dev: nvidiactl, nvidia-uvm, one per GPU, and for MIG those in nvidia-caps."""
    machine = known(facts.machine)
    if machine is None or not machine.files:
        return None
    faults = {path: why for path, why in machine.files.items() if why}
    grave = [path for path in faults if not any(part in path for part in _DISPENSABLE)]
    seen = (f"{path}: {why}" for path, why in faults.items())
    return listed(seen, Verdict.FAILED if grave else Verdict.WARNING, f"{len(machine.files)} open")


@check(
    "mend what the checks above say of library, module, versions and device files; if they are"
    " good, delete the pod, and see the kernel log (dmesg | grep -i nvrm)"
)
def nvml(facts: Facts) -> Judged:
    """Whether NVML starts."""
    if isinstance(facts.driver, NoAnswer):
        return answered(facts.driver)
    return Verdict.OK, f"version {facts.driver.nvml}, CUDA {facts.driver.cuda or 'not stated'}"
