"""What a read is: from a handle to an outcome, keeping nothing.

It raises the binding's error for a call that failed; who called turns that into an outcome. What
needs a cursor or an earlier sample belongs to the session.
"""

from collections.abc import Callable
from typing import Any

from exporter.nvml.protocol import Outcome
from exporter.nvml.real.calls import Calls, Handle

# What a probe reads differs from probe to probe; the session gives the type back.
Read = Callable[[Calls, Handle], Outcome[Any]]
# By name of the probe.
Reads = dict[str, Read]
