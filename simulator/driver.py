"""The driver of a node over time: whether it is loaded, in which version, since when."""

from dataclasses import dataclass

from simulator.faults import Story
from simulator.scenario import DriverGone, DriverVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """The driver at one moment.

    Attributes:
        loaded: if not, nothing answers and NVML cannot be started.
        matches: if not, the library of this version does not match the loaded kernel module yet.
        generation: counts up when it is reloaded or replaced; whatever was started before has
            lost its state.
        replaced: whether the last change of generation was a replacement.
        loaded_at: second at which it was last loaded; energy counters start there.
    """

    version: str
    cuda: str
    loaded: bool
    matches: bool
    generation: int
    replaced: bool
    loaded_at: float


def driver_at(story: Story, at: float, *, version: str, cuda: str) -> Driver:
    """Return the driver at that moment, where ``version`` is the one it began with."""
    changes: list[tuple[float, bool]] = []
    loaded = matches = True
    for occurrence in story.occurrences(0.0, at, (DriverGone, DriverVersion)):
        fault = occurrence.fault
        if isinstance(fault, DriverGone):
            loaded = loaded and not occurrence.holds(at)
            if occurrence.end <= at:
                changes.append((occurrence.end, False))
        if isinstance(fault, DriverVersion):
            version = fault.version
            matches = fault.lasts is None or not occurrence.holds(at)
            changes.append((occurrence.begin, True))
    changes.sort()
    loaded_at, replaced = changes[-1] if changes else (0.0, False)
    return Driver(
        version=version,
        cuda=cuda,
        loaded=loaded,
        matches=matches,
        generation=len(changes),
        replaced=replaced,
        loaded_at=loaded_at,
    )
