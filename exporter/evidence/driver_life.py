"""How NVML stands: started or not, since when, and how often it was started."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from exporter.nvml.protocol import Driver, Failed, Slot, Value
from slicewatch.wire import evidence as wire

_NO_DRIVER: Final = Driver(driver="", nvml="", cuda="")


class DriverLife:
    """Told by whoever starts NVML, on the event loop.

    Attributes:
        refusals: by index of the last enumeration, why no GPU said who it is there, in one word.
    """

    def __init__(self, down: str, now: float) -> None:
        self._down = down
        self._since = now
        self._starts = 0
        self._driver = _NO_DRIVER
        self.refusals: Mapping[int, str] = MappingProxyType({})

    def begin(self, driver: Driver, slots: Iterable[Slot]) -> None:
        """NVML was started."""
        self._starts += 1
        self._driver = driver
        refused = ((s.index, s.gpu) for s in slots if not isinstance(s.gpu, Value))
        self.refusals = {
            index: gpu.error.lower() if isinstance(gpu, Failed) else gpu.reason
            for index, gpu in refused
        }

    def observe(self, down: str, now: float) -> None:
        """Take, with every tick, why NVML is not started; empty while it is."""
        if down != self._down:
            self._down, self._since = down, now

    def on_wire(self, now: float) -> wire.Driver:
        """Return what is known of it."""
        return wire.Driver(
            down=self._down,
            seconds=round(now - self._since, 3),
            starts=self._starts,
            version=self._driver.driver,
            nvml=self._driver.nvml,
            cuda=self._driver.cuda,
        )
