"""The scenario of a test's module, behind the C library that plays the driver."""

import pytest

from testbed import require
from testbed.binaries import Unavailable
from testbed.driver.worlds import driver_world


@pytest.fixture
def driver(request, tmp_path):
    """The driver's world, not started."""
    try:
        return driver_world(request.module.SCENARIO, tmp_path / "driver.state")
    except Unavailable as why:
        require.skip_or_fail(str(why))


@pytest.fixture
def world(driver):
    """The driver's world, half a minute old and started."""
    driver.advance(30)
    driver.nvml.start()
    yield driver
    driver.nvml.stop()
