"""The tracks of all checks and GPUs, and how they outlive a restart. Decides nothing."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from health.case import Since
from health.checks.model import Action, Check, CheckId, Unknown
from health.decision import Change, Fault
from health.hysteresis import Track, orphan
from health.policy import Policy
from health.record import Kept, Key, Record

# Stands for the faults that a record had no room for.
FORGOTTEN: Final = CheckId("forgotten_faults")
_FORGOTTEN_REASON: Final = "MoreFaultsThanRecorded"
_FORGOTTEN_TITLE: Final = (
    "more faults than the node's record can hold: reboot the node, or clear them by hand"
)
_ORPHAN_REASON: Final = "FaultOfUnknownCheck"
_LONGEST_TIME: Final = 12


class Tracks:
    """What is known of each check on each GPU, and what checks remember of a GPU in this boot."""

    def __init__(self, checks: Iterable[Check], policy: Policy) -> None:
        self._checks = {check.id: check for check in checks}
        self._policy = policy
        self._tracks: dict[Key, Track] = {}
        self._baselines: dict[Key, Mapping[str, float]] = {}

    def __iter__(self) -> Iterator[tuple[Key, Track]]:
        return iter(self._tracks.items())

    def of(self, check: Check, gpu: str) -> Track:
        """Return the track of a check on a GPU."""
        key = check.id, gpu
        return self._tracks.get(key) or self._tracks.setdefault(key, Track(check, self._policy))

    def baseline(self, key: Key) -> Mapping[str, float]:
        """Return what the check remembers of the GPU."""
        return self._baselines.get(key, {})

    def remember(self, key: Key, values: Mapping[str, float]) -> None:
        """Remember this instead; nothing leaves what was."""
        if values:
            self._baselines[key] = dict(values)

    def faulty(self) -> list[Track]:
        """Return those with a fault, the strongest first and otherwise in a stable order."""
        faulty = [track for track in self._tracks.values() if track.fault is not None]
        return sorted(faulty, key=_rank)

    def lose_sight(self) -> None:
        """Nothing is known now; what was found stays."""
        for track in self._tracks.values():
            track.judgement = Unknown(why="not judged in this poll")

    def begin_boot(self) -> tuple[Change, ...]:
        """Drop what was true in the last boot only, and return what is over by that."""
        self._baselines.clear()
        for track in self._tracks.values():
            track.settle()
        return self._drop(key for key in self._tracks if key[0] == FORGOTTEN)

    def drop_gpus(self, uuids: Iterable[str]) -> tuple[Change, ...]:
        """Drop GPUs that are gone for good, and return what is over by that."""
        gone = set(uuids)
        self._baselines = {k: values for k, values in self._baselines.items() if k[1] not in gone}
        return self._drop(key for key in self._tracks if key[1] in gone)

    def leave(self, present: Iterable[str]) -> None:
        """Drop the tracks of GPUs that are not there, as far as nothing has to be remembered."""
        there = set(present)
        self._tracks = {
            key: track
            for key, track in self._tracks.items()
            if key[1] in there or track.fault is not None or track.raised
        }

    def clear(self, check: CheckId | None) -> tuple[Change, ...]:
        """Forget the faults of one check or of all, and that they ever came."""
        changes: list[Change] = []
        for key, track in tuple(self._tracks.items()):
            if check in {None, key[0]}:
                changes += track.forget()
                if key[0] not in self._checks:
                    del self._tracks[key]
        return tuple(changes)

    def ignore(self, fingerprints: Iterable[str]) -> None:
        """Mark faults as no reason to cordon until they are over."""
        ignored = set(fingerprints)
        for track in self._tracks.values():
            if track.fault is not None and track.fault.fingerprint in ignored:
                track.ignored = True

    def record(self, boot_id: str) -> Record:
        """Return what has to outlive a restart."""
        return Record(
            boot_id=boot_id,
            faults=tuple(_kept(t) for t in self.faulty() if not _is_minor(t)),
            past={key: t.cordoned_at for key, t in self if t.fault is None and t.cordoned_at},
            baselines=dict(sorted(self._baselines.items())),
        )

    def date(self, boot_id: str, driver_run: str) -> None:
        """Take faults of a time that is not known for faults of this boot."""
        for track in self._tracks.values():
            if track.fault is not None and not track.fault.since.boot_id:
                since = replace(track.fault.since, boot_id=boot_id, driver_run=driver_run)
                track.fault = replace(track.fault, since=since)

    def restore(self, record: Record) -> None:
        """Take over a record; what is known already wins."""
        for key, values in record.baselines.items():
            self._baselines.setdefault(key, values)
        for key, raised in record.past.items():
            if key[0] in self._checks:
                self.of(self._checks[key[0]], key[1]).remember_cordons(raised)
        for kept in record.faults:
            self._restore(kept)
        if record.forgotten is Action.CORDON:
            self._restore(_forgotten(record.boot_id))

    def restore_from(self, mark: str) -> None:
        """Take over the fault that a mark of ours names, where there is no record to know it by."""
        check, _, rest = mark.partition("/")
        gpu, _, at_seconds = rest.rpartition("/")
        if check and gpu and at_seconds.isdecimal() and len(at_seconds) <= _LONGEST_TIME:
            fault = Fault(
                check=CheckId(check),
                reason="",
                message="",
                action=Action.CORDON,
                since=Since(boot_id="", driver_run="", at_seconds=float(at_seconds)),
                gpu="" if gpu == "node" else gpu,
            )
            self._restore(Kept(fault=fault))

    def _restore(self, kept: Kept) -> None:
        """Take over a fault.

        One of a check that this program does not have cannot be found to be over. If it has not
        asked for a cordon it is dropped; if it has, it stays until a human clears it.
        """
        fault = kept.fault
        check = self._checks.get(fault.check)
        if check is not None:
            track = self.of(check, fault.gpu)
        elif fault.action is Action.CORDON:
            track = self._orphan(fault)
        else:
            return
        if track.fault is None:
            track.restore(
                replace(
                    fault,
                    reason=fault.reason or track.check.reason,
                    message=fault.message or track.check.title,
                ),
                ignored=kept.ignored,
                raised=kept.raised,
            )

    def _orphan(self, fault: Fault) -> Track:
        title = f"found by the check {fault.check}, which this version does not have"
        key = fault.check, fault.gpu
        reason = fault.reason or _ORPHAN_REASON
        track = orphan(fault.check, reason, fault.message or title, self._policy)
        return self._tracks.setdefault(key, track)

    def _drop(self, keys: Iterable[Key]) -> tuple[Change, ...]:
        changes: list[Change] = []
        for key in tuple(keys):
            changes += self._tracks.pop(key).end()
        return tuple(changes)


def _rank(track: Track) -> tuple[int, float, int, str, str]:
    """Order faults: by strength, then the oldest, then by place."""
    fault = track.fault
    if fault is None:
        raise ValueError("a track without a fault has no rank")
    index = -1 if fault.index is None else fault.index
    return -fault.action, fault.since.at_seconds, index, fault.gpu, fault.check


def _is_minor(track: Track) -> bool:
    return track.fault is None or track.fault.action is Action.RECORD


def _kept(track: Track) -> Kept:
    fault = track.fault
    if fault is None:
        raise ValueError("there is no fault to keep")
    usual = fault.reason == track.check.reason
    return Kept(
        fault=replace(fault, reason="" if usual else fault.reason),
        ignored=track.ignored,
        raised=track.cordoned_at,
    )


def _forgotten(boot_id: str) -> Kept:
    return Kept(
        fault=Fault(
            check=FORGOTTEN,
            reason=_FORGOTTEN_REASON,
            message=_FORGOTTEN_TITLE,
            action=Action.CORDON,
            since=Since(boot_id=boot_id, driver_run="", at_seconds=0.0),
        )
    )
