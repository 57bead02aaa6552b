"""What a simulated read is: from a GPU, or one of its MIG devices, to a reading.

A board that lacks something answers ``Unsupported``, as its driver would.
"""

from collections.abc import Callable, Mapping
from typing import Any

from simulator.gpu import SimulatedGpu
from simulator.timeline import MigDevice

# By name of the probe. A reading's type differs from probe to probe.
BoardReads = Mapping[str, Callable[[SimulatedGpu], Any]]
InstanceReads = Mapping[str, Callable[[SimulatedGpu, MigDevice], Any]]
