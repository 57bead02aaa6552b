"""How a board is set up: modes, generation, contents of its InfoROM, membership in a fabric."""

from typing import Final

from slicewatch.catalog.model import FLAG, Label, Probe, Scope, Unit
from slicewatch.catalog.readings.state import (
    ComputeMode,
    Fabric,
    Generation,
    Inforom,
    InforomCheck,
    Modes,
)

BOARD: Final = frozenset({Scope.GPU})
HOUR_SECONDS: Final = 3600

MODES: Final = Probe(
    name="modes",
    reading=Modes,
    scopes=BOARD,
    interval_seconds=60,
    consistent=lambda r: r.consistent(),
)
# Of a GPU in MIG mode only the instances have it.
COMPUTE_MODE: Final = Probe(
    name="compute_mode",
    reading=ComputeMode,
    scopes=frozenset({Scope.GPU, Scope.MIG}),
    interval_seconds=60,
)
GENERATION: Final = Probe(
    name="generation",
    reading=Generation,
    scopes=BOARD,
    interval_seconds=HOUR_SECONDS,
    consistent=lambda r: r.consistent(),
)
INFOROM: Final = Probe(
    name="inforom", reading=Inforom, scopes=BOARD, interval_seconds=HOUR_SECONDS
)
# Reads the whole flash memory and holds up all other reads of the GPU meanwhile.
INFOROM_CHECK: Final = Probe(
    name="inforom_check",
    reading=InforomCheck,
    scopes=BOARD,
    interval_seconds=HOUR_SECONDS,
    optional=True,
)
FABRIC: Final = Probe(
    name="fabric",
    reading=Fabric,
    scopes=BOARD,
    interval_seconds=10,
    consistent=lambda r: r.consistent(),
)


def _compute_mode(mode: ComputeMode) -> dict[str, float] | None:
    name = mode.name()
    return None if name is None else {name: 1}


def _generation(found: Generation) -> dict[tuple[str, ...], float] | None:
    texts = (found.architecture_name(), found.cuda_capability())
    return {texts: 1} if any(texts) else None


def _versions(inforom: Inforom) -> dict[tuple[str, ...], float]:
    objects = {
        "image": inforom.image, "oem": inforom.oem, "ecc": inforom.ecc, "power": inforom.power,
    }  # fmt: skip
    return {(name, version): 1 for name, version in objects.items() if version}


METRICS: Final = (
    MODES.gauge(
        "gpu_mig_mode",
        help="1 if the GPU is partitioned (current), or will be after its next reset (pending).",
        unit=Unit.NONE,
        limits=FLAG,
        value=lambda r: {"current": r.mig_current, "pending": r.mig_pending},
        labels=(Label.STATE,),
    ),
    MODES.gauge(
        "gpu_ecc_mode",
        help="1 if ECC is on (current), or will be after the next reboot (pending).",
        unit=Unit.NONE,
        limits=FLAG,
        value=lambda r: {"current": r.ecc_current, "pending": r.ecc_pending},
        labels=(Label.STATE,),
    ),
    MODES.gauge(
        "gpu_persistence_mode",
        help="1 if the driver keeps the GPU initialised while nobody uses it.",
        unit=Unit.NONE,
        limits=FLAG,
        value=lambda r: r.persistence,
    ),
    COMPUTE_MODE.info(
        "gpu_compute_mode_info",
        help="Who may have a context on the device: anyone, one process, or nobody.",
        value=_compute_mode,
        labels=(Label.MODE,),
    ),
    GENERATION.info(
        "gpu_architecture_info",
        help="Architecture of the GPU, and its compute capability for CUDA.",
        value=_generation,
        labels=(Label.ARCHITECTURE, Label.CUDA_CAPABILITY),
    ),
    INFOROM.info(
        "gpu_inforom_info",
        help="Versions in the board's InfoROM, of the image and of each object in it.",
        value=_versions,
        labels=(Label.OBJECT, Label.VERSION),
    ),
    INFOROM_CHECK.gauge(
        "gpu_inforom_valid",
        help="1 if the checksums of the InfoROM are right, 0 if it is corrupted.",
        unit=Unit.NONE,
        limits=FLAG,
        value=lambda r: float(r.valid),
    ),
    FABRIC.gauge(
        "gpu_fabric_state",
        help="1 for how far the GPU is with joining the NVLink fabric, 0 for the other states.",
        unit=Unit.NONE,
        limits=FLAG,
        value=lambda r: r.states(),
        labels=(Label.STATE,),
    ),
    FABRIC.gauge(
        "gpu_fabric_healthy",
        help="1 if the GPU joined the NVLink fabric and can use it in full.",
        unit=Unit.NONE,
        limits=FLAG,
        value=lambda r: r.healthy(),
    ),
    FABRIC.gauge(
        "gpu_fabric_fault",
        help="1 for each fault of the GPU's place in the NVLink fabric, 0 where there is none.",
        unit=Unit.NONE,
        limits=FLAG,
        value=lambda r: r.faults(),
        labels=(Label.KIND,),
    ),
)
