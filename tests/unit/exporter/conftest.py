"""What the tests of the exporter start from."""

import pytest

from tests.unit.exporter.desk import READINGS, Desk, Hand, make_gpu, make_mig


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
