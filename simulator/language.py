"""What the scenario language is made of: times, sizes, loads and what a load keeps busy."""

import msgspec

from simulator import load


class Seconds(float):
    """A time: a number of seconds, or text such as ``90s``, ``5m``, ``1h30m``, ``250ms``."""


class Bytes(int):
    """A size: a number of bytes, or text such as ``512MiB`` or ``40GiB``."""


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all parts of a scenario have in common: an unknown key is an error."""


class Step(Part, frozen=True, kw_only=True):
    """A level and when it begins."""

    at: Seconds
    level: float


class Wave(Part, frozen=True, kw_only=True):
    """A sine between two levels; ``phase`` is when it is at the low one."""

    low: float
    high: float
    period: Seconds
    phase: Seconds = Seconds(0)


class Load(Part, frozen=True, kw_only=True):
    """How busy something is over time: steps or a wave.

    Attributes:
        repeat: after how long the steps start over.
    """

    steps: tuple[Step, ...] | None = None
    wave: Wave | None = None
    repeat: Seconds | None = None

    def curve(self) -> load.Signal:
        """Return the load as a function of time."""
        if self.wave is not None:
            up = self.wave
            return load.wave(up.low, up.high, period=up.period, phase=up.phase)
        return load.steps([(s.at, s.level) for s in self.steps or ()], period=self.repeat)


class Mix(Part, frozen=True, kw_only=True):
    """What parts of a GPU a load keeps busy, relative to the load itself.

    Attributes:
        pcie_rx, pcie_tx, nvlink_rx, nvlink_tx: bytes per second at a load of 1; rx is what the
            GPU receives.
    """

    sm: float = 0.8
    occupancy: float = 0.35
    tensor: float = 0.3
    integer: float = 0.1
    fp64: float = 0.0
    fp32: float = 0.2
    fp16: float = 0.1
    dram: float = 0.4
    encoder: float = 0.0
    decoder: float = 0.0
    jpeg: float = 0.0
    ofa: float = 0.0
    pcie_rx: Bytes = Bytes(1_200_000_000)
    pcie_tx: Bytes = Bytes(400_000_000)
    nvlink_rx: Bytes = Bytes(0)
    nvlink_tx: Bytes = Bytes(0)
