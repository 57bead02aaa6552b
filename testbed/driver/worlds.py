"""A simulated node as a test sees it: through the simulated NVML, or through the real one.

Both stand on the same node and the same manual clock, so that one suite can ask both the same.
"""

from collections.abc import Callable
from pathlib import Path

import pynvml

from exporter.nvml.protocol import Nvml, Session, Value
from exporter.nvml.real import RealNvml
from exporter.nvml.simulated import SimulatedNvml
from simulator.clock import ManualClock
from simulator.faults import Injection
from simulator.fleet import Fleet
from simulator.node import SimulatedNode
from simulator.scenario import Fault
from testbed.binaries import Unavailable
from testbed.driver.answers import Answers
from testbed.driver.feeder import DriverFeed
from testbed.driver.loaded import LoadedDriver
from testbed.driver.state import CALLS, GpuState


class World:
    """A node, the NVML that shows it, and what can be done to it.

    Attributes:
        show: brings NVML up to date; called after every change.
    """

    def __init__(self, fleet: Fleet, nvml: Nvml, show: Callable[[], None]) -> None:
        self.fleet = fleet
        self.nvml = nvml
        self.show = show

    @property
    def node(self) -> SimulatedNode:
        """The first node of the fleet."""
        return self.fleet.nodes[0]

    def advance(self, seconds: float) -> None:
        """Let that much time pass."""
        self.fleet.advance_to(self.fleet.now + seconds)
        self.show()

    def inject(self, fault: Fault) -> Injection:
        """Let a fault happen a moment from now."""
        self.advance(0.001)
        injection = self.fleet.inject(fault)
        self.show()
        return injection

    def clear(self, injection: Injection | None = None) -> None:
        """End a fault, or all of them."""
        self.fleet.clear(injection)
        self.show()

    def session(self, gpu: int) -> Session:
        """Open the GPU at an index, which must answer."""
        found = self.nvml.identify(gpu)
        if not isinstance(found, Value):
            raise TypeError(f"GPU {gpu} cannot be opened: {found}")
        return self.nvml.open(found.value)


class DriverWorld(World):
    """The world behind the driver's library, with what only that has.

    Attributes:
        driver: the library in this process.
        feed: what keeps its state in step with the node.

    Raises:
        Unavailable: the library cannot be built, or NVIDIA's own was loaded before it.
    """

    def __init__(self, fleet: Fleet, state: Path) -> None:
        self.driver = LoadedDriver()
        self.feed = DriverFeed(fleet.nodes[0], state)
        self.driver.attach(state)

        def nanoseconds() -> int:
            return 1000 * fleet.clock.epoch_us + round(1e9 * fleet.now)

        super().__init__(fleet, RealNvml(nanoseconds, nanoseconds), self.feed.refresh)
        _require_ours()

    def alter(self, gpu: int, change: Callable[[GpuState], None] | None) -> None:
        """Change what the driver holds for what a GPU is; None for what the node says."""
        self.feed.alter(gpu, change)
        self.show()

    def answer(self, gpu: int, change: Callable[[Answers], None] | None) -> None:
        """Change what the driver answers for a GPU; None for what the node says."""
        self.feed.answer(gpu, change)
        self.show()

    def fail(self, gpu: int, **errors: int) -> None:
        """Let calls on a GPU fail, by the name of the entry point, with an nvmlReturn_t."""

        def change(state: GpuState) -> None:
            for name, error in errors.items():
                state.call_errors[CALLS.index(name)] = error

        self.alter(gpu, change)


def simulated_world(scenario: str) -> World:
    """Return the first node of a scenario through the simulated NVML, not started."""
    fleet = Fleet.load(scenario, clock=ManualClock())
    return World(fleet, SimulatedNvml(fleet.nodes[0]), lambda: None)


def driver_world(scenario: str, state: Path) -> DriverWorld:
    """Return the first node of a scenario through the driver's library, not started.

    Raises:
        Unavailable: as for ``DriverWorld``.
    """
    return DriverWorld(Fleet.load(scenario, clock=ManualClock()), state)


def _require_ours() -> None:
    library = pynvml.nvmlLib
    if library is not None and not hasattr(library, "slicewatchReferences"):
        raise Unavailable("this process has NVIDIA's own driver loaded; run these tests alone")
