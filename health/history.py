"""The last polls of each GPU in this boot, with the events that are its own. Judges nothing."""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from health.case import POLLS_KEPT, Poll
from slicewatch.wire.evidence import Event, Evidence, Gpu

NODE: Final = ""
"""What stands for the node where a GPU's uuid would stand."""

Place = tuple[int, int, int]

_BUS_ID: Final = re.compile(
    r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.[0-7])?", re.IGNORECASE
)


def place(bus_id: str) -> Place | None:
    """Return domain, bus and device, which NVML and the kernel's log spell differently."""
    parts = _BUS_ID.fullmatch(bus_id)
    if parts is None:
        return None
    domain, bus, device = parts.groups(default="0")
    return int(domain, 16), int(bus, 16), int(device, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Which GPUs there are.

    Attributes:
        gpus: by uuid; without those that another one has replaced.
        replaced: uuids that were known at a place where there is another GPU now.
    """

    gpus: dict[str, Gpu]
    replaced: frozenset[str]


class History:
    """Polls by GPU."""

    def __init__(self) -> None:
        self._polls: dict[str, deque[Poll]] = {}
        self._places: dict[str, Place] = {}
        self._known: set[str] = set()
        self._gone: set[str] = set()

    def polls(self, gpu: str) -> Sequence[Poll]:
        """Return those of a GPU or of ``NODE``, the newest last."""
        return tuple(self._polls[gpu])

    def knew(self, gpu: str, bus_id: str = "") -> None:
        """Take over that there was a GPU before a restart, and where."""
        self._known.add(gpu)
        if (known := place(bus_id)) is not None:
            self._places[gpu] = known

    def forget_polls(self) -> None:
        """Drop the polls: they are of another boot."""
        self._polls.clear()

    def take(self, evidence: Evidence, now: float) -> Sighting:
        """Add a poll, and return which GPUs it is of."""
        sighting = self._see(evidence.gpus)
        for uuid in sighting.replaced:
            self._places.pop(uuid, None)
        events = _by_gpu(evidence.events, sighting.gpus)
        known = self._polls
        self._polls = {}
        for uuid, gpu in ((NODE, None), *sighting.gpus.items()):
            polls = known.get(uuid, deque(maxlen=POLLS_KEPT))
            polls.append(Poll(at=now, evidence=evidence, gpu=gpu, events=events.get(uuid, ())))
            self._polls[uuid] = polls
        return sighting

    def _see(self, gpus: Iterable[Gpu]) -> Sighting:
        """Tell the GPUs apart that were at the same place at different times.

        One that was never seen before and answers stands there now; what was known there is gone
        for good, unless it answers itself. One that is known has only moved: where a dead board
        is not enumerated any more, the others may have its number after the next boot.
        """
        seen = {gpu.device.uuid: gpu for gpu in gpus}
        answering = {uuid for uuid, gpu in seen.items() if not gpu.silent}
        places = {uuid: place(gpu.device.pci_bus_id) for uuid, gpu in seen.items()}
        taken = {places[uuid]: uuid for uuid in answering - self._known}
        self._known |= answering
        self._places |= {uuid: known for uuid, known in places.items() if known is not None}
        replaced = {u for u, known in self._places.items() if taken.get(known, u) != u} - answering
        self._gone = (self._gone | replaced) - answering
        return Sighting(
            gpus={uuid: gpu for uuid, gpu in seen.items() if uuid not in self._gone},
            replaced=frozenset(replaced),
        )


def _by_gpu(events: Iterable[Event], gpus: dict[str, Gpu]) -> dict[str, tuple[Event, ...]]:
    """Return the events of each GPU; the node gets those of none that is there."""
    at = {place(gpu.device.pci_bus_id): uuid for uuid, gpu in gpus.items()}
    found: dict[str, list[Event]] = {}
    for event in events:
        where = place(event.pci_bus_id)
        uuid = event.gpu if event.gpu or where is None else at.get(where, NODE)
        found.setdefault(uuid if uuid in gpus else NODE, []).append(event)
    return {uuid: tuple(own) for uuid, own in found.items()}
