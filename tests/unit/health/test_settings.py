"""The monitor's settings: the users' names to the letter, and no start that has to be guessed."""

import pytest

from health.settings import HealthSettings, TemperatureAction
from slicewatch.service.settings import SettingsError, fields, load

NODE = {"NODE_NAME": "gpu-1"}


def read(**environment):
    return load(HealthSettings, [], NODE | environment)


def refused(**environment):
    with pytest.raises(SettingsError) as error:
        read(**environment)
    return str(error.value)


def test_the_names_that_clusters_set_are_kept_to_the_letter():
    settings = read(
        CHECK_INTERVAL="30",
        MEMORY_ERROR_THRESHOLD="5",
        TEMPERATURE_THRESHOLD="85",
        AUTO_CORDON="false",
        TEMPERATURE_ACTION="cordon",
    )
    assert settings.check_interval == 30
    assert settings.memory_error_threshold == 5
    assert settings.temperature_threshold == 85
    assert settings.auto_cordon is False
    assert settings.temperature_action is TemperatureAction.CORDON


def test_the_defaults_are_those_that_clusters_have_relied_on():
    settings = read()
    assert settings.check_interval == 60
    assert settings.memory_error_threshold == 10
    assert settings.temperature_threshold == 90
    assert settings.auto_cordon is True
    assert settings.temperature_action is TemperatureAction.WARN


@pytest.mark.parametrize("variable", ["CHECK_INTERVAL", "MEMORY_ERROR_THRESHOLD",
                                      "TEMPERATURE_THRESHOLD", "AUTO_CORDON",
                                      "TEMPERATURE_ACTION"])  # fmt: skip
@pytest.mark.parametrize("value", ["", "abc", "-1", "nan", "inf", "1e99", "\x00"])
def test_what_cannot_be_meant_refuses_the_start_and_names_the_variable(variable, value):
    """An empty list of labels meant every node (draino #29, #54)."""
    assert variable in refused(**{variable: value})


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("CHECK_INTERVAL", "0"),
        ("CHECK_INTERVAL", "2h"),
        ("MEMORY_ERROR_THRESHOLD", "0"),
        ("MEMORY_ERROR_THRESHOLD", "1.5"),
        ("TEMPERATURE_THRESHOLD", "9"),
        ("TEMPERATURE_THRESHOLD", "900"),
        ("AUTO_CORDON", "perhaps"),
        ("SLICEWATCH_BUDGET_ABSOLUTE", "0"),
        ("SLICEWATCH_BUDGET_PERCENT", "101"),
        ("SLICEWATCH_GOOD_POLLS", "0"),
        ("SLICEWATCH_EXPECTED_GPUS", "-8"),
        ("SLICEWATCH_POOL_LABEL", "not a label"),
        ("SLICEWATCH_HANG_SECONDS", "0"),
    ],
)
def test_a_limit_that_would_always_or_never_fire_is_refused(variable, value):
    field = variable.removeprefix("SLICEWATCH_").lower()
    said = refused(**{variable: value})
    assert variable in said or field in said


def test_all_faults_are_told_at_once():
    said = refused(CHECK_INTERVAL="", AUTO_CORDON="x", SLICEWATCH_EXPECTED_GPUS="many")
    assert said.count("\n") == 2


def test_without_the_name_of_its_node_it_does_not_start():
    with pytest.raises(SettingsError, match="set NODE_NAME"):
        load(HealthSettings, [], {})


@pytest.mark.parametrize(("text", "number"), [("", None), ("0", 0), ("8", 8)])
def test_the_number_of_gpus_may_be_left_open(text, number):
    assert read(SLICEWATCH_EXPECTED_GPUS=text).expected_gpus == number


def test_only_the_names_of_the_users_lack_our_prefix():
    foreign = {f.variable for f in fields(HealthSettings)} - {
        "SLICEWATCH_" + f.name.upper() for f in fields(HealthSettings)
    }
    assert foreign == {
        "CHECK_INTERVAL", "MEMORY_ERROR_THRESHOLD", "TEMPERATURE_THRESHOLD", "AUTO_CORDON",
        "TEMPERATURE_ACTION", "NODE_NAME",
    }  # fmt: skip
