"""What a monitor has to know of after a restart, as the text of one annotation of its node.

The API server is the only store: a DaemonSet's pod may come back on a new disk. An annotation is
read by all who list nodes, so the text stays under ``RECORD_BYTES`` whatever happens: the
strongest faults come first, and if some do not fit, the record says how strong they were, so that
forgetting never looks like recovery. Nothing here decides what is done about a fault.
"""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Final, TypeVar

import msgspec

from health.case import Since
from health.checks.model import Action, CheckId
from health.decision import Fault

RECORD_VERSION: Final = 1
RECORD_BYTES: Final = 2000

V = TypeVar("V", bound=Sized)

Key = tuple[CheckId, str]
"""A check, and the uuid of a GPU or the empty string for the node."""


class RecordError(ValueError):
    """The text is no record; the message says what is wrong with it."""


class NewerRecordError(RecordError):
    """The record is of a version that this program does not know: it is to be left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A fault as it is kept.

    Attributes:
        fault: its ``reason`` empty for the check's own, its ``message`` for want of room.
        ignored: a human has decided that it is no reason to cordon.
        raised: when it asked for a cordon within a day, in seconds since 1970.
    """

    fault: Fault
    ignored: bool = False
    raised: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All that is kept.

    Attributes:
        boot_id: of the kernel's life that the baselines are of.
        faults: the most important first.
        past: of faults that are over: when they asked for a cordon within a day.
        baselines: what checks remember of a GPU.
        forgotten: how strong the strongest fault was that did not fit; None for none.
    """

    boot_id: str = ""
    faults: tuple[Kept, ...] = ()
    past: Mapping[Key, tuple[float, ...]] = field(default_factory=lambda: MappingProxyType({}))
    baselines: Mapping[Key, Mapping[str, float]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    forgotten: Action | None = None


_Position = Annotated[int, msgspec.Meta(ge=0)]
_Time = Annotated[int, msgspec.Meta(ge=0, le=10**12)]


class _Fault(msgspec.Struct, array_like=True):
    gpu: _Position = 0
    action: Action = Action.RECORD
    since: _Time = 0
    era: _Position = 0
    ignored: int = 0
    raised: list[_Time] = []
    reason: str = ""
    message: str = ""


class _Past(msgspec.Struct, array_like=True):
    gpu: _Position
    raised: list[_Time]


class _Gpu(msgspec.Struct, array_like=True):
    uuid: str = ""
    index: int | None = None
    pci_bus_id: str = ""


class _Era(msgspec.Struct, array_like=True):
    boot_id: str
    driver_run: str


class _Text(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The record as JSON, rows of which end before what is as usual. GPUs, the node among them by an empty name, and eras stand once."""

    version: int
    boot: str = ""
    gpus: list[_Gpu] = []
    eras: list[_Era] = []
    faults: dict[str, list[_Fault]] = {}
    past: dict[str, list[_Past]] = {}
    baselines: dict[str, dict[str, list[float | None]]] = {}
    forgotten: Action | None = None


class _Version(msgspec.Struct):
    version: int


# What is read where a row has ended.
_USUAL: Final[tuple[object, ...]] = (None, "", 0, [])
_decoder: Final = msgspec.json.Decoder(_Text)


def decode(text: str) -> Record:
    """Return the record in the text of an annotation.

    Raises:
        NewerRecordError: it is of another version than this program writes.
        RecordError: it is none.
    """
    try:
        version = msgspec.json.decode(text, type=_Version).version
        if version != RECORD_VERSION:
            raise NewerRecordError(
                f"the record is of version {version}, this program knows {RECORD_VERSION}: run a"
                " version that knows it, or delete the annotation"
            )
        return _read(_decoder.decode(text))
    except (msgspec.DecodeError, RecursionError, IndexError) as error:
        raise RecordError(f"not a record of faults: {error}") from error


def encode(record: Record, limit: int = RECORD_BYTES) -> str:
    """Return a record as text of at most so many bytes.

    Faults come first, then those that are over, then the words, then the baselines. Of what does
    not fit, only the faults leave a trace: ``forgotten``.
    """
    draft = _Draft(record, limit)
    draft.add_faults(record.faults)
    draft.add_past(record.past)
    draft.add_messages(record.faults)
    draft.add_baselines(record.baselines)
    return draft.encoded().decode()


