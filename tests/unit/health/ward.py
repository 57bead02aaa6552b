"""A node under observation: an engine, scripted checks, and clocks that the test turns."""

from collections.abc import Iterable
from dataclasses import replace

from health.case import Case, Thresholds
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
from health.decision import Decision
from health.engine import Engine
from health.policy import Policy
from testbed.evidence import evidence, gpu, uuid_of

GOOD = Healthy()
BAD = Unhealthy(message="it is ill")
NOW = Unhealthy(message="it is ill", at_once=True)
DARK = Unknown(why="cannot be read")

EPOCH = 1_700_000_000.0

NODE = None


class Ward:
    """Polls once a minute.

    Attributes:
        says: what a check says of the GPU at an index (or NODE); GOOD where nothing is set.
        cases: the last case that each check was given, by the same keys.
        polled: what every poll says besides.
    """

    def __init__(self, *checks: Check, policy: Policy | None = None, gpus: int = 2) -> None:
        self.says: dict[tuple[str, int | None], Judgement] = {}
        self.cases: dict[tuple[str, int | None], Case] = {}
        self.checks = tuple(replace(check, judge=self._judge_of(check)) for check in checks)
        self.policy = policy or Policy()
        self.gpus = [gpu(index) for index in range(gpus)]
        self.polled: dict[str, object] = {}
        self.now = 1000.0
        self.wall = EPOCH
        self.decision: Decision | None = None
        self.changes: list[tuple[str, bool]] = []
        self.engine = self._new_engine()
        self.engine.restore("")

    def poll(self, times: int = 1, seconds: float = 60.0, **said: object) -> Decision:
        """Let the exporter answer so often, and return the last decision."""
        for _ in range(times):
            self.pass_time(seconds)
            heard = evidence(self.gpus, **(self.polled | said))  # type: ignore[arg-type]
            self._note(self.engine.heard(heard, self.now, self.wall))
        return self.decision

    def quiet(self, times: int = 1, why: str = "timeout") -> Decision:
        """Let the exporter not answer so often."""
        for _ in range(times):
            self.pass_time(60)
            self._note(self.engine.silent(why, self.now, self.wall))
        return self.decision

    def restart(self, record: str | None = None, **known: object) -> str:
        """Begin a new process that knows the record only."""
        text = self.decision.record if record is None and self.decision else record or ""
        self.engine = self._new_engine()
        self.now = 50.0
        return self.engine.restore(text, **known)  # type: ignore[arg-type]

    def clear(self, what: str) -> Decision:
        self._note(self.engine.clear(what, self.now))
        return self.decision

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.wall += seconds

    @property
    def faults(self) -> list[tuple[str, int | None]]:
        """The faults as check and index."""
        return [(fault.check, fault.index) for fault in self.decision.faults]

    def condition(self, condition: Condition = Condition.UNHEALTHY) -> bool | str | None:
        """What a condition says; ``left`` where it is left as it is."""
        said = self.decision.conditions.get(condition)
        return "left" if said is None else said.present

    def message(self, condition: Condition = Condition.UNHEALTHY) -> str:
        return self.decision.conditions[condition].message

    def _note(self, decision: Decision) -> None:
        self.decision = decision
        self.changes += [(change.fault.reason, change.raised) for change in decision.changes]

    def _new_engine(self) -> Engine:
        return Engine(self.checks, Thresholds(), self.policy)

    def _judge_of(self, check: Check):
        def judge(case: Case) -> Judgement:
            index = case.gpu.device.gpu if check.subject is Subject.GPU else NODE
            self.cases[check.id, index] = case
            said = self.says.get((check.id, index), GOOD)
            if isinstance(said, Exception):
                raise said
            return said

        return judge


def check(name: str, action: Action = Action.CORDON, **declared: object) -> Check:
    """Return a check that a ward gives its judge."""
    made = {
        "id": CheckId(name),
        "title": f"{name} was found",
        "reason": name.title().replace("_", ""),
        "action": action,
        "judge": lambda _: GOOD,
        "raise_seconds": 120.0,
        "clear_seconds": 300.0,
    } | declared
    return Check(**made)  # type: ignore[arg-type]


def uuids(indexes: Iterable[int]) -> list[str]:
    return [uuid_of(index) for index in indexes]
