"""Which devices exist, whether they answer, and what they cannot report."""

from typing import Final

from slicewatch.catalog.model import COUNT, FLAG, Derived, Label, Scope, Unit
from slicewatch.wire.layout import Device

PRESENCE: Final = Derived(name="presence", reading=bool, scopes=frozenset({Scope.GPU}))
SOURCE: Final = Derived(name="source", reading=str, scopes=frozenset({Scope.GPU, Scope.MIG}))
AGE: Final = Derived(name="age", reading=float, scopes=frozenset({Scope.GPU, Scope.MIG}))
GPU: Final = Derived(name="gpu", reading=Device, scopes=frozenset({Scope.GPU}))
MIG: Final = Derived(name="mig", reading=Device, scopes=frozenset({Scope.MIG}))
SUPPORT: Final = Derived(name="support", reading=str, scopes=frozenset({Scope.GPU, Scope.MIG}))

UP: Final = PRESENCE.gauge(
    "gpu_up",
    help="1 while the GPU answers, 0 while it is lost, hangs or needs a reset.",
    unit=Unit.NONE,
    limits=FLAG,
    value=float,
    core=True,
)
READING_AGE: Final = AGE.gauge(
    "gpu_reading_age_seconds",
    help="Time since the device was last read.",
    unit=Unit.SECONDS,
    limits=COUNT,
    value=float,
    core=True,
)

METRICS: Final = (
    UP,
    READING_AGE,
    SOURCE.info(
        "gpu_metric_source_info",
        help="A metric of the device that comes from another source than NVML.",
        labels=(Label.METRIC, Label.SOURCE),
    ),
    GPU.info(
        "gpu_info",
        help="Identity of the GPU, as needed for a repair.",
        labels=(Label.PCI_BUS_ID, Label.SERIAL, Label.BOARD, Label.VBIOS, Label.DRIVER),
    ),
    MIG.info(
        "gpu_mig_info",
        help="Place and size of the MIG instance: first memory slice and slice count, SMs.",
        labels=(Label.PLACEMENT, Label.SM_COUNT),
    ),
    SUPPORT.gauge(
        "gpu_metric_supported",
        help="0, with the reason, for each metric that the device cannot report.",
        unit=Unit.NONE,
        limits=FLAG,
        value=lambda reason: float(not reason),
        labels=(Label.METRIC, Label.REASON),
        core=True,
    ),
)
