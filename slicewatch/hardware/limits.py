"""What a board of each model can bear, and what bears it: heat, power, clocks, fans.

Sources: published listings of ``nvidia-smi -q`` for the thresholds and lowest power limits of V100,
A100, RTX 4090 and H100, and for the video clocks of A100 and H100. There was none at hand for the
rest: A30 has the thresholds of A100, H200 and B200 have all of H100, and T4, L40S and the other
video clocks are approximate. Boards from Ada on state margins; their maximum is the temperature at
which a margin was read plus that margin.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardLimits:
    """Limits of one model.

    Attributes:
        gpu_max_celsius: from here on the driver slows the clocks down.
        slowdown_celsius: from here on the hardware does, by half or more.
        shutdown_celsius: from here on the board turns itself off.
        memory_max_celsius: of the memory; None where its temperature is not measured.
        min_power_watts: the lowest power limit that can be set.
        max_video_clock_mhz: of the encoders and decoders.
        fans: that the board controls itself; 0 for one that is cooled by its server.
    """

    gpu_max_celsius: int
    slowdown_celsius: int
    shutdown_celsius: int
    memory_max_celsius: int | None
    min_power_watts: float
    max_video_clock_mhz: int
    fans: int = 0


V100_32GB: Final = BoardLimits(
    gpu_max_celsius=83, slowdown_celsius=87, shutdown_celsius=90, memory_max_celsius=85,
    min_power_watts=150, max_video_clock_mhz=1372,
)  # fmt: skip
T4: Final = BoardLimits(
    gpu_max_celsius=85, slowdown_celsius=93, shutdown_celsius=96, memory_max_celsius=None,
    min_power_watts=60, max_video_clock_mhz=1470,
)  # fmt: skip
A30: Final = BoardLimits(
    gpu_max_celsius=85, slowdown_celsius=89, shutdown_celsius=92, memory_max_celsius=95,
    min_power_watts=100, max_video_clock_mhz=1305,
)  # fmt: skip
A100: Final = BoardLimits(
    gpu_max_celsius=85, slowdown_celsius=89, shutdown_celsius=92, memory_max_celsius=95,
    min_power_watts=100, max_video_clock_mhz=1290,
)  # fmt: skip
L40S: Final = BoardLimits(
    gpu_max_celsius=88, slowdown_celsius=90, shutdown_celsius=93, memory_max_celsius=None,
    min_power_watts=100, max_video_clock_mhz=1965,
)  # fmt: skip
RTX4090: Final = BoardLimits(
    gpu_max_celsius=82, slowdown_celsius=84, shutdown_celsius=89, memory_max_celsius=None,
    min_power_watts=150, max_video_clock_mhz=2415, fans=2,
)  # fmt: skip
H100: Final = BoardLimits(
    gpu_max_celsius=87, slowdown_celsius=89, shutdown_celsius=95, memory_max_celsius=95,
    min_power_watts=200, max_video_clock_mhz=1545,
)  # fmt: skip
H200: Final = H100
B200: Final = H200
