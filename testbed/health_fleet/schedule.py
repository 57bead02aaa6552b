"""What happens on each node of a fleet and when: drawn at random, the same for the same seed.

How often noise comes is no measured rate: most kinds come a hundred times and more in a month
of a thousand nodes. That of faults is one; see ``testbed.health_fleet.ailments``.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from health.checks.model import Action
from testbed.health_fleet.ailments import BY_NAME, FAULTS, SHARES, Ailment
from testbed.health_fleet.machine import DAY_SECONDS, Machine

HOUR_SECONDS: Final = 3600.0
MONTH_DAYS: Final = 30.0
# GPU-days in which the shares of the faults were counted: 16,384 GPUs in 54 days.
COUNTED_GPU_DAYS: Final = 16_384 * 54
# Few nodes have most of the faults.
LEMONS_SHARE: Final = 0.05
FAULTS_OF_LEMONS_SHARE: Final = 0.5
# Time to repair, and until the node has forgotten the repair, at the end of a fleet's life.
LAST_FAULT_DAYS: Final = 1.5

# Times a month on each node.
EPISODES: Final = {
    "xid_45_storm": 0.4,
    "program_faults": 0.5,
    "program_faults_again": 0.1,
    "link_not_fatal": 0.1,
    "number_without_a_name": 0.02,
    "brake_now_and_then": 0.05,
    "slowdown_for_a_moment": 0.1,
    "link_wakes": 0.1,
    "corrected_errors_slow_calls": 0.1,
}
BOOTS, RELOADS, RUNS, SILENCES = 0.5, 0.2, 0.5, 0.1
# Share of the nodes on which it is so all the time.
TRAITS: Final = {
    "brake_of_the_site": 0.5,
    "no_margin": 0.1,
    "beyond_its_margin": 0.05,
    "warm_as_usual": 0.1,
    "slow_link_at_rest": 0.1,
    "no_fabric": 0.1,
    "fabric_says_little": 0.1,
    "healed_long_ago": 0.05,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something that happens to a machine.

    Attributes:
        at: seconds since the fleet began.
        does: does it.
        boots: the monitor begins anew with it.
        fault: what befalls, if it is a fault.
    """

    at: float
    does: Callable[[Machine], None]
    boots: bool = False
    fault: Ailment | None = None


def of_node(seed: str, number: int, days: float, gpus: int, *, faults: bool) -> list[Happening]:
    """Return what happens on a node, in order."""
    rng = random.Random(f"{seed}/{number}")  # noqa: S311 - what a seed can repeat
    seconds = days * DAY_SECONDS
    found = [*_traits(rng, gpus), *_lives(rng, seconds), *_episodes(rng, seconds, gpus)]
    if faults:
        found += _faults(rng, seconds - LAST_FAULT_DAYS * DAY_SECONDS, gpus)
    return sorted(found, key=lambda one: one.at)


def _traits(rng: random.Random, gpus: int) -> Iterator[Happening]:
    for name, share in TRAITS.items():
        if rng.random() < share:
            for index in range(gpus):
                yield _befalls(0.0, index, BY_NAME[name])


def _lives(rng: random.Random, seconds: float) -> Iterator[Happening]:
    for at in _times(rng, BOOTS, seconds):
        yield _boot(rng, at)
    for at in _times(rng, RELOADS, seconds):
        why = rng.choice(["no_driver", "released", "version_mismatch"])
        lasts, training = rng.uniform(60, 480), rng.uniform(0, 240)
        does = partial(Machine.reload_driver, why=why, seconds=lasts, training=training)
        yield Happening(at=at, does=does)
    for at in _times(rng, RUNS, seconds):
        does = partial(Machine.restart_exporter, silent=rng.uniform(5, 120))
        yield Happening(at=at, does=does)
    for at in _times(rng, SILENCES, seconds):
        yield Happening(at=at, does=partial(Machine.fall_silent, seconds=rng.uniform(30, 1200)))


def _boot(rng: random.Random, at: float) -> Happening:
    """Return a boot; links train for minutes, long after the driver is there."""
    down = rng.uniform(30, 120)
    does = partial(
        Machine.boot, down=down, driver=rng.uniform(20, 240), training=rng.uniform(30, 300)
    )
    return Happening(at=at, does=does, boots=True)


def _episodes(rng: random.Random, seconds: float, gpus: int) -> Iterator[Happening]:
    for name, times in EPISODES.items():
        ailment = BY_NAME[name]
        for at in _times(rng, times, seconds):
            index = rng.randrange(gpus)
            yield _befalls(at, index, ailment)
            yield _ends(at + ailment.lasts_seconds, index, ailment)


def _faults(rng: random.Random, seconds: float, gpus: int) -> Iterator[Happening]:
    is_lemon = rng.random() < LEMONS_SHARE
    weight = (
        FAULTS_OF_LEMONS_SHARE / LEMONS_SHARE
        if is_lemon
        else (1 - FAULTS_OF_LEMONS_SHARE) / (1 - LEMONS_SHARE)
    )
    for family, share in SHARES.items():
        a_month = weight * gpus * MONTH_DAYS * share / COUNTED_GPU_DAYS
        kinds = [one for one in FAULTS if one.family is family]
        for number, at in enumerate(_times(rng, a_month, seconds), start=1):
            index, fault = rng.randrange(gpus), rng.choice(kinds)
            longest = 24 if fault.asks is Action.RESET else 12
            repaired = at + rng.uniform(2, longest) * HOUR_SECONDS
            yield _befalls(at, index, fault)
            yield Happening(at=repaired, does=partial(Machine.replace, index=index, number=number))
            yield _boot(rng, repaired)


def _befalls(at: float, index: int, ailment: Ailment) -> Happening:
    return Happening(
        at=at,
        does=partial(Machine.fall_ill, index=index, ailment=ailment),
        fault=ailment if ailment.is_fault else None,
    )


def _ends(at: float, index: int, ailment: Ailment) -> Happening:
    return Happening(at=at, does=partial(Machine.recover, index=index, ailment=ailment))


def _times(rng: random.Random, times_a_month: float, seconds: float) -> Iterator[float]:
    """Yield moments that know nothing of each other, so many a month on average."""
    at = 0.0
    while times_a_month:
        at += rng.expovariate(times_a_month / (MONTH_DAYS * DAY_SECONDS))
        if at >= seconds:
            return
        yield at
