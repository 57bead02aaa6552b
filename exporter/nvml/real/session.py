"""One GPU, cycle by cycle: its devices are resolved, then read."""

import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec
from pynvml import NVMLError

from exporter.nvml.gpm import COUNTED, GpmPairs, comes_from_counters
from exporter.nvml.protocol import Failed, Lost, Outcome, Value
from exporter.nvml.real import identity
from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.gpm import RealCounters, RealSample
from exporter.nvml.real.identity import InstanceKey
from exporter.nvml.real.reads import table, utilization
from exporter.nvml.real.reads.processes import ProcessReads
from exporter.nvml.real.reads.read import Read, Reads
from exporter.nvml.real.reads.vgpu import VgpuReads
from exporter.nvml.real.returns import GONE, Return, outcome_of
from exporter.nvml.samples import Cursors
from slicewatch.catalog.model import Probe
from slicewatch.catalog.readings.utilization import Utilization
from slicewatch.wire.layout import Device

R = TypeVar("R")

_GPU_NOT_FOUND: Final = Lost("gpu_not_found")
_DEVICE_NOT_FOUND: Final = Failed("NOT_FOUND")
# The second is what the header promises for a buffer that ran dry between the two calls.
_NO_NEW_SAMPLES: Final = frozenset({Return.NOT_FOUND, Return.INVALID_ARGUMENT})
_NANOSECONDS_PER_MICROSECOND: Final = 1000
# A GPU has at most 7 to 8 instances; a driver in trouble may claim billions.
MOST_INSTANCES: Final = 64


# A device as this cycle found it, its handle, and how it is read. Made anew in every cycle.
_Held = tuple[Device, Handle, Reads]
# What is remembered of an instance, with the identity that it has to have still.
_Instance = tuple[InstanceKey, Device, Reads]


