"""Whether two names mean the same MIG profile.

dcgm-exporter up to 4.4 computes the name from the memory it sees, and is off by a gigabyte on
some boards: 7g.79gb for 7g.80gb, 1g.11gb for 1g.12gb. Profiles of one board that have as many
slices differ by a factor of two in memory, so a loose comparison confuses none of them.
"""

import re
from typing import Final

# For example 1g.10gb+me: the media engines after the plus change nothing about the slices.
_PROFILE: Final = re.compile(r"([0-9]{1,3})g\.([0-9]{1,5})gb(?:[+-].*)?")


def same_profile(one: str, other: str) -> bool:
    """Tell whether both name GPU instances of the same size; not so if one cannot be read."""
    first, second = _PROFILE.fullmatch(one), _PROFILE.fullmatch(other)
    if not first or not second or first[1] != second[1]:
        return False
    small, large = sorted((int(first[2]), int(second[2])))
    return 4 * (large - small) <= large
