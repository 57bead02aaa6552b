"""Tenants: who holds a device, who works on it, and what each had of it.

Shares are estimates: the driver draws 7.2 samples a second and gives each to one process, so that
a true share p is off by sqrt(p (1 - p) / n) after n of them; here by less than three times that:
the draws are the same in every run. What it answers is cut to whole percents, for each process and
second.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from math import sqrt

from simulator.process_samples import PROCESS_SAMPLE_PERIOD_SECONDS
from simulator.scenario import SharingMode
from tests.unit.exporter.mixed import CONTENTION_WINDOW, WINDOW, Within, each

DEVIATIONS = 3
# Cut off per process and second, in the mean.
CUT = 0.005
# Samples lie up to a period beside the edges of what is asked about.
EDGE_SECONDS = 2 * PROCESS_SAMPLE_PERIOD_SECONDS
NOT_ATTRIBUTED = 0.02
SATURATED = 0.95


@dataclass(frozen=True)
class Tenant:
    """A container, or the host, on one device; ``tenancies`` are the simulator's."""

    place: object
    names: tuple[str, str, str]
    tenancies: tuple

    @property
    def pids(self):
        return {pid for one in self.tenancies for pid in one.pids}

    def busy(self, scene, begin, end):
        """Return the seconds for which it kept the device busy."""
        return scene.truth.tenant_busy_seconds(self.place.uuid, *self.names, begin, end)


def tenants_of(scene, place):
    held = {}
    for one in place.gpu.stage.tenants.get(place.uuid, ()):
        names = ("", "", "") if one.owner is None else one.owner[:3]
        held.setdefault(names, []).append(one)
    return [Tenant(place, names, tuple(found)) for names, found in held.items()]


def tenants(value, within=0.0):
    """Return the expectation of a family of tenants; None for no series."""

    def expect(scene):
        found = {}
        for tenant in chain.from_iterable(tenants_of(scene, place) for place in scene.places):
            given = value(scene, tenant)
            if given is not None:
                tolerance = within(scene, tenant) if callable(within) else within
                found[_labels(scene, tenant)] = Within(given, tolerance)
        return found

    return expect


def _labels(scene, tenant, **more):
    names = dict(zip(("namespace", "pod", "container"), tenant.names, strict=True))
    return scene.labels(tenant.place, **names, **more)


def shares_are_known(place):
    """Tell whether NVML's samples are of the tenants: no MIG, no server, no virtual machines."""
    through_others = place.gpu.sharing.mode is SharingMode.MPS or place.gpu.vgpu_host is not None
    return place.mig is None and not place.gpu.mig_enabled and not through_others


def of_known(value):
    """Return a value of those tenants whose shares can be known."""
    return lambda scene, tenant: value(scene, tenant) if shares_are_known(tenant.place) else None


def noise(share, seconds, processes=1):
    """Return how far an estimate of a share over so many seconds may be off."""
    samples = seconds / PROCESS_SAMPLE_PERIOD_SECONDS
    drawn = DEVIATIONS * sqrt(max(0.0, share * (1 - share)) / samples)
    return drawn + CUT * processes + EDGE_SECONDS / seconds


def _total(scene, tenant):
    return tenant.busy(scene, scene.began, scene.now)


def _total_noise(scene, tenant):
    seconds = scene.now - scene.began
    return seconds * noise(_total(scene, tenant) / seconds, seconds, len(tenant.pids))


def _others(scene, tenant):
    return [one for one in tenants_of(scene, tenant.place) if one.names != tenant.names]


def _foreign(scene, tenant):
    return sum(_total(scene, other) for other in _others(scene, tenant))


def _foreign_noise(scene, tenant):
    seconds = scene.now - scene.began
    others = _others(scene, tenant)
    processes = sum(len(one.pids) for one in others)
    share = _foreign(scene, tenant) / seconds
    return seconds * noise(share, seconds, processes) if others else 0


def _ratio(scene, tenant, window=WINDOW):
    return tenant.busy(scene, scene.now - window, scene.now) / window


def _contention(scene, tenant):
    everyone = tenants_of(scene, tenant.place)
    ratios = {one.names: _ratio(scene, one, CONTENTION_WINDOW) for one in everyone}
    own = ratios[tenant.names]
    processes = sum(len(one.pids) for one in everyone if ratios[one.names])
    if not own:
        return 0
    return min(sum(ratios.values()) - own, 1 - len(tenant.pids) / processes)


def _contention_noise(scene, tenant):
    if not _others(scene, tenant):
        return 0
    return noise(
        _contention(scene, tenant), CONTENTION_WINDOW, len(tenants_of(scene, tenant.place))
    )


def _memory(scene, tenant):
    return sum(one.memory_bytes for one in tenant.tenancies)


