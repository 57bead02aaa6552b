"""Which devices exist, whether they answer, and what they cannot report."""

from typing import Final

from slicewatch.catalog.model import FLAG, Derived, Label, Scope, Unit
from slicewatch.wire.layout import Device

PRESENCE: Final = Derived(name="presence", reading=bool, scopes=frozenset({Scope.GPU}))
GPU: Final = Derived(name="gpu", reading=Device, scopes=frozenset({Scope.GPU}))
MIG: Final = Derived(name="mig", reading=Device, scopes=frozenset({Scope.MIG}))
SUPPORT: Final = Derived(name="support", reading=str, scopes=frozenset({Scope.GPU, Scope.MIG}))

METRICS: Final = (
    PRESENCE.gauge(
        "gpu_up",
        help="1 while the GPU answers, 0 while it is lost, hangs or needs a reset.",
        unit=Unit.NONE,
        limits=FLAG,
        value=float,
        core=True,
    ),
    GPU.info(
        "gpu_info",
        help="Identity of the GPU, as needed for a repair.",
        labels=(Label.PCI_BUS_ID, Label.SERIAL, Label.BOARD, Label.VBIOS, Label.DRIVER),
    ),
    MIG.info(
        "gpu_mig_info",
        help="Placement of the MIG instance: first memory slice and slice count.",
        labels=(Label.PLACEMENT,),
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
