"""The fleet: all nodes of a scenario on one clock, and the truth about them."""

from pathlib import Path
from typing import Self

from simulator import reading
from simulator.clock import Clock, ManualClock
from simulator.faults import Injection
from simulator.node import SimulatedNode
from simulator.scenario import Fault, Scenario
from simulator.truth import Truth


class Fleet:
    """All nodes of a scenario on one clock.

    With a manual clock (the default) time stands still until ``advance_to``; with a
    ``RealTimeClock`` it runs by itself.
    """

    def __init__(self, scenario: Scenario, *, clock: Clock | None = None) -> None:
        self.scenario = scenario
        self.clock: Clock = clock or ManualClock()
        self.nodes = tuple(SimulatedNode(node, scenario, self.clock) for node in scenario.nodes)
        self.truth = Truth(self.nodes)

    @classmethod
    def load(cls, text: str, *, clock: Clock | None = None) -> Self:
        """Make a fleet from the YAML text of a scenario.

        Raises:
            ScenarioError: the text is not a valid scenario.
        """
        return cls(reading.parse(text), clock=clock)

    @classmethod
    def named(cls, name: Path | str, *, clock: Clock | None = None) -> Self:
        """Make a fleet from a scenario that is shipped, such as ``demo``, or from a file.

        Raises:
            ScenarioError: there is neither, or it is not a valid scenario.
        """
        return cls(reading.named(name), clock=clock)

    @property
    def now(self) -> float:
        """Seconds since the fleet began."""
        return self.clock.now()

    def advance_to(self, seconds: float) -> None:
        """Jump to a moment, however far away.

        Raises:
            TypeError: the fleet runs in real time.
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
            ScenarioError: the fault is impossible there.
        """
        return self.node(fault.node).inject(fault)

    def clear(self, injection: Injection | None = None) -> None:
        """End a fault now, or every fault of the fleet, those of the scenario included."""
        for node in self.nodes:
            if injection is None or node.name == injection.fault.node:
                node.clear(injection)