class RealSession:
    """One GPU; see ``protocol.Session``."""

    def __init__(
        self,
        gpu: Device,
        cursors: Cursors,
        cpu_nanoseconds: Callable[[], int] = time.time_ns,
        monotonic_nanoseconds: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._now_us: Callable[[], int] = lambda: cpu_nanoseconds() // _NANOSECONDS_PER_MICROSECOND
        self._calls = Calls()
        self._counters = RealCounters(self._calls, monotonic_nanoseconds)
        self._gpm: GpmPairs[RealSample] = GpmPairs(self._counters)
        self._processes = ProcessReads()
        vgpus = VgpuReads(cursors, self._now_us)
        self._uuid = gpu.uuid.encode()
        self._whole = msgspec.structs.replace(gpu, mig_enabled=False)
        self._partitioned = msgspec.structs.replace(gpu, mig_enabled=True)
        self._reads = {
            **table.BOARD,
            "utilization": self._utilization,
            "processes": self._processes.of_device,
            "process_utilization": self._process_utilization,
            **vgpus.of_board,
            **self._counter_reads(self._whole),
        }
        self._partitioned_reads = {
            **table.PARTITIONED,
            **vgpus.of_partitioned,
            **self._counter_reads(self._partitioned),
        }
        self._instance_reads = {**table.INSTANCE, "processes": self._processes.of_device}
        self._cursor = cursors.samples
        self._process_cursor = cursors.processes
        self._never_partitioned = False
        self._mig_change_pending = False
        self._profiles: dict[int, str] | None = None
        self._instances: dict[bytes, _Instance] = {}
        self._held: dict[str, _Held] = {}

    @property
    def mig_change_pending(self) -> bool:
        """Tell whether the last ``devices()`` found a MIG mode that waits for a reset."""
        return self._mig_change_pending

    def devices(self) -> Outcome[tuple[Device, ...]]:
        """Resolve the GPU and its MIG devices anew.

        An instance that fails in a way of its own is left out; it hides neither the others nor
        the GPU.
        """
        self._held = {}
        self._mig_change_pending = False
        try:
            handle = self._calls.gpu(self._whole.gpu)
            # Indices move when a GPU is removed.
            if self._calls.uuid(handle) != self._uuid:
                return _GPU_NOT_FOUND
            devices = self._resolve(handle)
        except NVMLError as error:
            self._held = {}
            self._gpm.close()
            # The index is beyond the last GPU, or the GPU went between two of the calls.
            gone = error.value == Return.INVALID_ARGUMENT
            return _GPU_NOT_FOUND if gone else outcome_of(error.value)
        self._counters.begin(handle)
        self._gpm.begin(devices)
        return Value(devices)

    def read(self, probe: Probe[R], device: Device) -> Outcome[R]:
        """Read one probe; ``NOT_FOUND`` for what the last ``devices()`` did not return.

        Raises:
            ValueError: there is no read for the probe.
        """
        held = self._held.get(device.uuid)
        if held is None:
            return _DEVICE_NOT_FOUND
        found, handle, reads = held
        # The same uuid may belong to another instance by now.
        if found is not device and found != device:
            return _DEVICE_NOT_FOUND
        read = reads.get(probe.name)
        if read is None and device.is_mig:
            return table.OF_MIG_INSTANCE
        if read is None:
            raise ValueError(f"no read for probe {probe.name!r}; add one to exporter.nvml.real")
        try:
            return read(self._calls, handle)
        except NVMLError as error:
            return outcome_of(error.value)

    def close(self) -> None:
        """Forget the GPU."""
        self._gpm.close()
        self._held = {}
        self._instances = {}

    def _resolve(self, handle: Handle) -> tuple[Device, ...]:
        if not self._is_partitioned(handle):
            self._instances = {}
            self._held[self._whole.uuid] = (self._whole, handle, self._reads)
            return (self._whole,)
        devices = [self._partitioned]
        self._held[self._partitioned.uuid] = (self._partitioned, handle, self._partitioned_reads)
        found: dict[bytes, _Instance] = {}
        # A maximum, not a number: the empty indices lie anywhere.
        most = self._calls.number("nvmlDeviceGetMaxMigDeviceCount", handle)
        for index in range(min(most, MOST_INSTANCES)):
            device = self._resolve_instance(handle, index, found)
            if device is not None:
                devices.append(device)
        # Only what is there now is remembered; one that comes back is looked up anew.
        self._instances = found
        return tuple(devices)

    def _is_partitioned(self, handle: Handle) -> bool:
        if self._never_partitioned:
            return False
        mode = identity.mig_mode(self._calls, handle)
        self._never_partitioned = mode is None
        partitioned, self._mig_change_pending = mode or (False, False)
        return partitioned

    def _resolve_instance(
        self, handle: Handle, index: int, found: dict[bytes, _Instance]
    ) -> Device | None:
        try:
            instance = self._calls.instance(handle, index)
            key = identity.instance_key(self._calls, instance)
            # One that moved to a later index during the pass would be every series twice.
            if key[0] in found or key[0] == self._uuid:
                return None
            known = self._instances.get(key[0])
            if known is None or known[0] != key:
                device = self._describe(handle, instance, key)
                known = (key, device, self._instance_reads | self._counter_reads(device))
        except NVMLError as error:
            if error.value in GONE:
                raise
            return None
        except UnicodeDecodeError:
            return None
        found[key[0]] = known
        _, device, reads = known
        self._held[device.uuid] = (device, instance, reads)
        return device

    def _counter_reads(self, device: Device) -> Reads:
        """Return how what comes from counters is read of a device."""

        def read(probe: str) -> Read:
            return lambda _, __: self._gpm.read(probe, device)

        return {probe: read(probe) for probe in COUNTED if comes_from_counters(probe, device)}

    def _describe(self, handle: Handle, instance: Handle, key: InstanceKey) -> Device:
        if self._profiles is None:
            self._profiles = dict(identity.profile_names(handle))
        return identity.describe(self._whole, handle, instance, key, self._profiles)

    def _utilization(self, _: Calls, handle: Handle) -> Outcome[Any]:
        now_us = self._now_us()
        try:
            samples = utilization.samples(handle, self._cursor.since_us(now_us))
        except NVMLError as error:
            if error.value not in _NO_NEW_SAMPLES:
                raise
            samples = ()
        reading = self._cursor.take(samples, now_us)
        if reading.samples or not self._cursor.is_dry(now_us):
            return Value(reading)
        return Value(Utilization((), reading.since_us, utilization.current_percent(handle)))

    def _process_utilization(self, calls: Calls, handle: Handle) -> Outcome[Any]:
        now_us = self._now_us()
        try:
            entries = self._processes.shares(calls, handle, self._process_cursor.since_us(now_us))
        except NVMLError as error:
            if error.value not in _NO_NEW_SAMPLES:
                raise
            entries = []
        return Value(self._process_cursor.take(entries, now_us))
