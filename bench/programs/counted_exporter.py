"""The exporter's own process, from its entry point on, that also answers how much it used.

Beside what runs in production there is one thread, which sleeps until it is asked. One thing is
not as in production: where a tick is shorter than a second it stands for a second all the same,
so that what is read every five seconds is read every five ticks, and a minute passes in less.
"""

import os
import sys
from typing import Final

from bench.programs.counting import Counting
from exporter.main import run
from exporter.nvml import gpm, reader
from exporter.tenants.processes import HostProcesses
from testbed.driver.loaded import LoadedDriver

PROC: Final = "BENCH_PROC"
TICK_SECONDS: Final = "BENCH_TICK_SECONDS"


class HastyAgenda(reader.Agenda):
    """Asks as often as if each tick were a second."""

    times = 1.0 / float(os.environ.get(TICK_SECONDS, "1"))

    def due(self, now: float) -> reader.Asked:
        """Return what is due at a moment, which is taken for a later one."""
        return super().due(now * self.times)


def hasten() -> None:
    """Let the probes be asked that often."""
    vars(reader)["Agenda"] = HastyAgenda
    # Half of it: a short tick is late by a larger part of itself.
    vars(gpm)["SHORTEST_PAIR_US"] = gpm.SHORTEST_PAIR_US / 2 / HastyAgenda.times


def settle(proc: str) -> None:
    """Let a folder stand for procfs, where there is one: pods need a kubelet."""
    defaults = HostProcesses.__init__.__kwdefaults__
    if proc and defaults is not None:
        defaults["proc"] = type(defaults["proc"])(proc)


if __name__ == "__main__":
    Counting(LoadedDriver()).start()
    hasten()
    settle(os.environ.get(PROC, ""))
    sys.exit(run(sys.argv[1:], os.environ))
