"""One simulated GPU, cycle by cycle: its devices are resolved, then read."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from exporter.nvml.protocol import Failed, Lost, Outcome, Unsupported, Value
from exporter.nvml.samples import SampleCursor
from exporter.nvml.simulated.refusals import Life, refusal_of, refuse_on_event_loop
from simulator.gpu import MemoryState, SimulatedGpu
from simulator.node import SimulatedNode
from simulator.timeline import MigDevice
from slicewatch.catalog.model import Probe
from slicewatch.catalog.readings import (
    MICROSECONDS,
    Clock,
    Energy,
    Memory,
    Power,
    Temperature,
    Utilization,
)
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
        cursor: SampleCursor,
        life: Life | None,
    ) -> None:
        self._node = node
        self._gpu = gpu
        self._life = life
        self._closed = False
        self._resolved: frozenset[Device] = frozenset()
        self._cursor = cursor

    def devices(self) -> Outcome[tuple[Device, ...]]:
        """Resolve the GPU and its MIG devices anew; waits while the GPU hangs."""
        refuse_on_event_loop()
        self._resolved = frozenset()
        refusal = self._refusal()
        if refusal is not None or self._gpu is None:
            return refusal or _GPU_NOT_FOUND
        stage = self._gpu.stage
        gpu = whole_gpu(self._gpu, mig_enabled=stage.mig_enabled)
        found = (gpu, *(_instance(gpu, device) for device in stage.devices))
        self._resolved = frozenset(found)
        return Value(found)

    def read(self, probe: Probe[R], device: Device) -> Outcome[R]:
        """Read one probe; ``NOT_FOUND`` for what is not there or was not resolved.

        Raises:
            ValueError: the simulator has no such reading.
        """
        refuse_on_event_loop()
        if probe.name not in _READS and probe.name != _UTILIZATION:
            raise ValueError(f"probe {probe.name!r} has no simulated reading; add one here")
        refusal = self._refusal()
        if refusal is not None or self._gpu is None:
            return refusal or _GPU_NOT_FOUND
        if device not in self._resolved:
            return _NOT_FOUND
        if device.is_mig:
            return self._read_instance(probe, self._gpu, device)
        outcome: Outcome[Any] = (
            self._utilization(self._gpu)
            if probe.name == _UTILIZATION
            else Value(_READS[probe.name](self._gpu))
        )
        return outcome

    def close(self) -> None:
        """Forget the GPU; a call that hangs returns."""
        with self._node.changed:
            self._closed = True
            self._node.changed.notify_all()

    def _refusal(self) -> Failed | Lost | None:
        return refusal_of(self._node, self._gpu, self._life, lambda: self._closed)

    def _read_instance(self, probe: Probe[R], gpu: SimulatedGpu, device: Device) -> Outcome[R]:
        if probe.name != "memory":
            return Unsupported("mig_instance")
        for there in gpu.mig_devices:
            if _instance(whole_gpu(gpu, mig_enabled=True), there) == device:
                outcome: Outcome[Any] = Value(_memory(gpu.mig_memory(there)))
                return outcome
        return _NOT_FOUND

    def _utilization(self, gpu: SimulatedGpu) -> Outcome[Utilization]:
        if gpu.mig_enabled:
            return Unsupported("mig_enabled")
        clock = self._node.clock
        now_us = clock.epoch_us + round(clock.now() * MICROSECONDS)
        samples = gpu.utilization_samples(self._cursor.last_seen_us(now_us) or None)
        reading = self._cursor.take(samples, now_us)
        if reading.samples or not self._cursor.is_dry(now_us):
            return Value(reading)
        return Value(Utilization((), reading.since_us, gpu.current_utilization))


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


def _memory(state: MemoryState) -> Memory:
    return Memory(
        total_bytes=state.total_bytes,
        free_bytes=state.free_bytes,
        used_bytes=state.used_bytes,
        reserved_bytes=state.reserved_bytes,
    )


# Needs a cursor, so the session reads it.
_UTILIZATION: Final = "utilization"
_READS: Final[Mapping[str, Callable[[SimulatedGpu], Any]]] = {
    "memory": lambda gpu: _memory(gpu.memory),
    "power": lambda gpu: Power(gpu.power_milliwatts),
    "energy": lambda gpu: Energy(gpu.energy_millijoules),
    "temperature": lambda gpu: Temperature(gpu.temperature_celsius),
    "sm_clock": lambda gpu: Clock(gpu.sm_clock_mhz),
    "memory_clock": lambda gpu: Clock(gpu.memory_clock_mhz),
}
