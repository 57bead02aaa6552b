"""Power, heat, clocks and memory: from the truth, or from what the model of a GPU says.

What is read every few seconds was read in the tick of the scrape, which is a whole minute after
the first.
"""

from simulator import thermal
from simulator.clocks import COUNTED, SUPPORTED
from slicewatch.catalog.readings.clocks import ClockEvent
from tests.unit.exporter.mixed import boards, each

A_MOMENT = 1e-3


def _watts(seconds):
    def watts(scene, place):
        begin = scene.now - seconds
        used = [scene.truth.energy_joules(place.uuid, at) for at in (begin, scene.now)]
        return (used[1] - used[0]) / seconds

    return watts


def _usage(scene, place):
    return _watts(1.0 if place.gpu.model.averages_power else A_MOMENT)(scene, place)


def _average(scene, place):
    return _usage(scene, place) if place.gpu.model.averages_power else None


def _load(scene, place):
    watts, model = _watts(A_MOMENT)(scene, place), place.gpu.model
    return (watts - model.idle_power_watts) / (model.max_power_watts - model.idle_power_watts)


def _sm_mhz(scene, place):
    model = place.gpu.model
    return model.max_sm_clock_mhz if _load(scene, place) > A_MOMENT else model.idle_sm_clock_mhz


def _max_hertz(scene, place):
    model = place.gpu.model
    sm, video = 1e6 * model.max_sm_clock_mhz, 1e6 * model.limits.max_video_clock_mhz
    return {
        "graphics": sm, "sm": sm, "memory": 1e6 * model.max_memory_clock_mhz, "video": video,
    }  # fmt: skip


def _video_hertz(scene, place):
    model = place.gpu.model
    share = _sm_mhz(scene, place) / model.max_sm_clock_mhz
    return 1e6 * round(share * model.limits.max_video_clock_mhz)


def _events(scene, place):
    load = _load(scene, place)
    active = {
        ClockEvent.IDLE: load < A_MOMENT,
        ClockEvent.SW_POWER_CAP: load > 1 - A_MOMENT,
    }
    return {event.value: float(active.get(event, False)) for event in SUPPORTED}


def _event_seconds(scene, place):
    capped = place.gpu.sensors.events.total(ClockEvent.SW_POWER_CAP, scene.now)
    return {event.value: capped * (event is ClockEvent.SW_POWER_CAP) for event in COUNTED}


def _limits(scene, place):
    model = place.gpu.model
    most = dict.fromkeys(("enforced", "management", "default", "max"), model.max_power_watts)
    return {**most, "min": model.limits.min_power_watts}


def _celsius(scene, place):
    """Return how warm the mean power of the last minute makes the die."""
    watts = _watts(60)(scene, place)
    rise = 45 * watts / place.gpu.model.max_power_watts
    return thermal.INLET_CELSIUS + rise


def _memory_celsius(scene, place):
    return thermal.memory_celsius(place.gpu.model.limits, _celsius(scene, place))


def _margin(scene, place):
    return thermal.margin_celsius(place.gpu.model, _celsius(scene, place))


def _thresholds(stated, *, margins):
    def of(scene, place):
        if place.gpu.model.states_margins is not margins:
            return None
        kinds = ("shutdown", "slowdown", "memory_max", "gpu_max")
        values = stated(place.gpu.model.limits)
        return {k: v for k, v in zip(kinds, values, strict=True) if v is not None}

    return of


def _used(scene, place):
    """Return what the processes of a place hold; of a board, those of all its MIG devices."""
    mig = place.mig
    return sum(
        process.used_bytes
        for process in place.gpu.processes
        if mig is None or process.gpu_instance_id == mig.gpu_instance_id
    )


def _reserved(scene, place):
    return 0 if place.mig else place.gpu.model.reserved_bytes


def _free(scene, place):
    return place.memory_bytes - _used(scene, place) - _reserved(scene, place)


FAMILIES = {
    "gpu_power_usage_watts": boards(_usage, within=0.5),
    "gpu_power_instant_watts": boards(_watts(A_MOMENT), within=0.5),
    "gpu_power_average_watts": boards(_average, within=0.5),
    "gpu_power_limit_watts": boards(_limits, "limit"),
    "gpu_energy_joules_total": boards(
        lambda scene, place: scene.truth.energy_joules(place.uuid, scene.now), within=0.001
    ),
    "gpu_temperature_celsius": boards(_celsius, within=0.51),
    "gpu_memory_temperature_celsius": boards(_memory_celsius, within=0.51),
    "gpu_temperature_margin_celsius": boards(_margin, within=0.51),
    "gpu_temperature_threshold_celsius": boards(
        _thresholds(thermal.thresholds, margins=False), "kind"
    ),
    "gpu_temperature_margin_threshold_celsius": boards(
        _thresholds(thermal.margin_thresholds, margins=True), "kind"
    ),
    "gpu_sm_clock_mhz": boards(_sm_mhz),
    "gpu_mem_clock_mhz": boards(lambda _, place: place.gpu.model.max_memory_clock_mhz),
    "gpu_video_clock_hertz": boards(_video_hertz),
    "gpu_max_clock_hertz": boards(_max_hertz, "kind"),
    "gpu_performance_state": boards(
        lambda scene, place: 0 if _load(scene, place) > A_MOMENT else 8
    ),
    "gpu_clock_event_active": boards(_events, "reason"),
    "gpu_clock_event_seconds_total": boards(_event_seconds, "reason", within=0.01),
    "gpu_memory_used_bytes": each(_used),
    "gpu_memory_total_bytes": each(lambda _, place: place.memory_bytes),
    "gpu_memory_utilization": each(
        lambda scene, place: 100 * _used(scene, place) / place.memory_bytes
    ),
    "gpu_memory_free_bytes": each(_free),
    "gpu_memory_reserved_bytes": each(_reserved),
    "gpu_bar1_memory_used_bytes": each(lambda _, place: place.gpu.bar1(place.mig).used_bytes),
    "gpu_bar1_memory_total_bytes": each(lambda _, place: place.gpu.bar1(place.mig).total_bytes),
    # None of the boards has a fan: they are cooled by their server.
    "gpu_fan_speed_ratio": boards(None),
}
