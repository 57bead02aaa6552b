"""What happened on the GPUs, as it is told. Pure.

The kernel's log names a GPU by its bus id alone, and may be read before NVML is started: so whose
an event was is decided when somebody asks.
"""

from collections.abc import Mapping, Sequence

from exporter.kernel_log.xid import Address, LoggedXid, address_of
from exporter.nvml.event_log import Happened
from slicewatch.wire import evidence as wire
from slicewatch.wire.layout import Device


def events_on_wire(
    happened: Sequence[Happened], gpus: Sequence[Device], now: float
) -> tuple[wire.Event, ...]:
    """Return events in the form in which they are told.

    Args:
        happened: as they were kept.
        gpus: by whose bus ids those of the kernel's log are told apart.
        now: on the clock that they were kept by.
    """
    addresses = ((address_of(gpu.pci_bus_id), gpu.uuid) for gpu in gpus if gpu.uuid)
    by_address = {address: uuid for address, uuid in addresses if address is not None}
    return tuple(_event_on_wire(one, by_address, now) for one in happened)


def _event_on_wire(one: Happened, gpus: Mapping[Address, str], now: float) -> wire.Event:
    event, age = one.event, round(max(0.0, now - one.at_monotonic_seconds), 3)
    if not isinstance(event, LoggedXid):
        return wire.Event(
            number=one.number,
            kind=wire.Happening(event.kind.value),
            age_seconds=age,
            gpu=event.gpu,
            data=event.data,
            gpu_instance=event.gpu_instance,
            compute_instance=event.compute_instance,
        )
    address = address_of(event.pci_bus_id)
    return wire.Event(
        number=one.number,
        kind=wire.Happening.XID,
        age_seconds=age,
        gpu="" if address is None else gpus.get(address, ""),
        data=event.number,
        source=wire.Source.KERNEL,
        pci_bus_id=event.pci_bus_id,
        gpu_instance=event.gpu_instance,
        compute_instance=event.compute_instance,
        text=event.text,
    )
