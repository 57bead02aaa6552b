"""Where the instances of a MIG layout are placed.

The driver leaves as much room for large instances as it can. Its observed behaviour follows from
one rule: of the free placements take the one that rules out the fewest others, the first of
equals. Seven instances of 1g.10gb on an H100 are then placed at 6, 4, 5, 0, 1, 2, 3, the first
1g.20gb at 6, and 1g.5gb, 2g.10gb, 4g.20gb on an A100 at 6, 4, 0, all as NVIDIA's user guide and
published transcripts show.

Ids of GPU instances are numbered as a tree of halves: 0 for the whole GPU, 1 and 2 for its
halves, 3 to 6 for the quarters, 7 to 14 for the eighths. Some drivers swap the two halves of an
A100; that is not modelled.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from slicewatch.hardware.model import GpuModel, HardwareError, MigProfile, Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedInstance:
    """A GPU instance in its place."""

    profile: MigProfile
    placement: Placement
    gpu_instance_id: int


def placements_for(model: GpuModel, profiles: Sequence[str]) -> tuple[PlacedInstance, ...]:
    """Place the profiles on one GPU of the model; the answer is in the order of the request.

    Large profiles are placed before small ones whatever the order, as tools that apply a layout
    do, so that every layout that fits is found.

    Raises:
        HardwareError: a profile does not exist, is requested too often, or finds no room.
    """
    wanted = [model.profile(name) for name in profiles]
    _check_numbers(model, wanted)
    taken: list[Placement] = []
    placed: dict[int, PlacedInstance] = {}
    by_size = sorted(range(len(wanted)), key=lambda at: -wanted[at].memory_slices)
    for position in by_size:
        profile = wanted[position]
        placement = _place(model, profile, taken)
        if placement is None:
            raise HardwareError(_no_room(model, profile, [placed[at] for at in sorted(placed)]))
        taken.append(placement)
        number = gpu_instance_id(model, placement)
        placed[position] = PlacedInstance(
            profile=profile, placement=placement, gpu_instance_id=number
        )
    return tuple(placed[position] for position in range(len(wanted)))


def room_for(profile: MigProfile, taken: Sequence[Placement], alike: int) -> int:
    """Return how many more instances of a profile fit on a GPU, wherever they are placed.

    Args:
        profile: of all of them.
        taken: where the instances are that stay.
        alike: how many of these are of the profile.
    """
    fit, end = 0, 0
    for spot in sorted(profile.placements):
        if spot.start >= end and not _overlaps(spot, taken):
            fit, end = fit + 1, spot.start + spot.size
    return max(0, min(fit, profile.max_instances - alike))


def gpu_instance_id(model: GpuModel, placement: Placement) -> int:
    """Return the id of the GPU instance placed there; unique among its neighbours."""
    parts = model.memory_slices // placement.size
    return parts - 1 + placement.start // placement.size


def _check_numbers(model: GpuModel, wanted: Sequence[MigProfile]) -> None:
    for profile in wanted:
        number = sum(other.name == profile.name for other in wanted)
        if number > profile.max_instances:
            raise HardwareError(
                f"{number} x {profile.name} on one {model.name}; at most {profile.max_instances}"
                " fit"
            )
    with_media = [profile.name for profile in wanted if profile.name.endswith("+me")]
    if len(with_media) > 1:
        raise HardwareError(
            f"{' and '.join(with_media)} on one {model.name}; only one instance can have its media"
            " engines"
        )


def _place(model: GpuModel, profile: MigProfile, taken: list[Placement]) -> Placement | None:
    free = [spot for spot in profile.placements if not _overlaps(spot, taken)]
    open_spots = [
        spot
        for other in model.mig_profiles
        for spot in other.placements
        if not _overlaps(spot, taken)
    ]
    return min(
        free,
        key=lambda spot: (sum(_overlaps(spot, (other,)) for other in open_spots), spot.start),
        default=None,
    )


def _overlaps(spot: Placement, taken: Iterable[Placement]) -> bool:
    return any(
        spot.start < other.start + other.size and other.start < spot.start + spot.size
        for other in taken
    )


def _no_room(model: GpuModel, profile: MigProfile, placed: Sequence[PlacedInstance]) -> str:
    beside = ", ".join(f"{one.profile.name} at {one.placement.start}" for one in placed)
    starts = ", ".join(str(spot.start) for spot in profile.placements)
    return (
        f"no room for {profile.name} on {model.name}: it can start at memory slice {starts}, but"
        f" these are in the way: {beside}; remove one of them"
    )
