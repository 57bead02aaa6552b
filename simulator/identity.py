"""Identifiers of hardware, derived from a seed: same seed, same identifiers, on every machine."""

from hashlib import blake2b
from uuid import UUID


def gpu_uuid(seed: str, node: str, gpu: int) -> str:
    """Return a uuid in NVML's form for GPUs."""
    return f"GPU-{_uuid(seed, node, str(gpu))}"


def mig_uuid(gpu: str, gpu_instance: int, compute_instance: int) -> str:
    """Return a uuid in NVML's form for MIG devices.

    It depends on the placement only: a later instance of another profile at the same place gets
    the same uuid, which drivers are free to do and readers must cope with.
    """
    return f"MIG-{_uuid(gpu, str(gpu_instance), str(compute_instance))}"


def vgpu_uuid(gpu: str, vm: str, number: int) -> str:
    """Return the uuid of a vGPU."""
    return str(_uuid(gpu, vm, str(number)))


def vm_uuid(vm: str) -> str:
    """Return the uuid of a virtual machine of that name."""
    return str(_uuid(vm, "vm"))


def pci_bus_id(gpu: int) -> str:
    """Return an address in NVML's form; distinct and ascending over the GPUs of a node."""
    domain, place = divmod(gpu, 16)
    return f"{domain:08X}:{0x17 + 0x0D * place:02X}:00.0"


def serial(seed: str, node: str, gpu: int) -> str:
    """Return a serial number of 13 digits."""
    return str(10**12 + _number(seed, node, gpu, "serial") % (9 * 10**12))


def pid(seed: str, namespace: str, pod: str, number: int) -> int:
    """Return the id of a pod's process of that number, as a busy host would have assigned it."""
    return 10_000 + _number(seed, namespace, number, pod) % 4_000_000


def pod_uid(seed: str, namespace: str, pod: str) -> str:
    """Return the uid that the API server gave the pod."""
    return str(_uuid(seed, namespace, pod, "pod"))


def draw(what: str, number: int) -> float:
    """Return a number from 0 up to 1, as if by chance: always the same for the same arguments."""
    return (_number(what, "", number, "draw") >> 11) / 2**53


def _number(seed: str, where: str, which: int, what: str) -> int:
    return int.from_bytes(_digest(seed, where, str(which), what)[:8], "big")


def _uuid(*parts: str) -> UUID:
    return UUID(bytes=_digest(*parts), version=5)


def _digest(*parts: str) -> bytes:
    return blake2b("\0".join(parts).encode(), digest_size=16).digest()
