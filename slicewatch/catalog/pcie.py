"""The PCIe link of a board.

The driver's byte counters (fields 197 and 198) are left out on purpose: they have 32 bits, which a
fast link fills several times between two reads, so no rate can be had from them. Hopper and newer
boards have the rate from GPM; any board has it from a measurement that its reader waits for.
"""

from typing import Final

from slicewatch.catalog.model import Label, Limits, Probe, Scope, Unit
from slicewatch.catalog.readings.pcie import PcieLink, PcieReplays, PcieThroughput

BOARD: Final = frozenset({Scope.GPU})

# There are seven generations, of which GPUs have six, and no slot has more lanes.
GENERATIONS: Final = Limits(low=1, high=16)
LANES: Final = Limits(low=1, high=32)
# Below every word for "not available" of a 32-bit counter, of which 0x7FFFFFF0 is the lowest.
REPLAYS: Final = Limits(low=0, high=0x7FFFFFEF)
# Twice of what sixteen lanes of the seventh generation carry.
THROUGHPUT: Final = Limits(low=0, high=512e9)

LINK: Final = Probe(name="pcie_link", reading=PcieLink, scopes=BOARD, interval_seconds=10)
REPLAY: Final = Probe(name="pcie_replays", reading=PcieReplays, scopes=BOARD, interval_seconds=10)
# The driver measures for 20 ms a direction, and the call does not return before.
THROUGHPUTS: Final = Probe(
    name="pcie_throughput",
    reading=PcieThroughput,
    scopes=BOARD,
    interval_seconds=15,
    optional=True,
)

METRICS: Final = (
    LINK.gauge(
        "gpu_pcie_link_generation",
        help="PCIe generation of the link, which drops while idle, its maximum, the GPU's own.",
        unit=Unit.NONE,
        limits=GENERATIONS,
        value=lambda r: r.generations(),
        labels=(Label.STATE,),
    ),
    LINK.gauge(
        "gpu_pcie_link_width",
        help="Lanes of the PCIe link: now, and at most for this GPU in this slot.",
        unit=Unit.NONE,
        limits=LANES,
        value=lambda r: r.widths(),
        labels=(Label.STATE,),
    ),
    REPLAY.counter(
        "gpu_pcie_replays_total",
        help="PCIe packets that were sent again since the receiver did not acknowledge them.",
        unit=Unit.NONE,
        limits=REPLAYS,
        value=lambda r: r.count,
    ),
    THROUGHPUTS.gauge(
        "gpu_pcie_throughput_bytes_per_second",
        help="Bytes per second over PCIe as seen by the GPU, measured for 20 ms every 15 s.",
        unit=Unit.BYTES_PER_SECOND,
        limits=THROUGHPUT,
        value=lambda r: r.bytes_per_second(),
        labels=(Label.DIRECTION,),
    ),
)
