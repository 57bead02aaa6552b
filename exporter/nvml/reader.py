"""One pass over a GPU and its MIG devices. Knows nothing of threads; one at a time may use it."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from exporter.nvml.plan import Plan
from exporter.nvml.protocol import Failed, Lost, Outcome, Session, Unsupported, Value
from slicewatch.catalog.model import Probe
from slicewatch.wire.layout import Device

# "Unsupported" holds until the device changes, but for a permission or a module that somebody
# mends meanwhile.
ASK_AGAIN_SECONDS = 300.0
# A tick begins a little earlier or later than its second: a read that is due by less than this
# is made now, or five seconds would sometimes be six ticks.
EARLY_SECONDS = 0.25
# Probes with their places in the plan.
Asked = tuple[tuple[int, Probe[Any]], ...]
# What the resolution of the devices is called beside the probes, in logs and metrics.
RESOLUTION = "devices"
OPENING = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """What one pass brought.

    Attributes:
        gpu: the GPU as it was when its session was opened.
        plan: what was read of them.
        devices: what the pass found, or why it found nothing.
        readings: per device of ``devices``, one outcome per probe of its plan; None where the
            probe was not due.
        at: monotonic seconds of the end of the pass.
        spent: seconds by probe.
        failed: probes of which at least one read failed.
        mig_change_pending: the GPU gets another MIG mode once it is reset.
    """

    gpu: Device
    plan: Plan
    devices: Outcome[tuple[Device, ...]]
    readings: tuple[tuple[Outcome[Any] | None, ...], ...] = ()
    at: float
    spent: dict[str, float]
    failed: frozenset[str] = frozenset()
    mig_change_pending: bool = False


class Agenda:
    """What is read of one device, what it was found not to support, and what is due when.

    Attributes:
        known: per probe, that the device cannot be asked; None where it can.
    """

    def __init__(self, device: Device, probes: Sequence[Probe[Any]]) -> None:
        self.device = device
        self._probes = tuple(enumerate(probes))
        self.known: list[Outcome[Any] | None] = []
        self._always: Asked = ()
        self._sometimes: Asked = ()
        self._due_at: dict[int, float] = {}
        self._next_at = 0.0
        self.forget_unsupported()

    def due(self, now: float) -> Asked:
        """Return what to ask in a pass that begins now, and take it for asked."""
        if now < self._next_at:
            return self._always
        due = tuple((i, p) for i, p in self._sometimes if self._due_at.get(i, now) <= now)
        later = now - EARLY_SECONDS
        self._due_at |= {index: later + probe.interval_seconds for index, probe in due}
        self._next_at = min(self._due_at.values(), default=math.inf)
        return self._always + due

    def refuse(self, index: int, outcome: Unsupported) -> None:
        """Do not ask for a probe any more."""
        self.known[index] = outcome
        self._always = tuple((i, p) for i, p in self._always if i != index)
        self._sometimes = tuple((i, p) for i, p in self._sometimes if i != index)
        self._due_at.pop(index, None)

    def forget_unsupported(self) -> None:
        """Ask for everything once more."""
        self.known = [None] * len(self._probes)
        self._always = tuple((i, p) for i, p in self._probes if not p.interval_seconds)
        self._sometimes = tuple((i, p) for i, p in self._probes if p.interval_seconds)
        self._next_at = 0.0


class Reader:
    """Runs the plan of one GPU through its session, and tells which call it is in.

    Args:
        open_session: called with the first pass, since it may block.

    Attributes:
        plan: may be replaced at any time; holds from the next pass on.
    """

    def __init__(
        self,
        gpu: Device,
        open_session: Callable[[Device], Session],
        plan: Plan,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.gpu = gpu
        self._open_session = open_session
        self._session: Session | None = None
        self.plan = self._agreed = plan
        self._clock = clock
        self._call = ""
        self._called_at = 0.0
        self._devices: tuple[Device, ...] = ()
        self._agendas: tuple[Agenda, ...] = ()
        self._ask_again_at = 0.0

    @property
    def call(self) -> str:
        """Return the call that the pass is in; empty outside of one. For any thread."""
        return self._call

    @property
    def call_seconds(self) -> float:
        """Return how long that call takes already. For any thread."""
        return self._clock() - self._called_at

    def attempt(self) -> Cycle | Exception:
        """Read everything that is due, once; a fault in our own code is returned."""
        try:
            if self._session is None:
                self._called_at, self._call = self._clock(), OPENING
                self._session = self._open_session(self.gpu)
            return self._cycle(self._session)
        except Exception as error:  # noqa: BLE001 - raised again where the passes are taken
            return error
        finally:
            self._call = ""

    def close(self) -> None:
        """Give up the session."""
        if self._session is not None:
            self._session.close()

    def _cycle(self, session: Session) -> Cycle:
        began = self._called_at = self._clock()
        self._agree(self.plan)
        self._call = RESOLUTION
        found = session.devices()
        spent = {RESOLUTION: self._clock() - began}
        if not isinstance(found, Value):
            return self._result(found, spent)
        failed: set[str] = set()
        readings = []
        for agenda in self._agendas_of(found.value, began):
            outcomes, lost = self._read(session, agenda, began, spent, failed)
            if lost is not None:
                return self._result(lost, spent)
            readings.append(outcomes)
        return self._result(found, spent, tuple(readings), frozenset(failed))

    def _result(
        self,
        devices: Outcome[tuple[Device, ...]],
        spent: dict[str, float],
        readings: tuple[tuple[Outcome[Any] | None, ...], ...] = (),
        failed: frozenset[str] = frozenset(),
    ) -> Cycle:
        return Cycle(
            gpu=self.gpu, plan=self._agreed, devices=devices, readings=readings,
            at=self._clock(), spent=spent, failed=failed,
            mig_change_pending=self._session is not None and self._session.mig_change_pending,
        )  # fmt: skip

    def _agree(self, plan: Plan) -> None:
        if plan is not self._agreed:
            self._agreed = plan
            self._devices, self._agendas = (), ()

    def _read(
        self,
        session: Session,
        agenda: Agenda,
        began: float,
        spent: dict[str, float],
        failed: set[str],
    ) -> tuple[tuple[Outcome[Any] | None, ...], Lost | None]:
        """Read one device; ends early where the GPU is lost, which is then the second item."""
        outcomes = agenda.known.copy()
        device, clock, read = agenda.device, self._clock, session.read
        before = clock()
        for index, probe in agenda.due(began):
            self._called_at = before
            name = self._call = probe.name
            outcome: Outcome[Any] = read(probe, device)
            after = clock()
            spent[name] = spent.get(name, 0.0) + after - before
            before = after
            outcomes[index] = outcome
            if type(outcome) is Value:
                continue
            if isinstance(outcome, Lost):
                return tuple(outcomes), outcome
            if isinstance(outcome, Unsupported):
                agenda.refuse(index, outcome)
            elif isinstance(outcome, Failed):
                failed.add(name)
        return tuple(outcomes), None

    def _agendas_of(self, devices: tuple[Device, ...], now: float) -> tuple[Agenda, ...]:
        """Return the agendas of these devices; a device that stayed the same keeps its own."""
        if devices != self._devices:
            kept = {agenda.device: agenda for agenda in self._agendas}
            self._devices = devices
            self._agendas = tuple(
                kept.get(d) or Agenda(d, self._agreed.of_device(d).probes) for d in devices
            )
        if now >= self._ask_again_at:
            self._ask_again_at = now + ASK_AGAIN_SECONDS
            for agenda in self._agendas:
                agenda.forget_unsupported()
        return self._agendas
