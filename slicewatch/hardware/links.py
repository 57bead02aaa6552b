"""How a board of each model is connected: its PCIe link, and its NVLinks.

Sources: NVIDIA's data sheets, and ``nvidia-smi`` listings that users published. Where a model comes
in several forms, that of the most common one: with SXM sockets, all of its links go to others.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardLinks:
    """Links of one model.

    Attributes:
        pcie_generation: of the board, in a slot that has it too.
        nvlinks: how many the board has; 0 for one without NVLink.
        nvlink_generation: what they speak.
    """

    pcie_generation: int
    pcie_width: int = 16
    nvlinks: int = 0
    nvlink_generation: int = 0


V100_SXM2: Final = BoardLinks(pcie_generation=3, nvlinks=6, nvlink_generation=2)
T4: Final = BoardLinks(pcie_generation=3)
A30: Final = BoardLinks(pcie_generation=4, nvlinks=4, nvlink_generation=3)
A100_SXM4: Final = BoardLinks(pcie_generation=4, nvlinks=12, nvlink_generation=3)
L40S: Final = BoardLinks(pcie_generation=4)
RTX4090: Final = BoardLinks(pcie_generation=4)
H100_SXM5: Final = BoardLinks(pcie_generation=5, nvlinks=18, nvlink_generation=4)
H200: Final = H100_SXM5
B200: Final = BoardLinks(pcie_generation=5, nvlinks=18, nvlink_generation=5)
