"""How often what happened on each device, as columns of the snapshot.

The rows of MIG instances come and go on the loop, so events are given to rows here and not where
they arrive. One belongs to exactly one row. A count stays while its device does, also while that
does not answer: the last thing that a GPU says is often why.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from exporter.measure.columns import spread
from exporter.nvml.event_log import EventLog
from exporter.nvml.protocol import Event, EventKind
from slicewatch.catalog import events
from slicewatch.catalog.model import Metric
from slicewatch.catalog.readings.events import DeviceEvents
from slicewatch.service.exposition import own_labels_text
from slicewatch.wire.layout import Device
from slicewatch.wire.snapshot import Column

# A GPU stays the same when its MIG mode changes; an instance is all that describes it.
Key = str | Device

# As the counters of errors call them.
OF_MEMORY: Final = {
    EventKind.SINGLE_BIT_ECC: "corrected",
    EventKind.DOUBLE_BIT_ECC: "uncorrected",
}
NOTHING: Final = DeviceEvents()


class EventCounts:
    """Counts what a log holds. For one thread.

    Args:
        log: where events arrive.
        drop: called with the number of events that no row counts.
    """

    def __init__(self, log: EventLog, drop: Callable[[int], None]) -> None:
        self._log = log
        self._drop = drop
        self._seen = 0
        self._counts: dict[Key, DeviceEvents] = {}
        self._rows: tuple[Device, ...] = ()
        self._kinds: Mapping[str, frozenset[EventKind]] = {}
        self._columns: dict[str, Column] = {}

    def columns(self, devices: tuple[Device, ...]) -> dict[str, Column]:
        """Take what happened since the last call; return a value per device and series.

        Args:
            devices: the present rows; the same object while they stay the same.
        """
        recent, kinds = self._log.after(self._seen), self._log.kinds
        self._seen = recent.newest
        if not recent.events and devices is self._rows and kinds is self._kinds:
            return self._columns
        self._rows, self._kinds = devices, kinds
        if recent.missed:
            self._drop(recent.missed)
        self._forget_instances(devices)
        for happened in recent.events:
            # What the kernel's log tells of, NVML tells as well.
            if isinstance(happened.event, Event):
                self._count(happened.event, happened.at_seconds, devices)
        rows = [self._row(device) for device in devices]
        self._columns = {
            k: column for m in events.OF_DEVICES for k, column in _columns(m, rows).items()
        }
        return self._columns

    def _forget_instances(self, devices: Sequence[Device]) -> None:
        """Let the counts of instances end with them: the next one there is another."""
        present = set(devices)
        self._counts = {
            key: counts
            for key, counts in self._counts.items()
            if isinstance(key, str) or key in present
        }

    def _count(self, event: Event, at_seconds: float, devices: Sequence[Device]) -> None:
        if not event.gpu:
            self._drop(1)
            return
        key = _owner(event, devices)
        before = self._counts.get(key, NOTHING)
        if event.kind is EventKind.XID:
            self._counts[key] = before.with_xid(event.data, at_seconds)
        elif event.kind in OF_MEMORY:
            self._counts[key] = before.with_ecc(OF_MEMORY[event.kind])

    def _row(self, device: Device) -> DeviceEvents:
        """Return the counts of a device, with zeros for what is listened to and never came."""
        counts = self._counts.get(device if device.is_mig else device.uuid, NOTHING)
        kinds = self._kinds.get(device.parent or device.uuid, frozenset())
        if EventKind.XID in kinds and counts.xids is None:
            counts = msgspec.structs.replace(counts, xids={})
        # Events of memory errors are never those of an instance.
        zeros = {} if device.is_mig else {name: 0 for k, name in OF_MEMORY.items() if k in kinds}
        if zeros:
            counts = msgspec.structs.replace(counts, ecc=zeros | dict(counts.ecc or {}))
        return counts


def _owner(event: Event, devices: Sequence[Device]) -> Key:
    """Return the instance that an event is attributed to, if it is there and the only one."""
    if event.gpu_instance is None:
        return event.gpu
    there = [
        device
        for device in devices
        if (device.parent, device.gpu_instance) == (event.gpu, event.gpu_instance)
        and event.compute_instance in (None, device.compute_instance)
    ]
    return there[0] if len(there) == 1 else event.gpu


def _columns(metric: Metric[DeviceEvents], rows: Sequence[DeviceEvents]) -> dict[str, Column]:
    """Return the columns of a metric by the name of the series, as in ``name{xid="79"}``."""
    if metric.value is None:
        raise TypeError(f"{metric.name} says nothing of how it comes from its reading")
    found = [metric.value(row) for row in rows]
    if not metric.labels:
        return {metric.name: [None if isinstance(one, Mapping) else one for one in found]}
    held = [one if isinstance(one, Mapping) else {} for one in found]
    return spread(
        metric.name,
        [{own_labels_text(metric, key): v for key, v in one.items()} for one in held],
    )
