"""The devices and their tenants, as a numbered layout that is sent whenever it changes."""

import msgspec


class Device(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A whole GPU, or one MIG device on it. Equal only if the same slice in the same place.

    ``uuid`` alone does not identify a MIG device: after a GPU is repartitioned, the driver may
    reuse it for another profile, which is why every field counts.

    Attributes:
        gpu: NVML index of the (parent) GPU.
        parent: uuid of the GPU that a MIG device is part of; empty for a whole GPU.
        mig_enabled: of a whole GPU: it is in MIG mode, so its own utilization is not available.
        placement_start, placement_size: first memory slice of the instance, and how many.
    """

    uuid: str
    gpu: int
    model: str
    parent: str = ""
    gpu_instance: int | None = None
    compute_instance: int | None = None
    profile: str = ""
    placement_start: int | None = None
    placement_size: int | None = None
    sm_count: int | None = None
    mig_enabled: bool = False
    minor: int | None = None
    pci_bus_id: str = ""
    serial: str = ""
    board: str = ""
    vbios: str = ""

    @property
    def is_mig(self) -> bool:
        """Tell a MIG device from a whole GPU."""
        return self.parent != ""


class Tenant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A container that holds a device, or one replica of a shared one, or works on one.

    Attributes:
        device: uuid of the device.
        namespace, pod, container: all empty for the processes outside of any pod.
        allocated: the kubelet says that it holds the device; if not, its processes were seen.
        uid: the pod's, where it is known (the kubelet's PodResources does not contain it).
        replica: what the device plugin appended for a shared device, for example ``3``.
        claim, claim_namespace: the resource claim through which it holds the device; empty for a
            device plugin's.
        labels: those of the pod that the exporter was asked for.
        workload_kind, workload: what owns the pod, if the exporter was asked for it: a
            ``Deployment`` rather than one of its ReplicaSets, the ``Pod`` itself without an owner.
    """

    device: str
    namespace: str
    pod: str
    container: str
    allocated: bool = True
    resource: str = ""
    replica: str = ""
    uid: str = ""
    claim: str = ""
    claim_namespace: str = ""
    labels: dict[str, str] = {}
    workload_kind: str = ""
    workload: str = ""


class Layout(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The rows of the snapshots that carry its number.

    Attributes:
        run: identifies one life of the exporter; numbers of two runs cannot be compared.
        number: counts up with every change.
        labels: static labels that the user configured.
        window_seconds: over how long means are taken.
        support: per metric, one reason per device; None where the device can report it. A metric
            that is missing is supported by every device it applies to.
        tenants_known: whether the kubelet has ever listed allocations; if not, no tenants does
            not mean that the devices are free.
    """

    run: str
    number: int
    node: str
    driver: str = ""
    window_seconds: float
    labels: dict[str, str] = {}
    devices: tuple[Device, ...]
    tenants: tuple[Tenant, ...] = ()
    tenants_known: bool = False
    support: dict[str, tuple[str | None, ...]] = {}
