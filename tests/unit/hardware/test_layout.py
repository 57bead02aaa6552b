"""Where MIG instances are placed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.hardware import MODELS, HardwareError, placements_for

H100 = MODELS["H100-80GB"]
A100 = MODELS["A100-40GB"]
MIG_MODELS = [model for model in MODELS.values() if model.supports_mig]


def starts(model, *profiles):
    return [one.placement.start for one in placements_for(model, profiles)]


@st.composite
def requests(draw):
    model = draw(st.sampled_from(MIG_MODELS))
    names = st.sampled_from([profile.name for profile in model.mig_profiles])
    return model, draw(st.lists(names, min_size=1, max_size=model.compute_slices))


def slices_of(spot):
    return frozenset(range(spot.start, spot.start + spot.size))


def can_be_placed(profiles, taken=frozenset()):
    """Tell by brute force whether a layout exists."""
    if not profiles:
        return True
    first, *rest = profiles
    return any(
        can_be_placed(rest, taken | slices_of(spot))
        for spot in first.placements
        if not slices_of(spot) & taken
    )


def test_seven_small_instances_lie_as_an_h100_was_seen_to_place_them():
    placed = placements_for(H100, ["1g.10gb"] * 7)
    assert [one.gpu_instance_id for one in placed] == [13, 11, 12, 7, 8, 9, 10]
    assert [one.placement.start for one in placed] == [6, 4, 5, 0, 1, 2, 3]


def test_a_mixed_layout_lies_as_in_nvidias_user_guide():
    placed = placements_for(A100, ["1g.5gb", "2g.10gb", "4g.20gb"])
    assert [(one.gpu_instance_id, one.placement) for one in placed] == [
        (13, (6, 1)),
        (5, (4, 2)),
        (1, (0, 4)),
    ]


def test_a_double_memory_instance_takes_the_place_that_no_other_wants():
    assert starts(H100, "1g.20gb") == [6]


def test_the_order_of_the_request_does_not_make_a_layout_impossible():
    assert starts(H100, "1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb") == [2, 3, 0, 4]


@given(requests())
def test_a_layout_is_found_whenever_there_is_one(request):
    model, names = request
    profiles = [model.profile(name) for name in names]
    too_many = any(names.count(p.name) > p.max_instances for p in profiles)
    two_media = sum(name.endswith("+me") for name in names) > 1
    if too_many or two_media or not can_be_placed(profiles):
        with pytest.raises(HardwareError):
            placements_for(model, names)
    else:
        assert len(placements_for(model, names)) == len(names)


@given(requests())
def test_instances_lie_where_they_may_and_never_on_each_other(request):
    model, names = request
    try:
        placed = placements_for(model, names)
    except HardwareError:
        return
    assert [one.profile.name for one in placed] == names
    assert all(one.placement in one.profile.placements for one in placed)
    slices = [one for instance in placed for one in slices_of(instance.placement)]
    assert len(slices) == len(set(slices))
    assert len({one.gpu_instance_id for one in placed}) == len(placed)
    assert sum(one.profile.compute_slices for one in placed) <= model.compute_slices


def test_an_unknown_profile_is_refused_with_the_nearest_one():
    with pytest.raises(HardwareError, match=r"'3g.40g'; did you mean 3g.40gb"):
        placements_for(H100, ["3g.40g"])


def test_too_many_of_one_profile_are_refused_with_the_number_that_fits():
    with pytest.raises(HardwareError, match=r"3 x 3g.40gb on one H100-80GB; at most 2 fit"):
        placements_for(H100, ["3g.40gb"] * 3)


def test_what_finds_no_room_is_refused_with_what_lies_there():
    with pytest.raises(HardwareError, match=r"no room for 1g.10gb .* 3g.40gb at 4, 3g.40gb at 0"):
        placements_for(H100, ["3g.40gb", "3g.40gb", "1g.10gb"])


def test_the_media_engines_are_given_away_once():
    with pytest.raises(HardwareError, match="only one instance can have"):
        placements_for(MODELS["A30"], ["1g.6gb+me", "2g.12gb+me"])
