"""Means over more time than an exporter's window: a few earlier snapshots of each node.

A snapshot describes the window that ends with it, 15 s as a rule. Those of about one window ago,
two windows ago and so on are kept, and with the present one they tile the last minute. Only what
is served is kept of them, encoded, since most of them are never asked for: about a kilobyte each.

What an object gets for a minute is the mean of what it would have got tile by tile, weighted by
time. So whoever came or left meanwhile counts for the time of their being there, and a device that
was repartitioned is not taken for the one before. Pure, and blind to who asks.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from adapter import aliases
from adapter.outcome import Absence, Outcome, Part
from adapter.served import NATIVE, families
from adapter.sources.source import Reading
from slicewatch.wire.layout import Layout
from slicewatch.wire.snapshot import Snapshot, narrowed

LONGEST_SECONDS: Final = 60.0
# Shorter windows are sampled at this distance: more of them would only take memory.
SHORTEST_TILE_SECONDS: Final = 5.0

_TILED: Final = tuple(one for one in (*NATIVE, *aliases.SERVED) if one.has_exporters_window)
FAMILIES: Final = families(_TILED)

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(Snapshot)


@dataclass(frozen=True, slots=True)
class Entry:
    """A snapshot of the past: what is kept of it, and when it arrived."""

    at: float
    layout: Layout
    kept: bytes

    def snapshot(self) -> Snapshot:
        """Return it, with the columns that are kept."""
        return _decoder.decode(self.kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The time before a reading, as far as it is known.

    Attributes:
        now_seconds: for how much of it the reading itself stands.
        earlier: the snapshots before it, each with the time that it stands for.
        covered_seconds: all of that.
    """

    now_seconds: float
    earlier: tuple[tuple[float, Entry], ...]

    @property
    def covered_seconds(self) -> float:
        """Return how much of the time is known."""
        return self.now_seconds + sum(seconds for seconds, _ in self.earlier)


class History:
    """The last minute of one node, since its exporter has been followed without a break.

    Args:
        phase: from 0 to 1; how much of the first tile is left out. The adapter begins with all
            nodes at once, and to keep something of all of them in the same second, again and
            again, would hold up whoever asks in it.
    """

    __slots__ = ("_began_at", "_entries", "_last_at", "_phase", "_run")

    def __init__(self, phase: float = 0.0) -> None:
        self._phase = phase
        self._run = ""
        self._began_at, self._last_at = math.inf, -math.inf
        self._entries: tuple[Entry, ...] = ()

    def take(self, reading: Reading) -> None:
        """Take each reading of the node as it arrives; few are kept.

        Another run of the exporter begins with empty windows, and a silence longer than a window
        leaves time that no snapshot describes: both start anew.
        """
        at, layout = reading.received_at, reading.layout
        tile = _tile_seconds(layout)
        if layout.run != self._run or not 0 <= at - self._last_at <= tile:
            self._entries, self._began_at = (), at
        self._run, self._last_at = layout.run, at
        early = tile * self._phase
        before = self._entries[0].at if self._entries else self._began_at - early
        if tile < LONGEST_SECONDS and at - before >= tile:
            entry = Entry(at, layout, _packed(reading.snapshot))
            self._entries = (entry, *self._entries)[: math.ceil(LONGEST_SECONDS / tile)]

    def span(self, at: float, seconds: float) -> Span:
        """Return what is known of the ``seconds`` before a reading that arrived at ``at``."""
        entries = [entry for entry in self._entries if entry.at <= at]
        if not entries:
            return Span(now_seconds=max(0.0, min(at - self._began_at, seconds)), earlier=())
        # The oldest one that is kept describes a window before it as well.
        oldest = max(self._began_at, entries[-1].at - _tile_seconds(entries[-1].layout))
        edges = [*(entry.at for entry in entries), oldest]
        now = min(at - edges[0], seconds)
        left = seconds - now
        earlier: list[tuple[float, Entry]] = []
        for entry, since in zip(entries, edges[1:], strict=True):
            stands_for = min(entry.at - since, left)
            if stands_for > 0:
                earlier.append((stands_for, entry))
                left -= stands_for
        return Span(now_seconds=now, earlier=tuple(earlier))


def averaged(
    now: Outcome,
    now_seconds: float,
    earlier: Sequence[tuple[float, Outcome]],
    *,
    window_seconds: float,
    max_age_seconds: float,
) -> list[Part]:
    """Return the parts of an outcome, each as its mean over a window.

    A device, or an object's hold on it, that is younger than the window has no mean rather than
    that of its time so far: an autoscaler is careful with pods that it has no value of, whereas
    the first seconds of a pod, idle or warming up, would pass for its load.

    Args:
        now: every part of it has a value.
        now_seconds: the time that it stands for.
        earlier: outcomes of the same question before, each with its time, the latest first.
        window_seconds: the time that is asked for.
        max_age_seconds: an outcome whose device had not been read for longer is unknown.
    """
    means: list[Part] = []
    for part in now.parts:
        total, known = (part.value or 0.0) * now_seconds, now_seconds
        for seconds, outcome in earlier:
            then = next((p for p in outcome.parts if p.device == part.device), None)
            stale = then is None or (then.age_seconds or 0.0) > max_age_seconds
            if then is None or then.value is None or stale:
                break
            total, known = total + then.value * seconds, known + seconds
        if math.isclose(known, window_seconds, abs_tol=1e-6):
            means.append(msgspec.structs.replace(part, value=total / known))
        else:
            detail = f"for {known:.0f} of {window_seconds:.0f} s"
            absent = msgspec.structs.replace(
                part, value=None, rule=None, absence=Absence.TOO_YOUNG, detail=detail
            )
            means.append(absent)
    return means


def _tile_seconds(layout: Layout) -> float:
    return max(layout.window_seconds, SHORTEST_TILE_SECONDS)


def _packed(snapshot: Snapshot) -> bytes:
    return _encoder.encode(narrowed(snapshot, FAMILIES))
