"""Virtual GPUs: what the host of the node's last GPU says of them, and nobody else says.

Utilization is that of the five seconds since the last read, in whole percents of samples; the log
of the scheduler is read once a second and names each vGPU in most of its slices.
"""

from simulator.vgpu_scheduler import running, waiting
from tests.unit.exporter.mixed import WINDOW, boards

READ_EVERY_SECONDS = 5
# A sixth of a second more or less of the five, and half a percent.
RATE = 0.05
LOG_SECONDS = 1.0


def _vgpus(place):
    host = place.gpu.vgpu_host
    return () if host is None else host.instances()


def _each(value):
    return boards(lambda _, place: {one.uuid: value(one) for one in _vgpus(place)}, "vgpu")


def _info(_, place):
    return {(one.uuid, one.type_name, one.vm): 1 for one in _vgpus(place)}


def _tenancies(scene, place, begin):
    """Return each vGPU's tenancy and busy seconds since a moment, by uuid."""
    timeline = place.gpu.timeline
    uuids = {one.vm_name: one.uuid for one in _vgpus(place)}
    return {
        uuids[one.vgpu.vm]: (one, float(seconds[-1]))
        for one, seconds in timeline.tenant_seconds(place.uuid, (begin, scene.now)).items()
        if one.vgpu is not None
    }


def _rate(part):
    def ratios(scene, place):
        found = _tenancies(scene, place, scene.now - READ_EVERY_SECONDS)
        return {
            uuid: part(one.mix) * busy / READ_EVERY_SECONDS for uuid, (one, busy) in found.items()
        }

    return boards(ratios, "vgpu", within=RATE)


def _logged(signal):
    """Return how long each vGPU ran or waited since the exporter first looked."""

    def seconds(scene, place):
        timeline = place.gpu.timeline
        return {
            uuid: float(timeline.integral(signal(one, timeline), (scene.began, scene.now))[-1])
            for uuid, (one, _) in _tenancies(scene, place, scene.began).items()
        }

    return boards(seconds, "vgpu", within=LOG_SECONDS)


def _wait_ratio(scene, place):
    return scene.truth.vgpu_wait_ratio(place.uuid, None, scene.now - WINDOW, scene.now)


FAMILIES = {
    "gpu_vgpu_info": boards(_info, "vgpu", "vgpu_type", "vm"),
    "gpu_vgpu_active": boards(lambda _, place: len(_vgpus(place)) or None),
    "gpu_vgpu_memory_used_bytes": _each(lambda vgpu: vgpu.used_bytes),
    "gpu_vgpu_memory_limit_bytes": _each(lambda vgpu: vgpu.total_bytes),
    "gpu_vgpu_licensed": _each(lambda vgpu: int(vgpu.licensed)),
    "gpu_vgpu_sm_ratio": _rate(lambda _: 1),
    "gpu_vgpu_memory_bandwidth_ratio": _rate(lambda mix: mix.dram),
    "gpu_vgpu_encoder_ratio": _rate(lambda mix: mix.encoder),
    "gpu_vgpu_decoder_ratio": _rate(lambda mix: mix.decoder),
    "gpu_vgpu_scheduler_info": boards(
        lambda _, place: {"best_effort": 1} if _vgpus(place) else None, "policy"
    ),
    # Best effort keeps to none.
    "gpu_vgpu_scheduler_time_slice_seconds": boards(None),
    "gpu_vgpu_run_seconds_total": _logged(running),
    "gpu_vgpu_wait_seconds_total": _logged(waiting),
    "gpu_vgpu_wait_ratio": boards(_wait_ratio, within=0.03),
    # The exporter does not run in a guest.
    "gpu_license_state": boards(None),
    "gpu_license_expiry_timestamp_seconds": boards(None),
}