class _Draft:
    """A text that grows as long as there is room."""

    def __init__(self, record: Record, limit: int) -> None:
        self.text = _Text(version=RECORD_VERSION, boot=record.boot_id, forgotten=record.forgotten)
        self._limit = limit
        self._written: list[_Fault] = []
        if not self._fits():
            self.text.boot = ""

    def encoded(self) -> bytes:
        """Return it as JSON, each row without the fields at its end that are as usual."""
        plain = msgspec.to_builtins(self.text)
        for rows in (plain.get("gpus", []), *plain.get("faults", {}).values()):
            for row in rows:
                while row and row[-1] in _USUAL:
                    row.pop()
        return msgspec.json.encode(plain)

    def add_faults(self, faults: Sequence[Kept]) -> None:
        for position, kept in enumerate(faults):
            if not self._add_fault(kept):
                left = [kept.fault.action for kept in faults[position:]]
                self.text.forgotten = max(self.text.forgotten or Action.RECORD, *left)
                return

    def add_messages(self, faults: Sequence[Kept]) -> None:
        for kept, written in zip(faults, self._written, strict=False):
            written.message = kept.fault.message
            if not self._fits():
                written.message = ""

    def add_past(self, past: Mapping[Key, tuple[float, ...]]) -> None:
        for (check, uuid), raised in past.items():
            gpus = len(self.text.gpus)
            rows = self.text.past.setdefault(check, [])
            rows.append(_Past(gpu=self._gpu(uuid), raised=[round(at) for at in raised]))
            if not self._fits():
                rows.pop()
                _drop_empty(self.text.past, check)
                del self.text.gpus[gpus:]

    def add_baselines(self, baselines: Mapping[Key, Mapping[str, float]]) -> None:
        columns: dict[tuple[str, str], dict[str, float]] = {}
        for (check, uuid), values in baselines.items():
            for name, value in values.items():
                columns.setdefault((check, name), {})[uuid] = value
        for (owner, name), column in columns.items():
            gpus = len(self.text.gpus)
            rows = self.text.baselines.setdefault(owner, {})
            rows[name] = self._column(column)
            if not self._fits():
                del rows[name]
                _drop_empty(self.text.baselines, owner)
                del self.text.gpus[gpus:]

    def _add_fault(self, kept: Kept) -> bool:
        fault = kept.fault
        gpus, eras = len(self.text.gpus), len(self.text.eras)
        rows = self.text.faults.setdefault(fault.check, [])
        written = _Fault(
            gpu=self._gpu(fault.gpu, fault.index, fault.pci_bus_id),
            action=fault.action,
            since=round(fault.since.at_seconds),
            era=self._era(fault.since),
            ignored=int(kept.ignored),
            raised=[round(at) for at in kept.raised if at != fault.since.at_seconds],
            reason=fault.reason,
        )
        rows.append(written)
        if self._fits(reserve=_FORGOTTEN_BYTES):
            self._written.append(written)
            return True
        rows.pop()
        _drop_empty(self.text.faults, fault.check)
        del self.text.gpus[gpus:]
        del self.text.eras[eras:]
        return False

    def _column(self, values: Mapping[str, float]) -> list[float | None]:
        for uuid in values:
            self._gpu(uuid)
        column = [values.get(gpu.uuid) for gpu in self.text.gpus]
        return [None if value is None else _short(value) for value in column]

    def _gpu(self, uuid: str, index: int | None = None, pci_bus_id: str = "") -> int:
        for position, gpu in enumerate(self.text.gpus):
            if gpu.uuid == uuid:
                return position
        self.text.gpus.append(_Gpu(uuid=uuid, index=index, pci_bus_id=pci_bus_id))
        return len(self.text.gpus) - 1

    def _era(self, since: Since) -> int:
        era = _Era(boot_id=since.boot_id, driver_run=since.driver_run)
        if era not in self.text.eras:
            self.text.eras.append(era)
        return self.text.eras.index(era)

    def _fits(self, reserve: int = 0) -> bool:
        return len(self.encoded()) + reserve <= self._limit


# What it takes to say that there was more.
_FORGOTTEN_BYTES: Final = len(',"forgotten":3')


def _short(value: float) -> float:
    return int(value) if float(value).is_integer() else value


def _drop_empty(rows: dict[str, V], check: str) -> None:
    if not rows[check]:
        del rows[check]


def _read(text: _Text) -> Record:
    faults = [
        _kept(text, CheckId(check), row) for check, rows in text.faults.items() for row in rows
    ]
    past = {
        (CheckId(check), text.gpus[row.gpu].uuid): tuple(float(at) for at in row.raised)
        for check, rows in text.past.items()
        for row in rows
    }
    return Record(
        boot_id=text.boot,
        faults=tuple(faults),
        past=past,
        baselines=_baselines(text),
        forgotten=text.forgotten,
    )


def _kept(text: _Text, check: CheckId, row: _Fault) -> Kept:
    gpu = text.gpus[row.gpu]
    era = text.eras[row.era]
    fault = Fault(
        check=check,
        reason=row.reason,
        message=row.message,
        action=row.action,
        since=Since(boot_id=era.boot_id, driver_run=era.driver_run, at_seconds=float(row.since)),
        gpu=gpu.uuid,
        index=gpu.index,
        pci_bus_id=gpu.pci_bus_id,
        raises=len(row.raised) + 1,
    )
    raised = [float(at) for at in row.raised]
    if row.action is Action.CORDON:
        raised.append(fault.since.at_seconds)
    return Kept(fault=fault, ignored=bool(row.ignored), raised=tuple(raised))


def _baselines(text: _Text) -> dict[Key, dict[str, float]]:
    found: dict[Key, dict[str, float]] = {}
    for check, columns in text.baselines.items():
        for name, column in columns.items():
            for gpu, value in enumerate(column):
                if value is not None:
                    key = CheckId(check), text.gpus[gpu].uuid
                    found.setdefault(key, {})[name] = value
    return found
