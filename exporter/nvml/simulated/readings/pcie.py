"""The PCIe link of a board."""

from typing import Final

from exporter.nvml.simulated.readings.read import BoardReads

BOARD: Final[BoardReads] = {
    "pcie_link": lambda gpu: gpu.links.pcie_link(),
    "pcie_replays": lambda gpu: gpu.links.pcie_replays(),
    "pcie_throughput": lambda gpu: gpu.links.pcie_throughput(),
}
