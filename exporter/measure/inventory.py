"""Which rows there are: one per GPU that was ever seen, and those of the MIG instances on it.

A GPU is known by its uuid: its index is another one once a GPU before it has fallen off the bus.
It keeps its row when it does not answer any more, so that it is seen to be missing; the rows of
its MIG instances go with it, since nobody can say whether they still exist.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from exporter.measure.row import Row
from exporter.measure.windows import Grid
from exporter.nvml.protocol import Failed, Lost, Slot, Unsupported, Value
from slicewatch.wire.layout import Device

NOT_FOUND = "gpu_not_found"


@dataclass(slots=True)
class GpuState:
    """One GPU: its own row first, those of its MIG instances behind it.

    Attributes:
        found_at: monotonic seconds of the start of NVML that first found it: until its first pass
            that is all that is known of it, and no reason to call it down.
        placed: the devices that the rows were last made for.
        silent: why it does not answer, in one word; empty while it does.
    """

    rows: list[Row]
    found_at: float
    placed: tuple[Device, ...] = ()
    silent: str = ""

    def last_seen_at(self) -> float:
        """Return when the GPU last answered."""
        at = self.rows[0].at
        return self.found_at if at is None else at

    @property
    def device(self) -> Device:
        """Return the GPU itself."""
        return self.rows[0].device


class Inventory:
    """The GPUs of a node, in the order of their indices, with their rows.

    Args:
        grid: of the rows' windows.
        reject: called with the name of a metric whose value could not be true.

    Attributes:
        gpus: all of them.
        rows, devices: of all of them; the same objects until one comes, goes or changes.
    """

    def __init__(self, grid: Grid, reject: Callable[[str], None]) -> None:
        self._grid = grid
        self._reject = reject
        self._known: dict[str, GpuState] = {}
        self._unidentified: dict[int, GpuState] = {}
        self.gpus: tuple[GpuState, ...] = ()
        self.rows: tuple[Row, ...] = ()
        self.devices: tuple[Device, ...] = ()

    def begin(self, slots: Iterable[Slot], now: float) -> None:
        """Take what a start of NVML enumerates; a GPU that was known keeps its rows."""
        answers = [(s.index, s.gpu) for s in slots if not isinstance(s.gpu, Value)]
        found = {s.gpu.value.uuid: s.gpu.value for s in slots if isinstance(s.gpu, Value)}
        for uuid, gpu in found.items():
            if uuid in self._known:
                state = self._known[uuid]
                state.rows[0].device, state.placed = gpu, ()
            else:
                self._known[uuid] = GpuState([self._row(gpu)], now)
        refused = {index: _word(answer) for index, answer in answers}
        for state in [state for uuid, state in self._known.items() if uuid not in found]:
            # Whoever was last seen at an index where nobody says who it is, is taken to be there.
            self._silence(state, refused.pop(state.device.gpu, NOT_FOUND))
        self._leave_unidentified(refused, now)
        self._arrange()

    def end(self, reason: str) -> None:
        """No GPU answers any more."""
        for state in self.gpus:
            self._silence(state, reason)
        self._arrange()

    def silence(self, gpu: Device, reason: str) -> None:
        """A GPU does not answer any more."""
        self._silence(self._known[gpu.uuid], reason)
        self._arrange()

    def place(self, gpu: Device, devices: tuple[Device, ...]) -> list[Row]:
        """Return the rows of a GPU that answers, the GPU's first; those that are new are empty.

        What stays the same slice in the same place keeps its row, and the GPU always does.
        """
        state = self._known[gpu.uuid]
        state.silent = ""
        rows = state.rows
        if devices == state.placed:
            return rows
        state.placed = devices
        rows[0].device = devices[0]
        kept = {row.device: row for row in rows}
        state.rows = [kept.get(device) or self._row(device) for device in devices]
        self._arrange()
        return state.rows

    def _leave_unidentified(self, refused: dict[int, str], now: float) -> None:
        for index in self._unidentified.keys() - refused.keys():
            del self._unidentified[index]
        for index, reason in refused.items():
            if index not in self._unidentified:
                nobody = Device(uuid="", gpu=index, model="")
                self._unidentified[index] = GpuState([self._row(nobody)], now)
            self._unidentified[index].silent = reason

    def _silence(self, state: GpuState, reason: str) -> None:
        state.rows, state.placed, state.silent = state.rows[:1], (), reason

    def _arrange(self) -> None:
        states = (*self._known.values(), *self._unidentified.values())
        self.gpus = tuple(sorted(states, key=lambda s: (s.device.gpu, s.device.uuid)))
        rows = tuple(row for state in self.gpus for row in state.rows)
        devices = tuple(row.device for row in rows)
        if rows != self.rows or devices != self.devices:
            self.rows, self.devices = rows, devices

    def _row(self, device: Device) -> Row:
        return Row(device, self._grid, self._reject)


def _word(answer: Unsupported | Failed | Lost) -> str:
    return "failed" if isinstance(answer, Failed) else answer.reason
