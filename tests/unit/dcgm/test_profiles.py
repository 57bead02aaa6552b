"""Names of MIG profiles, as NVML and as DCGM write them."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.dcgm.profiles import same_profile
from slicewatch.hardware import profiles

BOARDS = [
    profiles.A30, profiles.A100_40GB, profiles.A100_80GB, profiles.H100_80GB,
    profiles.H200_141GB, profiles.B200,
]  # fmt: skip
NAMES = sorted({profile.name for board in BOARDS for profile in board})


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("1g.5gb", "1g.5gb"),
        ("7g.80gb", "7g.79gb"),
        ("1g.12gb", "1g.11gb"),
        ("1g.10gb+me", "1g.10gb"),
        ("1g.10gb", "1g.10gb+me"),
    ],
)
def test_names_that_mean_the_same_size_agree(ours, theirs):
    """dcgm-exporter #713, #544 and gpu-operator #687: wrong by a gigabyte, or without ``+me``."""
    assert same_profile(ours, theirs)


@pytest.mark.parametrize(
    "theirs",
    ["1g.10gb", "2g.5gb", "3g.20gb", "<<<NULL>>>", "", "1g", "1c.1g.5gb", "1g.5gb\n", "٣g.5gb"],
)
def test_other_names_and_no_names_do_not_agree(theirs):
    """gpu-monitoring-tools #193: the name of the profile is a literal NULL."""
    assert not same_profile("1g.5gb", theirs)


@pytest.mark.parametrize("board", BOARDS)
def test_no_two_sizes_of_one_board_are_confused(board):
    names = {profile.name.partition("+")[0] for profile in board}
    assert len(names) > 2
    assert not [pair for pair in combinations(sorted(names), 2) if same_profile(*pair)]


@given(st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_agreement_does_not_depend_on_who_is_asked(one, other):
    assert same_profile(one, one)
    assert same_profile(one, other) == same_profile(other, one)
