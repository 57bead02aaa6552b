"""The links of one simulated GPU: PCIe, and the NVLinks to its neighbours.

Bytes follow from what the workloads say that they move; everything that goes wrong is counted from
the story, and so stays when the fault that caused it is cleared.
"""

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from simulator import garbage
from simulator.clock import Clock
from simulator.driver import Driver
from simulator.faults import Story
from simulator.gpm import GpmCounters, GpmQuantity
from simulator.load import value_at
from simulator.scenario import GpuFault, NvlinkDown, NvlinkTrouble, PcieDegraded, PcieReplays
from simulator.timeline import GpuTimeline
from slicewatch.catalog.readings.nvlink import (
    KIBIBYTE,
    NvlinkError,
    NvlinkErrors,
    Nvlinks,
    NvlinkTraffic,
)
from slicewatch.catalog.readings.pcie import PcieLink, PcieThroughput
from slicewatch.catalog.readings.pcie import PcieReplays as Replays
from slicewatch.hardware import GpuModel
from slicewatch.hardware.links import BoardLinks

# As long as the driver measures the throughput of PCIe.
MEASURING_SECONDS: Final = 0.02
# A card lets its link fall to the first generation while it idles; boards in sockets do not.
IDLE_GENERATION: Final = 1
LINKS_WITH_CRC_BY_PART: Final = 12
NVLINK_5: Final = 5

_BY_PART: Final = frozenset({NvlinkError.CRC_FLIT, NvlinkError.CRC_DATA})
_BEFORE_5: Final = _BY_PART | {NvlinkError.REPLAY, NvlinkError.CRC, NvlinkError.RECOVERY}
_SINCE_5: Final = frozenset(NvlinkError) - _BEFORE_5 | {NvlinkError.RECOVERY}

R = TypeVar("R", bound=msgspec.Struct)
F = TypeVar("F", bound=GpuFault)


def counted_errors(links: BoardLinks, link: int) -> frozenset[NvlinkError]:
    """Return which kinds of errors a link of a board counts."""
    if links.nvlink_generation >= NVLINK_5:
        return _SINCE_5
    return _BEFORE_5 if link < LINKS_WITH_CRC_BY_PART else _BEFORE_5 - _BY_PART


class Links:
    """What one GPU tells of its links. Computed when read, on any thread.

    Of NVLink, None is what the board does not have; in MIG mode nobody asks.
    """

    def __init__(
        self,
        model: GpuModel,
        story: Story,
        timeline: GpuTimeline,
        *,
        clock: Clock,
        driver: Callable[[float], Driver],
    ) -> None:
        self._links = model.links
        self._story = story
        self._timeline = timeline
        self._gpm = GpmCounters(timeline)
        self._clock = clock
        self._driver = driver

    def pcie_link(self) -> PcieLink:
        """Return what the PCIe link is now, and what it could be."""
        generation, width = self._links.pcie_generation, self._links.pcie_width
        now = self._clock.now()
        idle = value_at(self._timeline.stage(now).work, now) == 0
        wrong = [fault for fault in self._current() if isinstance(fault, PcieDegraded)]
        generations = [generation, *(fault.generation for fault in wrong if fault.generation)]
        if idle and not self._links.nvlinks:
            generations.append(IDLE_GENERATION)
        return self._shown(
            PcieLink(
                generation=min(generations),
                max_generation=generation,
                gpu_max_generation=generation,
                width=min([width, *(fault.width for fault in wrong if fault.width)]),
                max_width=width,
            )
        )

    def pcie_replays(self) -> Replays:
        """Return how many packets were sent again since the driver was loaded."""
        begun = self._begun(PcieReplays)
        return self._shown(Replays(sum(fault.packets * times for fault, times in begun)))

    def pcie_throughput(self) -> PcieThroughput:
        """Return what went over PCIe in the last 20 ms; before that, nothing did."""
        return self._shown(
            PcieThroughput(
                received_kilobytes_per_second=self._kilobytes(GpmQuantity.PCIE_RX),
                transmitted_kilobytes_per_second=self._kilobytes(GpmQuantity.PCIE_TX),
            )
        )

    def nvlinks(self) -> Nvlinks | None:
        """Return which NVLinks are up."""
        if not self._links.nvlinks:
            return None
        down = {fault.link for fault in self._current() if isinstance(fault, NvlinkDown)}
        states = tuple(int(link not in down) for link in range(self._links.nvlinks))
        return self._shown(Nvlinks(states))

    def nvlink_traffic(self) -> NvlinkTraffic | None:
        """Return what went over NVLink since the driver was loaded; the links share it evenly."""
        links = self._links.nvlinks
        if not links:
            return None
        sent, came = self._moved(GpmQuantity.NVLINK_TX), self._moved(GpmQuantity.NVLINK_RX)
        if self._links.nvlink_generation >= NVLINK_5:
            each = (int(sent / links),) * links, (int(came / links),) * links
            return self._shown(NvlinkTraffic(None, None, *each))
        nothing = (None,) * links
        total = int(sent / KIBIBYTE), int(came / KIBIBYTE)
        return self._shown(NvlinkTraffic(*total, nothing, nothing))

    def nvlink_errors(self) -> NvlinkErrors | None:
        """Return the errors of each NVLink since the driver was loaded."""
        if not self._links.nvlinks:
            return None
        happened: dict[tuple[int, NvlinkError], int] = {}
        for fault, times in self._begun(NvlinkTrouble):
            key = (fault.link, fault.error)
            happened[key] = happened.get(key, 0) + fault.errors * times
        counts = []
        for link in range(self._links.nvlinks):
            counted = counted_errors(self._links, link)
            counts.append(
                tuple(happened.get((link, e), 0) if e in counted else None for e in NvlinkError)
            )
        return self._shown(NvlinkErrors(tuple(counts)))

    def _kilobytes(self, quantity: GpmQuantity) -> int:
        now = self._clock.now()
        begin = max(0.0, now - MEASURING_SECONDS)
        if begin == now:
            return 0
        return round(self._gpm.mean(self._timeline.uuid, quantity, begin, now) / 1000)

    def _moved(self, quantity: GpmQuantity) -> float:
        now, uuid = self._clock.now(), self._timeline.uuid
        loaded_at = self._driver(now).loaded_at
        total = self._gpm.total
        return total(uuid, quantity, now) - total(uuid, quantity, loaded_at)

    def _begun(self, kind: type[F]) -> list[tuple[F, int]]:
        now = self._clock.now()
        with self._timeline.changed:
            loaded_at = self._driver(now).loaded_at
            return self._story.begun(kind, self._timeline.index, loaded_at, now)

    def _current(self) -> list[object]:
        with self._timeline.changed:
            return [*self._story.current(self._clock.now(), self._timeline.index)]

    def _shown(self, reading: R) -> R:
        stage = self._timeline.stage(self._clock.now())
        return garbage.instead_of(reading) if stage.garbage else reading
