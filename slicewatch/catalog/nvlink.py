"""The NVLinks of a board. A GPU in MIG mode has none, whatever is plugged in."""

from typing import Final

from slicewatch.catalog.model import COUNT, FLAG, Label, Limits, Probe, Scope, Unit
from slicewatch.catalog.readings.nvlink import NvlinkErrors, Nvlinks, NvlinkTraffic

BOARD: Final = frozenset({Scope.GPU})

# NVML numbers at most 36 of them.
LINKS: Final = Limits(low=0, high=64)
# Below every word for "not available" of a 32-bit counter, of which 0x7FFFFFF0 is the lowest.
ERRORS: Final = Limits(low=0, high=0x7FFFFFEF)

STATES: Final = Probe(
    name="nvlink",
    reading=Nvlinks,
    scopes=BOARD,
    interval_seconds=5,
    consistent=lambda r: r.consistent(),
)
TRAFFIC: Final = Probe(
    name="nvlink_traffic",
    reading=NvlinkTraffic,
    scopes=BOARD,
    interval_seconds=5,
    consistent=lambda r: r.consistent(),
)
# A dozen counters for each of up to 18 links.
ERROR_COUNTS: Final = Probe(
    name="nvlink_errors", reading=NvlinkErrors, scopes=BOARD, interval_seconds=10, optional=True
)

METRICS: Final = (
    STATES.gauge(
        "gpu_nvlink_links",
        help="NVLinks that the GPU has, connected or not.",
        unit=Unit.NONE,
        limits=LINKS,
        value=lambda r: len(r.states),
    ),
    STATES.gauge(
        "gpu_nvlink_active_links",
        help="NVLinks of the GPU that are up; on boards in an NVSwitch system all of them should be.",
        unit=Unit.NONE,
        limits=LINKS,
        value=lambda r: r.active(),
    ),
    STATES.gauge(
        "gpu_nvlink_up",
        help="1 while the NVLink is up, 0 while it is down or not connected.",
        unit=Unit.NONE,
        limits=FLAG,
        value=lambda r: r.by_link(),
        labels=(Label.LINK,),
        optional=True,
    ),
    TRAFFIC.counter(
        "gpu_nvlink_transmitted_bytes_total",
        help="Bytes that the GPU sent over all its NVLinks, without the protocol's part up to NVLink 4.",
        unit=Unit.BYTES,
        value=lambda r: r.transmitted_bytes(),
        limits=COUNT,
    ),
    TRAFFIC.counter(
        "gpu_nvlink_received_bytes_total",
        help="Bytes that the GPU received over all its NVLinks, without the protocol's part up to NVLink 4.",
        unit=Unit.BYTES,
        value=lambda r: r.received_bytes(),
        limits=COUNT,
    ),
    ERROR_COUNTS.counter(
        "gpu_nvlink_errors_total",
        help="Errors of the NVLink by kind, of which each generation of NVLink counts its own.",
        unit=Unit.NONE,
        limits=ERRORS,
        value=lambda r: r.by_link_and_kind(),
        labels=(Label.LINK, Label.KIND),
        optional=True,
    ),
)
