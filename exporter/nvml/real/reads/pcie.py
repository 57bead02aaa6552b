"""The PCIe link of a board."""

from functools import partial
from typing import Final

import pynvml

from exporter.nvml.protocol import Outcome, Value
from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.reads.parts import parts
from exporter.nvml.real.reads.read import Reads
from slicewatch.catalog.readings.pcie import PcieLink, PcieReplays, PcieThroughput

# In the order of the fields of PcieLink.
_OF_LINK: Final = (
    "nvmlDeviceGetCurrPcieLinkGeneration",
    "nvmlDeviceGetMaxPcieLinkGeneration",
    "nvmlDeviceGetGpuMaxPcieLinkGeneration",
    "nvmlDeviceGetCurrPcieLinkWidth",
    "nvmlDeviceGetMaxPcieLinkWidth",
)


def _link(calls: Calls, handle: Handle) -> Outcome[PcieLink]:
    found = parts(*(partial(calls.number, function, handle) for function in _OF_LINK))
    return Value(PcieLink(*found))


def _replays(calls: Calls, handle: Handle) -> Outcome[PcieReplays]:
    return Value(PcieReplays(calls.number("nvmlDeviceGetPcieReplayCounter", handle)))


def _throughput(calls: Calls, handle: Handle) -> Outcome[PcieThroughput]:
    measure = partial(calls.number, "nvmlDeviceGetPcieThroughput", handle)
    received, transmitted = pynvml.NVML_PCIE_UTIL_RX_BYTES, pynvml.NVML_PCIE_UTIL_TX_BYTES
    return Value(PcieThroughput(measure(received), measure(transmitted)))


BOARD: Final[Reads] = {
    "pcie_link": _link,
    "pcie_replays": _replays,
    "pcie_throughput": _throughput,
}
