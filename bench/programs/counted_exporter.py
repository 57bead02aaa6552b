"""The exporter's own process, from its entry point on, that also answers how much it used.

Beside what runs in production there is one thread, which sleeps until it is asked.
"""

import os
import sys

from bench.programs.counting import Counting
from exporter.main import run
from testbed.driver.loaded import LoadedDriver

if __name__ == "__main__":
    Counting(LoadedDriver()).start()
    sys.exit(run(sys.argv[1:], os.environ))
