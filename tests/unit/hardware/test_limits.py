"""The limits of the boards are in the order in which a board that gets too warm meets them."""

import pytest

from slicewatch.hardware import MODELS


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_a_board_slows_down_before_it_turns_off(model):
    limits = model.limits
    assert 70 < limits.gpu_max_celsius < limits.slowdown_celsius < limits.shutdown_celsius < 110
    assert limits.memory_max_celsius is None or 80 <= limits.memory_max_celsius <= 110


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_the_lowest_power_limit_lies_between_idle_and_full_power(model):
    assert model.idle_power_watts < model.limits.min_power_watts < model.max_power_watts
    assert model.idle_sm_clock_mhz < model.limits.max_video_clock_mhz <= model.max_sm_clock_mhz


@pytest.mark.parametrize(
    ("name", "averages"),
    [("V100-32GB", False), ("A30", False), ("A100-80GB", False), ("L40S", True), ("B200", True)],
)
def test_power_is_averaged_and_margins_are_stated_from_ada_on(name, averages):
    model = MODELS[name]
    assert model.averages_power == model.states_margins == averages
