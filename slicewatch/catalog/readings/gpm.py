"""What parts of a GPU were busy between two samples of its counters (GPM, Hopper and newer)."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

import msgspec

MEBIBYTE: Final = 2**20
# The driver counts and measures time with two clocks: what is busy all the time comes out a hair
# above 100. What is further above is no percentage.
ROUNDED_PERCENT: Final = 100.1


class GpmMetric(IntEnum):
    """The metrics that we ask for, by NVML's numbers (``nvmlGpmMetricId_t``)."""

    GRAPHICS = 1
    SM = 2
    OCCUPANCY = 3
    INTEGER = 4
    TENSOR = 5
    DFMA = 6
    HMMA = 7
    DMMA = 8
    IMMA = 9
    DRAM = 10
    FP64 = 11
    FP32 = 12
    FP16 = 13
    PCIE_TRANSMIT = 20
    PCIE_RECEIVE = 21
    NVDEC_0 = 30
    NVDEC_1 = 31
    NVDEC_2 = 32
    NVDEC_3 = 33
    NVDEC_4 = 34
    NVDEC_5 = 35
    NVDEC_6 = 36
    NVDEC_7 = 37
    NVJPG_0 = 40
    NVJPG_1 = 41
    NVJPG_2 = 42
    NVJPG_3 = 43
    NVJPG_4 = 44
    NVJPG_5 = 45
    NVJPG_6 = 46
    NVJPG_7 = 47
    NVOFA_0 = 50
    NVOFA_1 = 51
    NVLINK_RECEIVE = 60
    NVLINK_TRANSMIT = 61


class Gpm(msgspec.Struct, frozen=True, gc=False):
    """Means between two samples, in NVML's units: percent of the time, or MiB per second.

    Attributes:
        values: without the metrics that the driver does not answer; empty while there is only
            one sample.
    """

    values: Mapping[GpmMetric, float]

    def percent(self, metric: GpmMetric) -> float | None:
        """Return a metric that is a percentage, None where it is not known."""
        value = self.values.get(metric)
        return 100.0 if value is not None and 100 < value <= ROUNDED_PERCENT else value

    def ratio(self, metric: GpmMetric) -> float | None:
        """Return a metric that is a percentage, as a ratio."""
        value = self.values.get(metric)
        if value is None:
            return None
        return 1.0 if 100 < value <= ROUNDED_PERCENT else value / 100

    def bytes_per_second(self, metric: GpmMetric) -> float | None:
        """Return a metric that is a rate of transfer."""
        value = self.values.get(metric)
        return None if value is None else value * MEBIBYTE
