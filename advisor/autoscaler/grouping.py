"""Which pods count, and how: the controller sorts them before it looks at a value."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from advisor.autoscaler.controller import Controller
from advisor.autoscaler.readings import Sample
from slicewatch.kube.autoscaling import ScaledPod


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Names of pods by what the controller makes of them; each pod is in one.

    Attributes:
        counted: their values count.
        unready: pending, or for CPU not ready yet: values dropped, 0 when scaling up.
        missing: without a value: the target when scaling down, 0 when scaling up. Succeeded pods
            are among them.
        ignored: failed or being deleted: as if they did not exist.
    """

    counted: tuple[str, ...] = ()
    unready: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def keeps(self, samples: Mapping[str, Sample]) -> dict[str, int]:
        """Return the values that count, by pod: also of pods that nobody selected."""
        dropped = {*self.ignored, *self.unready}
        return {name: one.value for name, one in samples.items() if name not in dropped}


def group(
    pods: Sequence[ScaledPod],
    samples: Mapping[str, Sample],
    *,
    cpu: bool = False,
    now: datetime,
    controller: Controller,
) -> Groups:
    """Return the pods by group.

    Args:
        pods: those that the selector matches.
        samples: by pod.
        cpu: whether readiness counts, as for this resource alone.
        now: of the controller, with a time zone.
        controller: its flags.
    """
    found: dict[str, list[str]] = {"counted": [], "unready": [], "missing": [], "ignored": []}
    for pod in pods:
        sample = samples.get(pod.metadata.name)
        kind = _kind(pod, sample)
        if kind == "counted" and cpu and sample and _starting(pod, sample, now, controller):
            kind = "unready"
        found[kind].append(pod.metadata.name)
    return Groups(**{kind: tuple(sorted(names)) for kind, names in found.items()})


def _kind(pod: ScaledPod, sample: Sample | None) -> str:
    if pod.metadata.deletion_timestamp is not None or pod.status.phase == "Failed":
        return "ignored"
    if pod.status.phase == "Pending":
        return "unready"
    return "missing" if sample is None else "counted"


def _starting(pod: ScaledPod, sample: Sample, now: datetime, controller: Controller) -> bool:
    """Tell whether a pod's CPU does not say yet how busy it will be."""
    ready, started = pod.ready_condition, pod.status.start_time
    if ready is None or started is None or ready.last_transition_time is None:
        return True
    changed, unready = ready.last_transition_time, ready.status == "False"
    if started + timedelta(seconds=controller.cpu_initialization_seconds) > now:
        whole_window = changed + timedelta(seconds=sample.window_seconds)
        return unready or sample.read_at is None or sample.read_at < whole_window
    readiness = timedelta(seconds=controller.initial_readiness_seconds)
    return unready and started + readiness > changed


def ready_count(pods: Collection[ScaledPod]) -> int:
    """Return how many run and are ready, those being deleted included."""
    return sum(pod.ready for pod in pods)
