"""One simulated GPU, cycle by cycle: its devices are resolved, then read."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from exporter.nvml.gpm import GpmPairs, comes_from_counters
from exporter.nvml.protocol import Failed, Lost, Outcome, Unsupported, Value
from exporter.nvml.samples import Cursors
from exporter.nvml.simulated.gpm import SimulatedCounters
from exporter.nvml.simulated.readings import table
from exporter.nvml.simulated.refusals import Life, refusal_of, refuse_on_event_loop
from exporter.nvml.simulated.vgpu import SimulatedVgpus
from simulator.gpm import GpmSample
from simulator.gpu import SimulatedGpu
from simulator.node import SimulatedNode
from simulator.timeline import MigDevice
from slicewatch.catalog.model import Probe
from slicewatch.catalog.readings.processes import ProcessUtilization
from slicewatch.catalog.readings.utilization import MICROSECONDS, Utilization
from slicewatch.wire.layout import Device

R = TypeVar("R")

_NOT_FOUND: Final = Failed("NOT_FOUND")
_GPU_NOT_FOUND: Final = Lost("gpu_not_found")


class SimulatedSession:
    """One GPU; see ``protocol.Session``."""

    def __init__(
        self,
        node: SimulatedNode,
        gpu: SimulatedGpu | None,
        cursors: Cursors,
        life: Life | None,
    ) -> None:
        self._node = node
        self._gpu = gpu
        self._life = life
        self._closed = False
        self._resolved: frozenset[Device] = frozenset()
        self._gpm: GpmPairs[GpmSample] = GpmPairs(SimulatedCounters(gpu, node.clock))
        self._cursor = cursors.samples
        self._process_cursor = cursors.processes
        self._with_cursor: dict[str, Callable[[SimulatedGpu], Outcome[Any]]] = {
            "utilization": self._utilization,
            "process_utilization": self._process_utilization,
            **SimulatedVgpus(cursors, self._now_us).reads,
        }
        self._mig_change_pending = False

    @property
    def mig_change_pending(self) -> bool:
        """Tell whether the last ``devices()`` found a MIG mode that waits for a reset."""
        return self._mig_change_pending

    def devices(self) -> Outcome[tuple[Device, ...]]:
        """Resolve the GPU and its MIG devices anew; waits while the GPU hangs."""
        refuse_on_event_loop()
        self._resolved = frozenset()
        self._mig_change_pending = False
        refusal = self._refusal()
        if refusal is not None or self._gpu is None:
            self._gpm.close()
            return refusal or _GPU_NOT_FOUND
        stage = self._gpu.stage
        self._mig_change_pending = stage.mig_change_pending
        gpu = whole_gpu(self._gpu, mig_enabled=stage.mig_enabled)
        found = (gpu, *(_instance(gpu, device) for device in stage.devices))
        self._resolved = frozenset(found)
        self._gpm.begin(found)
        return Value(found)

    def read(self, probe: Probe[R], device: Device) -> Outcome[R]:
        """Read one probe; ``NOT_FOUND`` for what is not there or was not resolved.

        Raises:
            ValueError: the simulator has no such reading.
        """
        refuse_on_event_loop()
        counted = comes_from_counters(probe.name, device)
        if not counted and probe.name not in table.BOARD and probe.name not in self._with_cursor:
            raise ValueError(f"probe {probe.name!r} has no simulated reading; add one")
        refusal = self._refusal()
        if refusal is not None or self._gpu is None:
            return refusal or _GPU_NOT_FOUND
        if device not in self._resolved:
            return _NOT_FOUND
        if counted:
            return self._gpm.read(probe.name, device)
        if device.is_mig:
            return self._read_instance(probe, self._gpu, device)
        if probe.name in self._with_cursor:
            outcome: Outcome[R] = self._with_cursor[probe.name](self._gpu)
            return outcome
        return _outcome(table.BOARD[probe.name](self._gpu))

    def close(self) -> None:
        """Forget the GPU; a call that hangs returns."""
        with self._node.changed:
            self._closed = True
            self._node.changed.notify_all()

    def _refusal(self) -> Failed | Lost | None:
        return refusal_of(self._node, self._gpu, self._life, lambda: self._closed)

    def _read_instance(self, probe: Probe[R], gpu: SimulatedGpu, device: Device) -> Outcome[R]:
        read = table.INSTANCE.get(probe.name)
        if read is None:
            return Unsupported("mig_instance")
        for there in gpu.mig_devices:
            if _instance(whole_gpu(gpu, mig_enabled=True), there) == device:
                return _outcome(read(gpu, there))
        return _NOT_FOUND

    def _utilization(self, gpu: SimulatedGpu) -> Outcome[Utilization]:
        if gpu.mig_enabled:
            return Unsupported("mig_enabled")
        now_us = self._now_us()
        samples = gpu.utilization_samples(self._cursor.since_us(now_us) or None)
        reading = self._cursor.take(samples, now_us)
        if reading.samples or not self._cursor.is_dry(now_us):
            return Value(reading)
        return Value(Utilization((), reading.since_us, gpu.current_utilization))

    def _process_utilization(self, gpu: SimulatedGpu) -> Outcome[ProcessUtilization]:
        if gpu.mig_enabled:
            return Unsupported("mig_enabled")
        now_us = self._now_us()
        samples = gpu.process_samples(self._process_cursor.since_us(now_us))
        entries = [(sample.pid, sample.at_us, sample.sm_percent) for sample in samples]
        return Value(self._process_cursor.take(entries, now_us))

    def _now_us(self) -> int:
        clock = self._node.clock
        return clock.epoch_us + round(clock.now() * MICROSECONDS)


def _outcome(reading: Any) -> Outcome[Any]:  # noqa: ANN401 - its type is the probe's
    return reading if isinstance(reading, Unsupported) else Value(reading)


def whole_gpu(gpu: SimulatedGpu, *, mig_enabled: bool) -> Device:
    """Return a GPU as NVML describes it."""
    board = gpu.identity
    return Device(
        uuid=gpu.uuid,
        gpu=gpu.index,
        model=gpu.model.nvml_name,
        mig_enabled=mig_enabled,
        minor=board.minor,
        pci_bus_id=board.pci_bus_id,
        serial=board.serial,
        board=board.board_part_number,
        vbios=board.vbios,
    )


def _instance(gpu: Device, device: MigDevice) -> Device:
    return Device(
        uuid=device.uuid,
        gpu=gpu.gpu,
        model=gpu.model,
        parent=gpu.uuid,
        gpu_instance=device.gpu_instance_id,
        compute_instance=device.compute_instance_id,
        profile=device.profile.name,
        placement_start=device.placement.start,
        placement_size=device.placement.size,
        sm_count=device.profile.sm_count,
    )
