"""What an error message suggests for a name that does not exist."""

from slicewatch.suggestion import choices, closest, did_you_mean

NAMES = ("demo", "dense_mig", "faults")


def test_a_slip_is_answered_with_the_name_that_was_meant():
    assert did_you_mean("demmo", NAMES) == "; did you mean demo?"
    assert choices("demmo", NAMES) == "; did you mean demo?"


def test_nothing_is_suggested_where_nothing_is_close():
    assert did_you_mean("xyz", NAMES) == ""
    assert choices("xyz", NAMES) == "; choose from demo, dense_mig, faults"


def test_a_higher_cutoff_takes_near_misses_only():
    assert closest("deno", NAMES, cutoff=0.7) == "demo"
    assert closest("deno", NAMES, cutoff=0.9) is None
