"""What the tests of the exporter start from."""

import pytest

from tests.unit.exporter.desk import READINGS, Desk, Hand, make_gpu, make_mig, until
from tests.unit.exporter.office import Office, driver_threads


@pytest.fixture
def gpu():
    return make_gpu


@pytest.fixture
def mig():
    return make_mig


@pytest.fixture
def desk():
    return Desk


@pytest.fixture
def hand():
    return Hand()


@pytest.fixture
def readings():
    return dict(READINGS)


@pytest.fixture
async def offices(hand):
    """Make supervisors; at the end close them all, and see that nothing was left behind."""
    made = []

    def make(desk):
        made.append(Office(desk, hand))
        return made[-1]

    yield make
    for office in made:
        await office.close()
    await until(lambda: not driver_threads())
