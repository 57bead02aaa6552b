"""The scenario of a test's module, through both implementations of the Nvml seam."""

import pytest

from testbed import require
from testbed.binaries import Unavailable
from testbed.driver.worlds import driver_world, simulated_world


@pytest.fixture(params=["simulated", "real"])
def world(request, tmp_path):
    """The first node of ``SCENARIO``, half a minute old, its NVML started."""
    scenario = request.module.SCENARIO
    if request.param == "simulated":
        made = simulated_world(scenario)
    else:
        try:
            made = driver_world(scenario, tmp_path / "driver.state")
        except Unavailable as why:
            require.skip_or_fail(str(why))
    made.advance(30)
    made.nvml.start()
    yield made
    made.fleet.clear()
    made.show()
    made.nvml.stop()
