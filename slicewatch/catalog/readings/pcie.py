"""The PCIe link of a board: what was negotiated, what went wrong on it, what goes over it."""

import msgspec


class PcieLink(msgspec.Struct, frozen=True, gc=False):
    """Generations and lane counts of a link; None for what is not stated.

    Attributes:
        max_generation, max_width: what board and slot have in common.
        gpu_max_generation: what the board would have in any slot.
    """

    generation: int | None
    max_generation: int | None
    gpu_max_generation: int | None
    width: int | None
    max_width: int | None

    def generations(self) -> dict[str, float | None]:
        """Return the generation now, at most in this slot, and at most in any."""
        return {
            "current": self.generation,
            "max": self.max_generation,
            "gpu_max": self.gpu_max_generation,
        }

    def widths(self) -> dict[str, float | None]:
        """Return the number of lanes now, and at most in this slot."""
        return {"current": self.width, "max": self.max_width}


class PcieReplays(msgspec.Struct, frozen=True, gc=False):
    """Packets that were sent again."""

    count: int


class PcieThroughput(msgspec.Struct, frozen=True, gc=False):
    """What went over the link in 20 ms, each direction measured after the other."""

    received_kilobytes_per_second: int
    transmitted_kilobytes_per_second: int

    def bytes_per_second(self) -> dict[str, float]:
        """Return bytes per second by direction, as the GPU sees it."""
        return {
            "receive": 1000 * self.received_kilobytes_per_second,
            "transmit": 1000 * self.transmitted_kilobytes_per_second,
        }
