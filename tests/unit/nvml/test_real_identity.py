"""What a MIG instance is called, by drivers that say little of it."""

import pytest

from exporter.nvml.real.returns import Return
from testbed.driver.state import CALL_NUMBERS

SCENARIO = """
nodes: [{name: n, gpus: [{model: H100-80GB, mig: [1g.10gb, 1g.10gb+me]}]}]
"""
CALLS = ("nvmlDeviceGetGpuInstanceProfileInfoV", "nvmlGpuInstanceGetInfo")


def profiles(world):
    _, *instances = world.session(0).devices().value
    return [instance.profile for instance in instances]


def test_two_profiles_of_the_same_size_keep_their_own_names(world):
    """dcgm-exporter #544: the instance with the media engines had the name of the one without."""
    assert profiles(world) == ["1g.10gb", "1g.10gb+me"]


@pytest.mark.parametrize("refused", CALLS)
def test_a_profile_that_cannot_be_looked_up_is_the_one_in_the_name(world, refused):
    world.fail(0, **{refused: Return.NOT_SUPPORTED})
    assert profiles(world) == ["1g.10gb", "1g.10gb+me"]


@pytest.mark.parametrize("refused", CALLS)
@pytest.mark.parametrize("name", [b"", b"NVIDIA H100 80GB HBM3"])
def test_a_profile_that_nothing_names_is_empty(world, refused, name):
    """gpu-monitoring-tools #193: a literal NULL stood in its place."""

    def rename(state):
        state.call_errors[CALL_NUMBERS[refused]] = Return.NOT_SUPPORTED
        for slot in state.slots:
            slot.name = name

    world.alter(0, rename)
    assert profiles(world) == ["", ""]
