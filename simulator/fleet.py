"""The fleet: all nodes of a scenario on one clock, and the truth about them."""

from pathlib import Path
from typing import Self

from simulator import reading
from simulator.clock import Clock, ManualClock
from simulator.faults import Injection
from simulator.node import SimulatedNode
from simulator.scenario import Fault, Scenario
from simulator.tenancy import Tenancy, tenancies
from simulator.truth import Truth


class Fleet:
    """All nodes of a scenario on one clock.

    With a manual clock (the default) time stands still until ``advance_to``; with a
    ``RealTimeClock`` it runs by itself.
    """

    def __init__(self, scenario: Scenario, *, clock: Clock | None = None) -> None:
        self.scenario = scenario
        self.clock: Clock = clock or ManualClock()
        held: dict[str, dict[int, list[Tenancy]]] = {}
        for (node, gpu), found in tenancies(scenario).items():
            held.setdefault(node, {})[gpu] = found
        self.nodes = tuple(
            SimulatedNode(node, scenario, held.get(node.name, {}), self.clock)
            for node in scenario.nodes
        )
        self.truth = Truth(self.nodes)

    @classmethod
    def load(cls, source: Path | str, *, clock: Clock | None = None) -> Self:
        """Make a fleet from a scenario file (a path), or from YAML text (a string).

        Raises:
            ScenarioError: the scenario cannot be read or describes no possible fleet.
        """
        return cls(reading.load(source), clock=clock)

    @classmethod
    def named(cls, name: Path | str, *, clock: Clock | None = None) -> Self:
        """Make a fleet from a scenario that comes with this project, such as ``demo``, or a file.

        Raises:
            ScenarioError: there is neither, or it describes no possible fleet.
        """
        return cls(reading.named(name), clock=clock)

    @property
    def now(self) -> float:
        """Seconds since the fleet began."""
        return self.clock.now()

    def advance_to(self, seconds: float) -> None:
        """Jump to a moment, however far away.

        Raises:
            TypeError: the fleet runs on a clock of its own.
            ValueError: the moment is in the past.
        """
        if not isinstance(self.clock, ManualClock):
            raise TypeError("only a fleet on a ManualClock can be moved; this one moves by itself")
        self.clock.advance_to(seconds)

    def node(self, name: str) -> SimulatedNode:
        """Return the node of that name.

        Raises:
            KeyError: there is none.
        """
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(f"no node {name!r}; there are {', '.join(n.name for n in self.nodes)}")

    def inject(self, fault: Fault) -> Injection:
        """Let a fault happen on its node; its times count from now.

        Raises:
            KeyError: there is no such node.
            ScenarioError: the fault is not possible there.
        """
        return self.node(fault.node).inject(fault)

    def clear(self, injection: Injection | None = None) -> None:
        """End a fault now, or every fault of the fleet, those of the scenario included."""
        for node in self.nodes:
            if injection is None or node.name == injection.fault.node:
                node.clear(injection)
