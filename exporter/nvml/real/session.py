"""One GPU, cycle by cycle: its devices are resolved, then read."""

import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec
from pynvml import NVMLError

from exporter.nvml.protocol import Failed, Lost, Outcome, Value
from exporter.nvml.real import identity, reads
from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.identity import InstanceKey
from exporter.nvml.real.reads import Read
from exporter.nvml.real.returns import GONE, Return, outcome_of
from exporter.nvml.samples import SampleCursor
from slicewatch.catalog.model import Probe
from slicewatch.catalog.readings import Utilization
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
_Held = tuple[Device, Handle, dict[str, Read]]


class RealSession:
    """One GPU; see ``protocol.Session``."""

    def __init__(
        self,
        gpu: Device,
        cursor: SampleCursor,
        cpu_nanoseconds: Callable[[], int] = time.time_ns,
    ) -> None:
        self._cpu_nanoseconds = cpu_nanoseconds
        self._calls = Calls()
        self._uuid = gpu.uuid.encode()
        self._whole = msgspec.structs.replace(gpu, mig_enabled=False)
        self._partitioned = msgspec.structs.replace(gpu, mig_enabled=True)
        self._reads = {**reads.PARTITIONED, "utilization": self._utilization}
        self._cursor = cursor
        self._never_partitioned = False
        self._profiles: dict[int, str] | None = None
        self._instances: dict[bytes, tuple[InstanceKey, Device]] = {}
        self._held: dict[str, _Held] = {}

    def devices(self) -> Outcome[tuple[Device, ...]]:
        """Resolve the GPU and its MIG devices anew.

        An instance that fails in a way of its own is left out; it hides neither the others nor
        the GPU.
        """
        self._held = {}
        try:
            handle = self._calls.gpu(self._whole.gpu)
            # Indices move when a GPU is removed.
            if self._calls.uuid(handle) != self._uuid:
                return _GPU_NOT_FOUND
            return Value(self._resolve(handle))
        except NVMLError as error:
            self._held = {}
            # The index is beyond the last GPU, or the GPU went between two of the calls.
            gone = error.value == Return.INVALID_ARGUMENT
            return _GPU_NOT_FOUND if gone else outcome_of(error.value)

    def read(self, probe: Probe[R], device: Device) -> Outcome[R]:
        """Read one probe; ``NOT_FOUND`` for what the last ``devices()`` did not return.

        Raises:
            ValueError: there is no read for the probe.
        """
        held = self._held.get(device.uuid)
        if held is None:
            return _DEVICE_NOT_FOUND
        found, handle, table = held
        # The same uuid may belong to another instance by now.
        if found is not device and found != device:
            return _DEVICE_NOT_FOUND
        read = table.get(probe.name)
        if read is None:
            raise ValueError(f"no read for probe {probe.name!r}; add one to exporter.nvml.real")
        try:
            return read(self._calls, handle)
        except NVMLError as error:
            return outcome_of(error.value)

    def close(self) -> None:
        """Forget the GPU."""
        self._held = {}
        self._instances = {}

    def _resolve(self, handle: Handle) -> tuple[Device, ...]:
        if not self._is_partitioned(handle):
            self._instances = {}
            self._held[self._whole.uuid] = (self._whole, handle, self._reads)
            return (self._whole,)
        devices = [self._partitioned]
        self._held[self._partitioned.uuid] = (self._partitioned, handle, reads.PARTITIONED)
        found: dict[bytes, tuple[InstanceKey, Device]] = {}
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
        enabled = identity.mig_enabled(self._calls, handle)
        self._never_partitioned = enabled is None
        return enabled is True

    def _resolve_instance(
        self, handle: Handle, index: int, found: dict[bytes, tuple[InstanceKey, Device]]
    ) -> Device | None:
        try:
            instance = self._calls.instance(handle, index)
            key = identity.instance_key(self._calls, instance)
            known = self._instances.get(key[0])
            if known is None or known[0] != key:
                known = (key, self._describe(handle, instance, key))
        except NVMLError as error:
            if error.value in GONE:
                raise
            return None
        except UnicodeDecodeError:
            return None
        found[key[0]] = known
        device = known[1]
        self._held[device.uuid] = (device, instance, reads.INSTANCE)
        return device

    def _describe(self, handle: Handle, instance: Handle, key: InstanceKey) -> Device:
        if self._profiles is None:
            self._profiles = dict(identity.profile_names(handle))
        return identity.describe(self._whole, handle, instance, key, self._profiles)

    def _utilization(self, _: Calls, handle: Handle) -> Outcome[Any]:
        now_us = self._cpu_nanoseconds() // _NANOSECONDS_PER_MICROSECOND
        try:
            samples = reads.samples(handle, self._cursor.last_seen_us(now_us))
        except NVMLError as error:
            if error.value not in _NO_NEW_SAMPLES:
                raise
            samples = ()
        reading = self._cursor.take(samples, now_us)
        if reading.samples or not self._cursor.is_dry(now_us):
            return Value(reading)
        return Value(Utilization((), reading.since_us, reads.current_percent(handle)))
