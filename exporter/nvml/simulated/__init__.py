"""NVML over a simulated node: the whole protocol, without hardware.

It answers as the real driver does, refusals and blocking included; what a GPU answers at a moment
is the simulator's business. Like the real one it must not run on an event loop's thread, and says
so instead of stalling the loop.
"""

from exporter.nvml.simulated.library import SimulatedNvml as SimulatedNvml
