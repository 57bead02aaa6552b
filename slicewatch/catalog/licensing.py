"""The license of a virtual GPU, as the guest sees it that has the GPU."""

from typing import Final

from slicewatch.catalog.model import FLAG, Label, Limits, Probe, Scope, Unit
from slicewatch.catalog.readings.licensing import GuestLicense

# From 2000 to 2200.
TIMES: Final = Limits(low=946_684_800, high=7_258_118_400)

GUEST_LICENSE: Final = Probe(
    name="guest_license",
    reading=GuestLicense,
    scopes=frozenset({Scope.GPU}),
    interval_seconds=60,
)

METRICS: Final = (
    GUEST_LICENSE.gauge(
        "gpu_license_state",
        help="1 for the state of the license that this virtual machine has for its vGPU, 0 for the others.",
        unit=Unit.NONE,
        limits=FLAG,
        value=lambda r: r.states(),
        labels=(Label.STATE,),
    ),
    GUEST_LICENSE.gauge(
        "gpu_license_expiry_timestamp_seconds",
        help="Time at which the license of this virtual machine's vGPU expires.",
        unit=Unit.SECONDS,
        limits=TIMES,
        value=lambda r: r.expiry_seconds,
    ),
)
