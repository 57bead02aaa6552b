"""What is known of a node's GPUs over time, and what follows from it.

Pure: it is given evidence and two clocks, and says what it thinks; it reads and writes nothing,
and what becomes of its wish is weighed elsewhere (``health.ownership``, the budget). Each check on
each GPU goes by its own rules (``health.hysteresis``); a check that fails costs its own verdict.

A cordon is released only after enough good polls of this process's own: whatever a restart, a
broken record or a hand on the annotations has made it forget, it looks first.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from health.case import Case, Thresholds, driver_run
from health.checks.model import (
    Action,
    Check,
    CheckId,
    Condition,
    Healthy,
    Judgement,
    Subject,
    Unhealthy,
    Unknown,
)
from health.conditions import Obstacle, Shown, answered_by, condition_of, conditions
from health.decision import Change, Decision, NodeCondition, State, Wish
from health.history import NODE, History, Sighting
from health.hysteresis import Moment, Track
from health.policy import Policy
from health.record import NewerRecordError, RecordError, decode, encode
from health.tracks import Tracks
from slicewatch.wire.evidence import Evidence, EvidenceError

ALL: Final = "true"
"""What a human writes to have the faults of all checks forgotten."""

_SILENT: Final = "ExporterSilent"
_NEWER: Final = "RecordOfNewerVersion"


class UnknownCheckError(LookupError):
    """There is no such check, and no fault of one."""


class Engine:
    """Decides for one node, from one poll to the next.

    Nothing is wished, written or shown before ``restore``.

    Attributes:
        thresholds: the operator's; may be changed between two polls.
    """

    def __init__(self, checks: Iterable[Check], thresholds: Thresholds, policy: Policy) -> None:
        self.thresholds = thresholds
        self._checks = tuple(checks)
        self._policy = policy
        self._history = History()
        self._tracks = Tracks(self._checks, policy)
        self._boot = ""
        self._gpus: Collection[str] = ()
        self._heard_at: float | None = None
        self._quiet_since = 0.0
        self._silence = ""
        self._is_restored = False
        self._is_trusted = False
        self._read_only = ""
        self._fine: set[Condition] = set()
        self._examined: set[str] = set()
        self._standing: frozenset[Condition] = frozenset()
        self._good_polls = 0
        self._is_good = False

    def restore(self, text: str, *, mark: str = "", standing: Collection[Condition] = ()) -> str:
        """Take over what the node says was decided before; to be called before the first poll.

        May be called again while a decision is ``read_only``, in case a human has intervened.

        Args:
            text: the annotation with the record; empty where there is none.
            mark: the annotation that marks a cordon as ours; empty where there is none.
            standing: our conditions that are True now. They are not taken back before there have
                been enough good polls.

        Returns:
            Why the record was not taken over; empty if it was.
        """
        self._is_restored, self._read_only, problem = True, "", ""
        self._standing = frozenset(standing)
        try:
            record = decode(text) if text else None
        except NewerRecordError as error:
            self._read_only = problem = str(error)
            return problem
        except RecordError as error:
            record, problem = None, str(error)
        self._is_trusted = not problem
        if record is None:
            self._tracks.restore_from(mark)
            return problem
        self._boot = self._boot or record.boot_id
        self._tracks.restore(record)
        for _, gpu in record.baselines:
            self._history.knew(gpu)
        for kept in record.faults:
            self._history.knew(kept.fault.gpu, kept.fault.pci_bus_id)
        return ""

    def heard(self, evidence: Evidence, now: float, wall: float) -> Decision:
        """Return what follows from an answer of the exporter.

        Args:
            evidence: what it says.
            now: when that arrived, monotonic.
            wall: the same in seconds since 1970.
        """
        self._heard_at = self._quiet_since = now
        self._silence = ""
        changes = list(self._enter(evidence))
        sighting = self._history.take(evidence, now)
        self._gpus = frozenset(sighting.gpus)
        changes += self._tracks.drop_gpus(sighting.replaced)
        self._tracks.leave({NODE, *sighting.gpus})
        for check in self._checks:
            for moment in self._moments(check, evidence, sighting, now, wall):
                changes += self._judge(check, moment)
        self._weigh()
        return self._decide(changes, now)

    def silent(self, why: str, now: float, wall: float) -> Decision:  # noqa: ARG002 - as heard
        """Return what follows from the exporter not having answered.

        For a while nothing does; then nothing is known any more, and the faults stay.
        """
        if not self._silence:
            self._silence = why
            self._quiet_since = now if self._heard_at is None else self._heard_at
        self._is_good = False
        if self._is_deaf(now):
            self._good_polls = 0
            self._tracks.lose_sight()
        return self._decide([], now)

    def clear(self, what: str, now: float) -> Decision:
        """Forget faults, once, because a human said so; what is still there is found again.

        To go with the patch that removes the annotation.

        Args:
            what: ``true`` for those of all checks, or the id of one.
            now: monotonic.

        Raises:
            UnknownCheckError: there is no check of that name.
        """
        check = None if what.strip().lower() == ALL else CheckId(what.strip())
        known = {one.id for one in self._checks} | {key[0] for key, _ in self._tracks}
        if check is not None and check not in known:
            raise UnknownCheckError(
                f"no check is called {check!r}; write {ALL!r} for all, or one of"
                f" {', '.join(sorted(known))}"
            )
        return self._decide(self._tracks.clear(check), now)

    def ignore(self, fingerprints: Iterable[str], now: float) -> Decision:
        """Take it that these faults are no reason to cordon, until they are over.

        To go with the patch that gives up the cordon.
        """
        self._tracks.ignore(fingerprints)
        return self._decide([], now)

    def _enter(self, evidence: Evidence) -> Iterable[Change]:
        """Begin a poll, and a boot if it is one of another boot."""
        self._tracks.lose_sight()
        boot = evidence.boot_id
        changes: Iterable[Change] = ()
        if boot and self._boot and boot != self._boot:
            self._history.forget_polls()
            changes = self._tracks.begin_boot()
        self._boot = boot or self._boot
        self._tracks.date(self._boot, driver_run(evidence))
        return changes

    def _moments(
        self, check: Check, evidence: Evidence, sighting: Sighting, now: float, wall: float
    ) -> Iterator[Moment]:
        """Yield each subject that a check has in this poll."""
        settled = min(evidence.uptime_seconds, evidence.driver.seconds)
        gpus = sighting.gpus.values() if check.subject is Subject.GPU else (None,)
        for gpu in gpus:
            yield Moment(
                now=now,
                wall=wall,
                boot_id=self._boot,
                driver_run=driver_run(evidence),
                grace=settled < self._policy.grace_seconds,
                gpu=gpu,
            )

    def _judge(self, check: Check, at: Moment) -> tuple[Change, ...]:
        uuid = at.gpu.device.uuid if at.gpu else NODE
        track = self._tracks.of(check, uuid)
        found = judgement(
            check,
            Case(
                polls=self._history.polls(uuid),
                thresholds=self.thresholds,
                baseline=self._tracks.baseline((check.id, uuid)),
                raised=track.fault.since if track.fault else None,
            ),
        )
        if not isinstance(found, Unknown):
            self._tracks.remember((check.id, uuid), found.baseline)
            self._examined.add(uuid)
        if isinstance(found, Healthy):
            self._fine |= answered_by(check)
        return track.take(found, at)

    def _weigh(self) -> None:
        """Count good polls: those that find nothing to cordon for, and could have found it.

        A poll that does not know this counts for nothing.
        """
        seen: set[str] = set()
        waits = False
        for (_, uuid), track in self._tracks:
            if track.check.action is not Action.CORDON or track.ignored:
                continue
            found = track.judgement
            if isinstance(found, Unhealthy) and track.strength(found) is Action.CORDON:
                self._good_polls, self._is_good = 0, False
                return
            if isinstance(found, Healthy):
                seen.add(uuid)
            elif track.cordons:
                waits = True
        self._is_good = bool(seen) and seen.issuperset(self._gpus) and not waits
        self._good_polls += self._is_good

    def _decide(self, changes: Iterable[Change], now: float) -> Decision:
        faulty = self._tracks.faulty()
        return Decision(
            faults=tuple(track.shown for track in faulty if track.shown is not None),
            states={key: track.state for key, track in self._tracks},
            conditions=self._conditions(faulty, now) if self._is_restored else {},
            wish=self._wish(faulty, now),
            changes=tuple(changes),
            ignored=frozenset(
                track.fault.fingerprint for track in faulty if track.fault and track.ignored
            ),
            record=self._record(),
            read_only=self._read_only,
            next_due_seconds=self._due_seconds(now),
        )

    def _wish(self, faulty: Iterable[Track], now: float) -> Wish:
        if not self._is_restored or self._read_only or not self._policy.auto_cordon:
            return Wish.KEEP
        grounds = [track for track in faulty if track.cordons and not track.ignored]
        if grounds:
            # What was heard too long ago, or only by an earlier process, is no ground to act on,
            # and neither is what is just found to be over.
            is_known = self._heard_at is not None and not self._is_deaf(now)
            is_there = any(track.state is not State.RECOVERING for track in grounds)
            return Wish.CORDON if is_known and is_there else Wish.KEEP
        is_well = self._is_good and self._good_polls >= self._policy.good_polls
        return Wish.RELEASE if is_well else Wish.KEEP

    def _conditions(self, faulty: Iterable[Track], now: float) -> dict[Condition, NodeCondition]:
        shown = [
            Shown(condition=condition, fault=track.shown)
            for track in faulty
            if track.shown is not None
            and (condition := condition_of(track.check, track.shown.action)) is not None
        ]
        # What is well says nothing of a GPU that nobody has been able to look at yet.
        fine = set(self._fine) if self._examined.issuperset(self._gpus) else set()
        if self._heard_at is not None:
            fine.add(Condition.UNMONITORED)
        if self._good_polls >= self._policy.good_polls:
            self._standing = frozenset()
        return conditions(
            shown,
            gpus=self._gpus,
            fine=fine - self._standing,
            obstacles=tuple(self._obstacles(now)),
        )

    def _obstacles(self, now: float) -> Iterator[Obstacle]:
        if self._is_deaf(now):
            why = f"the exporter does not answer: {self._silence}"
            yield Obstacle(reason=_SILENT, message=why)
        if self._read_only:
            yield Obstacle(reason=_NEWER, message=self._read_only)

    def _record(self) -> str:
        """Return what to write; nothing over what was not understood and is not replaced yet."""
        is_known = self._is_trusted or self._heard_at is not None
        if not self._is_restored or self._read_only or not is_known:
            return ""
        return encode(self._tracks.record(self._boot))

    def _is_deaf(self, now: float) -> bool:
        """Tell whether the exporter has been silent for so long that nothing is known any more."""
        return bool(self._silence) and now - self._quiet_since >= self._policy.silence_seconds

    def _due_seconds(self, now: float) -> float:
        """Return when silence is to be looked at again: when it is long enough to mean something."""
        left = self._quiet_since + self._policy.silence_seconds - now
        is_short = bool(self._silence) and left > 0
        return (
            min(left, self._policy.interval_seconds) if is_short else self._policy.interval_seconds
        )


def judgement(check: Check, case: Case) -> Judgement:
    """Return what a check says of a case; one that fails costs its own verdict."""
    try:
        return check.judge(case)
    except EvidenceError as error:
        return Unknown(why=str(error))
    except Exception as error:  # noqa: BLE001 - the boundary of a check: it costs its own verdict
        return Unknown(why=f"the check failed: {type(error).__name__}: {error}")
