"""The MIG profiles of the models that have MIG.

Sources: names, instance numbers and slices from NVIDIA's MIG user guide, "Supported MIG
Profiles"; ids, SM counts and memory from listings of ``nvidia-smi mig -lgip`` on the boards: A30
and A100 in the user guide, H100 80 GB in set-up notes of its users, H200 and B200 where support
for them was added to NVIDIA's mig-parted. Placements from ``nvidia-smi mig -lgipp``, which
prints the same for every board of seven slices. Drivers differ by a few hundred MiB in the memory.
"""

from collections.abc import Sequence
from typing import Final

from slicewatch.hardware.model import GIBIBYTE, MigProfile, Placement

# Name, profile id, memory in GiB, SMs.
Row = tuple[str, int, float, int]

# There is one set of media engines, so only one instance of a +me profile fits.
SEVEN_SLICES: Final = {
    19: (1, 1, (0, 1, 2, 3, 4, 5, 6), 7),
    20: (1, 1, (0, 1, 2, 3, 4, 5, 6), 1),
    15: (1, 2, (0, 2, 4, 6), 4),
    14: (2, 2, (0, 2, 4), 3),
    9: (3, 4, (0, 4), 2),
    5: (4, 4, (0,), 1),
    0: (7, 8, (0,), 1),
}
FOUR_SLICES: Final = {
    14: (1, 1, (0, 1, 2, 3), 4),
    21: (1, 1, (0, 1, 2, 3), 1),
    5: (2, 2, (0, 2), 2),
    6: (2, 2, (0, 2), 1),
    0: (4, 4, (0,), 1),
}
Geometry = dict[int, tuple[int, int, tuple[int, ...], int]]


def _table(geometry: Geometry, rows: Sequence[Row]) -> tuple[MigProfile, ...]:
    return tuple(_profile(geometry, *row) for row in rows)


def _profile(
    geometry: Geometry, name: str, profile_id: int, memory_gib: float, sm_count: int
) -> MigProfile:
    compute_slices, memory_slices, starts, max_instances = geometry[profile_id]
    return MigProfile(
        name=name,
        profile_id=profile_id,
        compute_slices=compute_slices,
        memory_slices=memory_slices,
        memory_bytes=int(memory_gib * GIBIBYTE),
        sm_count=sm_count,
        placements=tuple(Placement(start, memory_slices) for start in starts),
        max_instances=max_instances,
    )


A30: Final = _table(FOUR_SLICES, (
    ("1g.6gb", 14, 5.8125, 14),
    ("1g.6gb+me", 21, 5.8125, 14),
    ("2g.12gb", 5, 11.6875, 28),
    ("2g.12gb+me", 6, 11.6875, 28),
    ("4g.24gb", 0, 23.4375, 56),
))  # fmt: skip
A100_40GB: Final = _table(SEVEN_SLICES, (
    ("1g.5gb", 19, 4.75, 14),
    ("1g.5gb+me", 20, 4.75, 14),
    ("1g.10gb", 15, 9.625, 14),
    ("2g.10gb", 14, 9.625, 28),
    ("3g.20gb", 9, 19.5, 42),
    ("4g.20gb", 5, 19.5, 56),
    ("7g.40gb", 0, 39.25, 98),
))  # fmt: skip
A100_80GB: Final = _table(SEVEN_SLICES, (
    ("1g.10gb", 19, 9.5, 14),
    ("1g.10gb+me", 20, 9.5, 14),
    ("1g.20gb", 15, 19.5, 14),
    ("2g.20gb", 14, 19.5, 28),
    ("3g.40gb", 9, 39.25, 42),
    ("4g.40gb", 5, 39.25, 56),
    ("7g.80gb", 0, 78.75, 98),
))  # fmt: skip
H100_80GB: Final = _table(SEVEN_SLICES, (
    ("1g.10gb", 19, 9.75, 16),
    ("1g.10gb+me", 20, 9.75, 16),
    ("1g.20gb", 15, 19.625, 26),
    ("2g.20gb", 14, 19.625, 32),
    ("3g.40gb", 9, 39.5, 60),
    ("4g.40gb", 5, 39.5, 64),
    ("7g.80gb", 0, 79.25, 132),
))  # fmt: skip
H200_141GB: Final = _table(SEVEN_SLICES, (
    ("1g.18gb", 19, 16.0, 16),
    ("1g.18gb+me", 20, 16.0, 16),
    ("1g.35gb", 15, 32.25, 26),
    ("2g.35gb", 14, 32.25, 32),
    ("3g.71gb", 9, 69.5, 60),
    ("4g.71gb", 5, 69.5, 64),
    ("7g.141gb", 0, 139.75, 132),
))  # fmt: skip
# No listing at hand shows the three large rows of B200: their memory is scaled from the small
# ones, and the SMs of 3g follow the step that 1g.45gb makes (two half GPUs of 74, less 4 each).
B200: Final = _table(SEVEN_SLICES, (
    ("1g.23gb", 19, 20.5, 18),
    ("1g.23gb+me", 20, 20.5, 18),
    ("1g.45gb", 15, 44.25, 30),
    ("2g.45gb", 14, 44.25, 36),
    ("3g.90gb", 9, 89.0, 70),
    ("4g.90gb", 5, 89.0, 72),
    ("7g.180gb", 0, 178.5, 148),
))  # fmt: skip
