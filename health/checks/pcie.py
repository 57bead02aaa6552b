"""The PCIe link: fewer lanes or a lower generation than there could be, packets sent again.

A link slows down while a GPU idles, which is no fault: its generation counts only under load. What
there could be is what board and slot have in common, not what the board would have elsewhere.
"""

import math
from typing import Final

from health.case import Case, Poll
from health.checks.model import Action, Check, CheckId, Healthy, Judgement, Unhealthy
from health.checks.reading import (
    SUSTAINED_POLLS,
    NoEvidenceError,
    careful,
    counted,
    read,
    rise_per_second,
)
from slicewatch.catalog.clocks import PERFORMANCE_STATE
from slicewatch.catalog.pcie import GENERATIONS, LANES, LINK, REPLAY
from slicewatch.catalog.utilization import UTILIZATION

# A board under load is in one of these; some never reach 0.
LOADED_STATE: Final = 2
# How many packets a lane may send again per minute by generation, as DCGM has it.
REPLAYS_PER_LANE: Final = {1: 0.15, 2: 0.3, 3: 0.48, 4: 0.96, 5: 1.92, 6: 3.84}
MINUTE_SECONDS: Final = 60.0
SUSTAINED_SECONDS: Final = 300.0


@careful
def _narrow(case: Case) -> Judgement:
    link = read(case.newest, LINK)
    width = counted(link.width, "the width of the link", LANES)
    most = counted(link.max_width, "the greatest width of the link", LANES)
    if width < most:
        return Unhealthy(message=f"{width} of {most} PCIe lanes")
    return Healthy()


@careful
def _slow(case: Case) -> Judgement:
    generation, most = _generations(case.newest)
    if generation >= most:
        return Healthy()
    if len(case.polls) < SUSTAINED_POLLS:
        raise NoEvidenceError("too few polls to tell load from idling")
    for poll in case.polls[-SUSTAINED_POLLS:]:
        _loaded(poll)
        now, then_most = _generations(poll)
        if now >= then_most:
            raise NoEvidenceError("the link has changed its generation just now")
    return Unhealthy(message=f"PCIe generation {generation} of {most} under load")


def _generations(poll: Poll) -> tuple[int, int]:
    link = read(poll, LINK)
    return (
        counted(link.generation, "the generation of the link", GENERATIONS),
        counted(link.max_generation, "the highest generation of the link", GENERATIONS),
    )


def _loaded(poll: Poll) -> None:
    if not 0 <= read(poll, PERFORMANCE_STATE).number <= LOADED_STATE:
        raise NoEvidenceError("the GPU idles, and its link with it")
    load = read(poll, UTILIZATION)
    if not (load.current_percent or any(percent > 0 for _, percent in load.samples)):
        raise NoEvidenceError("the GPU has no load")


@careful
def _replayed(case: Case) -> Judgement:
    link = read(case.newest, LINK)
    lanes = counted(link.width, "the width of the link", LANES)
    # At rest a link has a lower one, but what is counted may come from before.
    generation = counted(link.max_generation, "the highest generation of the link", GENERATIONS)
    allowed = REPLAYS_PER_LANE.get(generation, max(REPLAYS_PER_LANE.values()))
    limit_per_second = math.ceil(lanes * allowed) / MINUTE_SECONDS
    if rise_per_second(case, REPLAY, lambda r: r.count) > limit_per_second:
        return Unhealthy(message="more PCIe packets are sent again than a sound link has")
    return Healthy()


CHECKS: Final = (
    Check(
        id=CheckId("pcie_width"),
        title="The PCIe link has fewer lanes than GPU and slot could have.",
        reason="PCIeLinkNarrow",
        needs=(LINK,),
        raise_seconds=SUSTAINED_SECONDS,
        grace=True,
        action=Action.WARN,
        judge=_narrow,
    ),
    Check(
        id=CheckId("pcie_generation"),
        title="The PCIe link stays below the generation that GPU and slot could have, under load.",
        reason="PCIeLinkSlow",
        needs=(LINK, PERFORMANCE_STATE, UTILIZATION),
        raise_seconds=SUSTAINED_SECONDS,
        grace=True,
        action=Action.WARN,
        judge=_slow,
    ),
    Check(
        id=CheckId("pcie_replays"),
        title="Many PCIe packets have to be sent again.",
        reason="PCIeReplays",
        needs=(LINK, REPLAY),
        raise_seconds=SUSTAINED_SECONDS,
        action=Action.WARN,
        judge=_replayed,
    ),
)
