"""The object that all agents share: which nodes are out of service, who found what, who paused it.

Pure: its data in and out. The switches are people's, the rest the agents'; each agent changes its
own entries only, and those of others stay as they were written, also with fields of a newer
version. What cannot be read is said, never guessed and never overwritten.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

import msgspec

from health.checks.model import CheckId

CONFIG_MAP_NAME: Final = "slicewatch-health-budget"

SLOTS: Final = "slots"
FINDINGS: Final = "findings"
PAUSED: Final = "paused"
PAUSED_REASON: Final = "paused-reason"
PAUSED_POOLS: Final = "paused-pools"
ALLOW: Final = "allow"
ALL: Final = "all"

# An object of Kubernetes has at most a megabyte.
MOST_FINDINGS: Final = 1000

_SWITCH: Final = {"": False, "false": False, "true": True}


class BookError(ValueError):
    """The shared object holds what cannot be read; the message says which key and what to do."""


class Slot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node that counts as out of service.

    Attributes:
        uid: of the node; another one of the same name is another node.
        since: when its fault was found, in seconds since 1970 by its own clock; 0 for unknown.
        check: why.
        pool: for people.
    """

    uid: str = ""
    since: float = 0.0
    check: str = ""
    pool: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """What the shared object holds.

    Attributes:
        slots, findings: by node, as they were written: those of others stay to the letter.
        allowed: checks whose bursts are let through; ``all`` for every one.
    """

    slots: Mapping[str, msgspec.Raw] = field(default_factory=lambda: MappingProxyType({}))
    findings: Mapping[str, msgspec.Raw] = field(default_factory=lambda: MappingProxyType({}))
    paused: bool = False
    paused_reason: str = ""
    paused_pools: frozenset[str] = frozenset()
    allowed: frozenset[str] = frozenset()

    def slot(self, node: str) -> Slot | None:
        """Return the slot of a node."""
        return _slot.decode(self.slots[node]) if node in self.slots else None

    def found(self, node: str) -> dict[str, float]:
        """Return what a node has found, and when."""
        return _found.decode(self.findings[node]) if node in self.findings else {}

    def with_slot(self, node: str, slot: Slot) -> "Book":
        """Return it with a slot for a node, unless it has one."""
        present = self.slot(node)
        if present is not None and present.uid == slot.uid:
            return self
        return replace(self, slots={**self.slots, node: _raw(slot)})

    def with_findings(self, node: str, found: Mapping[CheckId, float]) -> "Book":
        """Return it with what a node has found, instead of what it had."""
        if self.found(node) == found:
            return self
        return replace(self, findings={**self.findings, node: _raw(dict(found))})

    def without(self, node: str) -> "Book":
        """Return it without a node."""
        return replace(
            self.without_slots({node}),
            findings={name: raw for name, raw in self.findings.items() if name != node},
        )

    def without_slots(self, nodes: set[str]) -> "Book":
        """Return it without the slots of some nodes."""
        return replace(
            self, slots={name: raw for name, raw in self.slots.items() if name not in nodes}
        )

    def without_oldest_findings(self) -> "Book":
        """Return it with as many findings as it may keep.

        Old ones do no harm, so that no clock decides which are too old: of nodes that never came
        back they only take room.
        """
        if len(self.findings) <= MOST_FINDINGS:
            return self
        times = {node: max(self.found(node).values(), default=0.0) for node in self.findings}
        newest = sorted(times, key=lambda node: (times[node], node))[-MOST_FINDINGS:]
        return replace(self, findings={node: self.findings[node] for node in newest})

    def data(self) -> dict[str, str]:
        """Return what agents write: the keys of people are not among it."""
        return {SLOTS: _text(self.slots), FINDINGS: _text(self.findings)}


_slot: Final = msgspec.json.Decoder(Slot)
_found: Final = msgspec.json.Decoder(dict[str, float])
_by_node: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def read(data: Mapping[str, str]) -> Book:
    """Return what the data of the shared object holds.

    Raises:
        BookError: a key cannot be read.
    """
    return Book(
        slots=_entries(data, SLOTS, _slot),
        findings=_entries(data, FINDINGS, _found),
        paused=_switch(data),
        paused_reason=data.get(PAUSED_REASON, ""),
        paused_pools=_words(data, PAUSED_POOLS),
        allowed=_words(data, ALLOW),
    )


def _entries(
    data: Mapping[str, str], key: str, form: msgspec.json.Decoder[Any]
) -> dict[str, msgspec.Raw]:
    where = key
    try:
        entries = _by_node.decode(data.get(key) or "{}")
        for node, raw in entries.items():
            where = f"{key}: {node}"
            form.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BookError(
            f"ConfigMap {CONFIG_MAP_NAME}: {where}: {error}; mend it, or take the entry out if its"
            " node is not cordoned"
        ) from error
    return entries


def _switch(data: Mapping[str, str]) -> bool:
    value = data.get(PAUSED, "").strip().lower()
    if value not in _SWITCH:
        raise BookError(
            f"ConfigMap {CONFIG_MAP_NAME}: {PAUSED}: {data[PAUSED]!r} is neither true nor false"
        )
    return _SWITCH[value]


def _words(data: Mapping[str, str], key: str) -> frozenset[str]:
    return frozenset(word for word in re.split(r"[,\s]+", data.get(key, "")) if word)


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def _text(entries: Mapping[str, msgspec.Raw]) -> str:
    return msgspec.json.encode(dict(sorted(entries.items()))).decode()
