"""How far the tenants of a device are in each other's way, from who kept it busy for how long.

An occupancy bound: the time in which a tenant that wanted the device could have found it taken. It
is not a slowdown, which nobody can know without a run of the tenant alone. Pure, and in whole
microseconds: a division is the only rounding, so what holds for the formulas holds for the values.
"""

from collections.abc import Collection
from typing import Final

# Winners of samples, and percentages that are cut off to whole ones, leave a device that is never
# idle a little below 100 percent.
SATURATED_PERCENT: Final = 95

# A ratio of a window of which less is covered would be mostly noise: a share of one half that is
# sampled 7.2 times a second over 7.5 s has a standard deviation of 0.07.
LEAST_COVERED_RATIO: Final = 0.5

# Time of processes that vanished before they could be asked whose they are. What others had of a
# tenant's time is wrong by as much at most; above this it outweighs the error of the estimate.
MOST_UNATTRIBUTED_RATIO: Final = 0.05


def tenant_ratio(
    own_us: int, all_us: int, covered_us: int, own_processes: int, all_processes: int
) -> float:
    """Return the share of the time in which others had the device that the tenant may have wanted.

    The others' busy share, but no more than what the slices of their processes can take from a
    tenant that always has work. 0 for a tenant that did nothing: it waited for nobody.

    Args:
        own_us: busy time of the tenant.
        all_us: busy time of all tenants, this one included; at most ``covered_us``.
        covered_us: the time that is known.
        own_processes: active processes of the tenant.
        all_processes: active processes of all tenants, this one included.

    Returns:
        0 to 1; 0 with fewer than two active tenants.
    """
    if not own_us:
        return 0.0
    taken = (all_us - own_us) / covered_us
    return min(taken, (all_processes - own_processes) / all_processes)


def device_ratio(busy_us: Collection[int], covered_us: int) -> float:
    """Return the mean, over the busy time of a device, of the time that others took of each.

    For n equally busy tenants it is B (1 - 1/n), with B the busy share of all together.

    Args:
        busy_us: busy time of each tenant; in sum at most ``covered_us``.
        covered_us: the time that is known.

    Returns:
        0 to 1 - 1/n; 0 with fewer than two active tenants.
    """
    total = sum(busy_us)
    if not total:
        return 0.0
    return (total * total - sum(busy * busy for busy in busy_us)) / (total * covered_us)


def is_contended(active_tenants: int, busy_us: int, covered_us: int) -> bool:
    """Tell whether several tenants shared a device that had nothing left to give.

    Args:
        active_tenants: how many kept it busy for some of the time.
        busy_us: how long it was busy, whoever that was.
        covered_us: the time that is known.
    """
    return active_tenants >= 2 and busy_us * 100 >= covered_us * SATURATED_PERCENT
