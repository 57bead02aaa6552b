"""The exporter itself, and those that it asks besides the driver."""

from typing import Final

from exporter.doctor.check import Check, Judged, Verdict, answered, check, listed, service
from exporter.doctor.facts import Facts, NoAnswer
from exporter.tenants.device_ids import DeviceIds, concerns_gpus

SETTINGS: Final[Check] = service(
    "settings",
    "The exporter's flags, environment and files.",
    "mend what is said; until then the other checks go by the flags alone",
)
PORT: Final[Check] = service(
    "port",
    "The exporter's address: free, or an exporter that is ready.",
    "see the exporter's log and the other checks; if something else has the address, choose another"
    " one (listen) or stop that (ss -ltnp names it)",
)
PROCESSES: Final[Check] = service(
    "processes",
    "PID namespace and /proc, by which the containers of processes are found.",
    "set hostPID: true in the pod's spec and run as root on a /proc without hidepid; where nodes"
    " are containers, set pid_namespace to any",
)
LINKS: Final[Check] = service(
    "container-links",
    "The folder container_links, which names the containers of processes.",
    "mount the host's /var/log/containers there, read-only",
)
DCGM: Final[Check] = service(
    "dcgm",
    "The page of the dcgm-exporter at dcgm_url.",
    "see that it runs on this node and that no NetworkPolicy is between; for dcgm_no_profiling"
    " switch on its DCGM_FI_PROF_ fields",
)
API_SERVER: Final[Check] = service(
    "api-server",
    "The API server, for pod labels, workloads, ResourceSlices and MIG state.",
    "let the service account list what is asked for and the pod mount its token, or turn the"
    " setting off",
)


@check(
    "mount the host's folder /var/lib/kubelet/pod-resources, not the socket alone, and run as root;"
    " where there is no kubelet, set kubelet_socket to nothing"
)
def kubelet(facts: Facts) -> Judged:
    """PodResources v1 of the kubelet: List and GetAllocatableResources."""
    allocations, offers = facts.allocations, facts.offers
    if allocations is None or isinstance(allocations, NoAnswer):
        return answered(allocations)
    if isinstance(offers, NoAnswer):
        return Verdict.WARNING, offers.why
    return Verdict.OK, f"{len(allocations)} devices allocated, {len(offers or ())} offered"


@check(
    "restart the device plugin after repartitioning; let it name devices by uuid"
    " (DEVICE_ID_STRATEGY=uuid); for DRA set resource_slices"
)
def device_ids(facts: Facts) -> Judged:
    """Whether each device id of the kubelet names a device that NVML has."""
    allocations = facts.allocations if isinstance(facts.allocations, tuple) else ()
    offers = facts.offers if isinstance(facts.offers, tuple) else ()
    ids = {(a.resource, a.device_id) for a in allocations} | {tuple(offer) for offer in offers}
    named = sorted((resource, name) for resource, name in ids if concerns_gpus(resource))
    if not named or not facts.devices:
        return None
    here = DeviceIds(facts.devices)
    lost = (f"{resource} {name}" for resource, name in named if here.find(resource, name) is None)
    return listed(lost, Verdict.WARNING, f"all {len(named)}")
