"""Which processes use a device. Read for what is derived from it; tenants are in ``sharing``."""

from collections import Counter
from typing import Final

from slicewatch.catalog.model import COUNT, Label, Probe, Scope, Unit
from slicewatch.catalog.readings.processes import Processes, ProcessKind, ProcessUtilization

# Lists change when a process starts or ends, so that they need not be asked for in every tick.
PROCESSES: Final = Probe(
    name="processes",
    reading=Processes,
    scopes=frozenset({Scope.GPU, Scope.MIG}),
    interval_seconds=5,
)
# NVML attributes no time to the processes of a GPU in MIG mode.
PROCESS_UTILIZATION: Final = Probe(
    name="process_utilization", reading=ProcessUtilization, scopes=frozenset({Scope.GPU})
)


def _by_kind(processes: Processes) -> dict[str, float]:
    counted = Counter(process.kind for process in processes.found)
    return {kind: counted[kind] for kind in ProcessKind}


METRICS: Final = (
    PROCESSES.gauge(
        "gpu_processes",
        help="Processes that hold a context on the device, by the list in which NVML names them.",
        unit=Unit.NONE,
        limits=COUNT,
        value=_by_kind,
        labels=(Label.KIND,),
    ),
)