def _info(scene):
    """Return ``gpu_tenant_info``: who holds a device, by the kubelet."""
    found = {}
    for held in scene.truth.allocations(scene.node.name, scene.now):
        for device_id in held.device_ids:
            uuid, _, replica = device_id.partition("::")
            (place,) = [place for place in scene.places if place.uuid == uuid]
            (tenant,) = [
                one
                for one in tenants_of(scene, place)
                if one.names == (held.namespace, held.pod, held.container)
            ]
            uid = tenant.tenancies[0].owner.uid
            labels = _labels(
                scene, tenant, pod_uid=uid, resource=held.resource, replica=replica,
                source="kubelet",
            )  # fmt: skip
            found[labels] = Within(1)
    return found


def _is_listed(place):
    """Tell whether the driver lists the processes of a place: under MIG, those of the instances."""
    return place.mig is not None or not place.gpu.mig_enabled


def _processes(scene, place):
    if not _is_listed(place):
        return None
    mig = place.mig
    kinds = Counter(
        process.type.value
        for process in place.gpu.processes
        if mig is None or process.gpu_instance_id == mig.gpu_instance_id
    )
    return {kind: kinds[kind] for kind in ("compute", "graphics", "mps")}


def _active(scene, place):
    return len(tenants_of(scene, place)) if _is_listed(place) else None


def _pressure(scene, place):
    """Return 0: of the devices that tenants may use at the same time, none has two and GPM."""
    at_once = place.mig is not None or place.gpu.sharing.mode is SharingMode.MPS
    if not at_once or not place.gpu.model.gpm:
        return None
    assert _active(scene, place) < 2
    return 0


def _allocated(scene, place):
    return sum(
        device_id.partition("::")[0] == place.uuid
        for held in scene.truth.allocations(scene.node.name, scene.now)
        for device_id in held.device_ids
    )


def _replicas(scene, place):
    offered = [device for _, device in scene.truth.offers(scene.node.name, scene.now)]
    return sum(device.partition("::")[0] == place.uuid for device in offered) or None


def _device_contention(scene, place):
    if not shares_are_known(place):
        return None
    ratios = [_ratio(scene, one, CONTENTION_WINDOW) for one in tenants_of(scene, place)]
    busy = sum(ratios)
    return busy * (1 - sum((ratio / busy) ** 2 for ratio in ratios)) if busy else 0


def _device_contention_noise(scene, place):
    several = len(tenants_of(scene, place)) > 1
    return noise(_device_contention(scene, place), CONTENTION_WINDOW, 2) if several else 0


def _is_saturated(scene, place, second, limit):
    begin = scene.began + second
    busy = [one.busy(scene, begin, begin + 1) for one in tenants_of(scene, place)]
    return sum(seconds > 0 for seconds in busy) > 1 and sum(busy) >= limit


def _saturated_seconds(scene, place, limit=SATURATED):
    if not shares_are_known(place):
        return None
    seconds = range(int(scene.now - scene.began))
    return sum(_is_saturated(scene, place, second, limit) for second in seconds)


def _saturated_noise(scene, place):
    # Seconds near the limit may be on either side of it, and in a few one tenant has all samples.
    least, most = (_saturated_seconds(scene, place, SATURATED + by) for by in (0.04, -0.04))
    return most - least + 0.1 * most


FAMILIES = {
    "gpu_tenant_info": _info,
    "gpu_tenant_busy_seconds_total": tenants(of_known(_total), within=_total_noise),
    "gpu_tenant_foreign_busy_seconds_total": tenants(of_known(_foreign), within=_foreign_noise),
    "gpu_tenant_busy_ratio": tenants(
        of_known(_ratio),
        within=lambda scene, tenant: noise(_ratio(scene, tenant), WINDOW, len(tenant.pids)),
    ),
    "gpu_tenant_contention_ratio": tenants(of_known(_contention), within=_contention_noise),
    "gpu_tenant_memory_used_bytes": tenants(_memory),
    "gpu_tenant_memory_utilization": tenants(
        lambda scene, tenant: 100 * _memory(scene, tenant) / tenant.place.memory_bytes
    ),
    "gpu_tenant_processes": tenants(lambda _, tenant: len(tenant.pids)),
    "gpu_processes": each(_processes, "kind"),
    "gpu_contention_ratio": each(_device_contention, within=_device_contention_noise),
    "gpu_contended_seconds_total": each(_saturated_seconds, within=_saturated_noise),
    "gpu_sampled_seconds_total": each(
        lambda scene, place: scene.now - scene.began if shares_are_known(place) else None,
        within=0.001,
    ),
    "gpu_unattributed_busy_ratio": each(
        lambda _, place: 0 if shares_are_known(place) else None, within=NOT_ATTRIBUTED
    ),
    "gpu_pressure_ratio": each(_pressure),
    "gpu_tenants_allocated": each(_allocated),
    "gpu_tenants_active": each(_active),
    "gpu_sharing_replicas": each(_replicas),
}
