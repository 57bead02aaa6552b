"""Evidence built by hand: what an exporter would say of GPUs in any state, for tests of health.

What a test does not name is a GPU that answers, on a node that has been up for a day.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from health.case import Case, Poll, Since, Thresholds
from slicewatch.catalog.model import Probe
from slicewatch.wire.evidence import (
    Driver,
    Event,
    Evidence,
    Gpu,
    Happening,
    Holder,
    Reading,
    Source,
    Unidentified,
    Value,
)
from slicewatch.wire.layout import Device

DAY_SECONDS: Final = 86_400.0
POLL_SECONDS: Final = 60.0

Readings = Mapping[Probe[Any], msgspec.Struct | Reading]


def uuid_of(index: int) -> str:
    """Return the uuid that the GPU at an index has unless a test gives it another one."""
    return f"GPU-{index:08x}-0000-4000-8000-000000000000"


def value(reading: msgspec.Struct, *, age_seconds: float = 0.0) -> Value:
    """Return what a read that worked becomes on the wire."""
    return Value(reading=msgspec.Raw(msgspec.json.encode(reading)), age_seconds=age_seconds)


def gpu(
    index: int = 0,
    *,
    readings: Readings | None = None,
    uuid: str = "",
    mig: bool = False,
    silent: str = "",
    silent_seconds: float = 0.0,
    call: str = "",
    call_seconds: float = 0.0,
    instances: tuple[Device, ...] = (),
    holders: tuple[Holder, ...] = (),
) -> Gpu:
    """Return a GPU; a plain reading stands for one that was just read."""
    device = Device(
        uuid=uuid or uuid_of(index),
        gpu=index,
        model="NVIDIA H100 80GB HBM3",
        mig_enabled=mig,
        pci_bus_id=f"00000000:{index + 1:02X}:00.0",
    )
    said = {
        probe.name: one if isinstance(one, Reading) else value(one)
        for probe, one in (readings or {}).items()
    }
    return Gpu(
        device=device, silent=silent, silent_seconds=silent_seconds, call=call,
        call_seconds=call_seconds, readings=said, instances=instances, holders=holders,
    )  # fmt: skip


def event(
    data: int,
    *,
    kind: Happening = Happening.XID,
    gpu: str | int = 0,
    number: int = 1,
    age_seconds: float = 1.0,
    text: str | None = None,
    gpu_instance: int | None = None,
    compute_instance: int | None = None,
) -> Event:
    """Return an event, by default an Xid; with a text it comes from the kernel's log."""
    return Event(
        number=number,
        kind=kind,
        age_seconds=age_seconds,
        gpu=uuid_of(gpu) if isinstance(gpu, int) else gpu,
        data=data,
        source=Source.NVML if text is None else Source.KERNEL,
        gpu_instance=gpu_instance,
        compute_instance=compute_instance,
        text=text or "",
    )


def evidence(
    gpus: Sequence[Gpu] = (),
    *,
    events: Sequence[Event] = (),
    run: str = "run-1",
    boot_id: str = "boot-1",
    uptime_seconds: float = DAY_SECONDS,
    tick_age_seconds: float | None = 0.5,
    down: str = "",
    driver_seconds: float = DAY_SECONDS,
    starts: int = 1,
    unidentified: Sequence[Unidentified] = (),
    missed: int = 0,
    listening: str = "",
    kernel_log: str = "off",
    kernel_log_lost: int = 0,
) -> Evidence:
    """Return what the exporter of a node says."""
    return Evidence(
        node="node-1",
        run=run,
        boot_id=boot_id,
        uptime_seconds=uptime_seconds,
        tick_age_seconds=tick_age_seconds,
        driver=Driver(down=down, seconds=driver_seconds, starts=starts, version="580.65.06"),
        gpus=tuple(gpus),
        unidentified=tuple(unidentified),
        events=tuple(events),
        missed=missed,
        newest=max((one.number for one in events), default=0),
        listening=listening,
        kernel_log=kernel_log,
        kernel_log_lost=kernel_log_lost,
    )


def poll(said: Evidence, *, at: float = 0.0, index: int | None = 0) -> Poll:
    """Return an answer as it concerns the GPU at an index; None for the node.

    An event of a GPU that is not in the evidence concerns the node.
    """
    known = {one.device.uuid for one in said.gpus}
    found = next((one for one in said.gpus if one.device.gpu == index), None)
    uuid = None if found is None else found.device.uuid
    return Poll(
        at=at,
        evidence=said,
        gpu=found,
        events=tuple(
            one
            for one in said.events
            if (one.gpu not in known if index is None else one.gpu == uuid)
        ),
    )


def case(
    *said: Evidence | Gpu,
    index: int | None = 0,
    thresholds: Thresholds | None = None,
    baseline: Mapping[str, float] | None = None,
    raised: Since | None = None,
) -> Case:
    """Return a case of polls a minute apart, the newest last; a GPU stands for evidence of it."""
    polls = [
        poll(
            evidence([one]) if isinstance(one, Gpu) else one,
            at=number * POLL_SECONDS,
            index=one.device.gpu if isinstance(one, Gpu) else index,
        )
        for number, one in enumerate(said)
    ]
    return Case(
        polls=polls,
        thresholds=thresholds or Thresholds(),
        baseline=dict(baseline or {}),
        raised=raised,
    )


def since(*, boot_id: str = "boot-1", driver_run: str = "run-1/1", at_seconds: float = 0) -> Since:
    """Return when a fault was raised: in the boot, and start of the driver, that tests have."""
    return Since(boot_id=boot_id, driver_run=driver_run, at_seconds=at_seconds)
