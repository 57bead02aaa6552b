"""What drivers report when it happens. Counted from then on, never reset while the process lives.

An event belongs to one row: of the MIG instance that the driver attributes it to, else of the GPU.
"""

from typing import Final

from slicewatch.catalog.model import COUNT, Derived, Kind, Label, Scope, Unit
from slicewatch.catalog.own import EXPORTER
from slicewatch.catalog.readings.events import DeviceEvents

EVENTS: Final = Derived(
    name="events", reading=DeviceEvents, scopes=frozenset({Scope.GPU, Scope.MIG})
)

LISTENING: Final = EXPORTER.metric(
    Kind.GAUGE,
    "slicewatch_events_listening",
    help="1 while the driver reports events of the GPUs to the exporter, or 0 with the reason.",
    labels=(Label.REASON,),
)
DROPPED: Final = EXPORTER.metric(
    Kind.COUNTER,
    "slicewatch_events_dropped_total",
    help="Events of GPUs that are counted nowhere: too many at once, or of no known GPU.",
)

OF_DEVICES: Final = (
    EVENTS.counter(
        "gpu_xid_events_total",
        help="Xids of all numbers that the driver reported since the exporter has listened.",
        unit=Unit.NONE,
        value=lambda r: r.all_xids(),
    ),
    EVENTS.counter(
        "gpu_xid_errors_total",
        help="Xids by number that the driver reported since the exporter has listened.",
        unit=Unit.NONE,
        value=lambda r: r.by_number(),
        labels=(Label.XID,),
    ),
    EVENTS.gauge(
        "gpu_xid_last_seen_timestamp_seconds",
        help="When the Xid was last reported, in seconds since 1970.",
        unit=Unit.SECONDS,
        limits=COUNT,
        value=lambda r: r.last_seen(),
        labels=(Label.XID,),
    ),
    EVENTS.counter(
        "gpu_ecc_events_total",
        help="Reports of memory errors by kind, each of which may stand for several errors.",
        unit=Unit.NONE,
        value=lambda r: r.ecc,
        labels=(Label.KIND,),
    ),
)
METRICS: Final = (*OF_DEVICES, LISTENING, DROPPED)
