"""Running and waiting of vGPUs, from a scheduler log that is read too seldom to be whole.

The log keeps 200 entries, which is a fraction of a second. Each entry states how long its run list
has run and waited in all, so that the newest entry of each suffices: whoever had none was not on
the GPU, and the next one tells of that time. Nothing here knows what the driver counts from, so
only differences are used, and only those that time allows.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from slicewatch.catalog.readings.vgpu import VgpuTime, VgpuWaits

# The stamp of an entry and its totals need not be of the very same moment: two of the longest
# slices that can be set.
SLACK_NS: Final = 60_000_000
# A run list that said nothing for longer is forgotten; it begins anew if it speaks again.
LONGEST_SILENCE_NS: Final = 3_600_000_000_000
# To nobody that is known.
NOBODY: Final = ""
_SIGN: Final = 2**63


class LogEntry(NamedTuple):
    """What an entry of the log says of its run list at the end of a slice, in nanoseconds."""

    runlist: int
    at: int
    run_total: int
    wait_total: int


class WaitCursor:
    """The totals of one GPU's run lists, and what they added up to since they were first seen."""

    def __init__(self) -> None:
        self._newest: dict[int, LogEntry] = {}
        self._owners: dict[int, str] = {}
        self._totals: dict[str, tuple[int, int]] = {}

    def take(self, entries: Iterable[LogEntry], running: Mapping[int, str]) -> VgpuWaits:
        """Return the reading of a log, and remember where it ends.

        Args:
            entries: in any order.
            running: uuid of each vGPU that runs, by its instance id. A run list whose id is not
                among them, and never was, belongs to nobody that is known.
        """
        self._owners |= running
        ran = waited = accepted = rejected = 0
        newest = _newest(entries)
        for entry in newest.values():
            before = self._newest.get(entry.runlist)
            owner = self._owners.get(entry.runlist, NOBODY)
            run, wait = self._totals.setdefault(owner, (0, 0))
            if before is None or entry.at <= before.at:
                continue
            added = _added(before, entry)
            if added is None:
                rejected += 1
                continue
            accepted += 1
            self._totals[owner] = (run + added[0], wait + added[1])
            ran, waited = ran + added[0], waited + added[1]
        self._newest |= newest
        self._forget(newest, running)
        totals = tuple(VgpuTime(owner, *total) for owner, total in self._totals.items())
        return VgpuWaits(totals, ran, waited, accepted, rejected)

    def _forget(self, newest: Mapping[int, LogEntry], running: Mapping[int, str]) -> None:
        if newest:
            now = max(entry.at for entry in newest.values())
            self._newest = {
                runlist: entry
                for runlist, entry in self._newest.items()
                if abs(now - entry.at) <= LONGEST_SILENCE_NS
            }
        # The log still names who ended a moment ago; that must not become somebody unknown.
        kept = self._newest.keys() | running.keys()
        self._owners = {number: uuid for number, uuid in self._owners.items() if number in kept}
        shown = {NOBODY, *running.values()}
        self._totals = {uuid: total for uuid, total in self._totals.items() if uuid in shown}


def _newest(entries: Iterable[LogEntry]) -> dict[int, LogEntry]:
    found: dict[int, LogEntry] = {}
    for entry in entries:
        before = found.get(entry.runlist)
        # Rows without a time are rows that nobody filled.
        if entry.at and (before is None or entry.at > before.at):
            found[entry.runlist] = entry
    return found


def _added(before: LogEntry, entry: LogEntry) -> tuple[int, int] | None:
    """Return the time of running and of waiting; None for what is no such time.

    A run list runs or waits or has nothing to do, so that both together are no longer than the
    time that passed. Counters that were set back, relative ones and those in another unit are not.
    """
    run = _difference(before.run_total, entry.run_total)
    wait = _difference(before.wait_total, entry.wait_total)
    possible = run >= 0 and wait >= 0 and run + wait <= entry.at - before.at + SLACK_NS
    return (run, wait) if possible else None


def _difference(before: int, now: int) -> int:
    """Return by how much a word grew, whether it is a signed one, as in the driver, or not."""
    return (now - before + _SIGN) % (2 * _SIGN) - _SIGN
