"""GPM, the driver's counters of what parts of a GPU were busy, on Hopper and newer.

NVML takes samples of cumulative counters and answers with the mean between two of them; so does
this. How much of each part a load keeps busy is stated by its workload as a ``mix``.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial
from typing import Final

import numpy as np

from simulator.language import Mix
from simulator.load import IDLE, Signal, Times
from simulator.stage import MigDevice, Stage
from simulator.tabulation import summed
from simulator.timeline import GpuTimeline


class GpmQuantity(StrEnum):
    """What is counted: seconds of a part at full load, or bytes; rx is what the GPU receives."""

    GRAPHICS = "graphics"
    SM = "sm"
    OCCUPANCY = "occupancy"
    TENSOR = "tensor"
    INTEGER = "integer"
    FP64 = "fp64"
    FP32 = "fp32"
    FP16 = "fp16"
    DRAM = "dram"
    PCIE_RX = "pcie_rx"
    PCIE_TX = "pcie_tx"
    NVLINK_RX = "nvlink_rx"
    NVLINK_TX = "nvlink_tx"
    ENCODER = "encoder"
    DECODER = "decoder"
    JPEG = "jpeg"
    OFA = "ofa"


NVLINK: Final = frozenset({GpmQuantity.NVLINK_RX, GpmQuantity.NVLINK_TX})
# Of the board as a whole: no MIG device and no GPU in MIG mode counts them.
NOT_UNDER_MIG: Final = NVLINK | {
    GpmQuantity.ENCODER,
    GpmQuantity.DECODER,
    GpmQuantity.JPEG,
    GpmQuantity.OFA,
}
BYTES: Final = NVLINK | {GpmQuantity.PCIE_RX, GpmQuantity.PCIE_TX}
# In the order of every row of amounts.
QUANTITIES: Final = tuple(GpmQuantity)
IS_BYTES: Final = np.array([one in BYTES for one in QUANTITIES])
COUNTED_UNDER_MIG: Final = tuple(one for one in QUANTITIES if one not in NOT_UNDER_MIG)

# Of a load that a test has set, and nobody's workload explains.
UNEXPLAINED: Final = Mix()


@dataclass(frozen=True, slots=True, kw_only=True)
class GpmSample:
    """The counters at one moment.

    Attributes:
        at_us: CPU time, microseconds since 1970.
        totals: seconds or bytes since the fleet began; what is not supported is left out.
    """

    at_us: int
    totals: Mapping[GpmQuantity, float]

    def mean_since(self, earlier: "GpmSample") -> dict[GpmQuantity, float]:
        """Return ratios from 0 to 1 and bytes per second, from an earlier sample to this one.

        Raises:
            ValueError: the other one is not earlier.
        """
        seconds = (self.at_us - earlier.at_us) / 1e6
        if seconds <= 0:
            raise ValueError("the mean needs an earlier sample")
        both = self.totals.keys() & earlier.totals.keys()
        return {one: (self.totals[one] - earlier.totals[one]) / seconds for one in both}


class GpmCounters:
    """The counters of one GPU and its MIG devices."""

    def __init__(self, timeline: GpuTimeline) -> None:
        self._timeline = timeline

    def totals(self, at: float, device: MigDevice | None) -> dict[GpmQuantity, float]:
        """Return the counters of the GPU, or of a MIG device, at a moment."""
        stage = self._timeline.stage(at)
        counted = COUNTED_UNDER_MIG if stage.mig_enabled else QUANTITIES
        if stage.garbage:
            return dict.fromkeys(counted, math.nan)
        totals = self._totals(self._timeline.uuid if device is None else device.uuid, at)
        return {one: totals[one] for one in counted}

    def total(self, uuid: str, quantity: GpmQuantity, at: float) -> float:
        """Return the true seconds or bytes of the GPU or a MIG device since the beginning."""
        return self._totals(uuid, at)[quantity]

    def mean(self, uuid: str, quantity: GpmQuantity, begin: float, end: float) -> float:
        """Return the true mean ratio, or bytes per second, of the GPU or a MIG device."""
        return _named(self._amounts(uuid, begin, end))[quantity] / (end - begin)

    def _totals(self, uuid: str, at: float) -> dict[GpmQuantity, float]:
        row = self._timeline.since_start(("gpm", uuid), partial(self._amounts, uuid), at)
        return _named(row)

    def _amounts(self, uuid: str, begin: float, end: float) -> Times:
        """Return a row of all quantities, for which each load is integrated once."""
        row = np.zeros(len(QUANTITIES))
        for stage, times in self._timeline.pieces((begin, end)):
            for each, load in self._parts(stage, uuid):
                row += each * summed(load, times)[-1]
        return row

    def _parts(self, stage: Stage, uuid: str) -> Iterator[tuple[Times, Signal]]:
        """Yield loads, and how much of each quantity a second of them is.

        A MIG device has ratios of its own, but its bytes are its part of those of the board.
        """
        whole = uuid == self._timeline.uuid
        if whole and not stage.devices:
            yield from _of_device(stage, uuid)
        for device in stage.devices:
            if whole or uuid == device.uuid:
                share = device.profile.sm_count / self._timeline.model.sm_count
                scale = share if whole else np.where(IS_BYTES, share, 1.0)
                for each, load in _of_device(stage, device.uuid):
                    yield scale * each, load


def _of_device(stage: Stage, uuid: str) -> Iterator[tuple[Times, Signal]]:
    """Yield what the tenants of a device cause, as if it were a whole GPU."""
    shares = stage.tenants.get(uuid)
    if shares:
        yield from ((_row(one.mix), got) for one, got in shares.items())
    else:
        yield _row(UNEXPLAINED), stage.loads.get(uuid, IDLE)


@cache
def _row(mix: Mix) -> Times:
    """Return what a second at full load adds to each quantity."""
    ratios = (1.0 if one is GpmQuantity.GRAPHICS else getattr(mix, one) for one in QUANTITIES)
    return np.array(list(ratios), dtype=float)


def _named(row: Times) -> dict[GpmQuantity, float]:
    return dict(zip(QUANTITIES, row.tolist(), strict=True))
