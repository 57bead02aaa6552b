"""Puts together what is known of the node's GPUs at the moment when somebody asks.

All of it is known already: nothing here asks NVML, the kubelet or Kubernetes, nor waits for them.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from exporter.evidence import machine
from exporter.evidence.driver_life import DriverLife
from exporter.evidence.events import events_on_wire
from exporter.evidence.readings import Readings
from exporter.kernel_log.reader import OFF, KernelLog
from exporter.measure.board import Board
from exporter.nvml.event_log import EventLog
from exporter.nvml.listener import Listener
from exporter.nvml.protocol import Driver, Slot, Value
from exporter.nvml.reader import Cycle
from exporter.nvml.supervisor import Supervisor
from exporter.publication import Publication
from slicewatch.wire import evidence as wire
from slicewatch.wire.layout import Device, Tenant

# What the board says of a GPU that did not tell its name when NVML was started anew; how it failed
# is among the refusals.
FAILED: Final = "failed"
_NO_CALL: Final = ("", 0.0)


@dataclass(kw_only=True)
class Account:
    """What the exporter can say of its node's GPUs.

    To be used on the event loop only.

    Args:
        board: knows the GPUs, those that are gone included.
        supervisor: knows which calls take long.
        publication: knows when the last tick was over.
        listener, events: of what happens on the GPUs.
        kernel_log: None where nobody wants it.
        tick_seconds: a call that takes longer is told.
        pod_uid: the uid of a pod of this node by its namespace and name, empty for not known.
    """

    board: Board
    supervisor: Supervisor
    publication: Publication
    listener: Listener
    events: EventLog
    kernel_log: KernelLog | None
    tick_seconds: float
    pod_uid: Callable[[str, str], str]
    clock: Callable[[], float] = time.monotonic
    boot_id: str = field(default_factory=machine.boot_id)
    uptime_seconds: Callable[[], float] = machine.uptime_seconds

    def __post_init__(self) -> None:
        self._readings = Readings()
        self._driver = DriverLife(self.supervisor.down_reason, self.clock())
        self._tenants: tuple[Tenant, ...] = ()

    @property
    def run(self) -> str:
        """Return what this life of the exporter is called."""
        return self.board.run

    def begin(self, driver: Driver, slots: tuple[Slot, ...]) -> None:
        """NVML was started and found these GPUs."""
        self._driver.begin(driver, slots)
        found = (slot.gpu.value for slot in slots if isinstance(slot.gpu, Value))
        self._readings.begin([gpu.uuid for gpu in found], self.clock())

    def take(self, cycles: Sequence[Cycle], tenants: tuple[Tenant, ...], now: float) -> None:
        """Take what a tick brought; costs next to nothing."""
        self._readings.take(cycles)
        self._tenants = tenants
        self._driver.observe(self.supervisor.down_reason, now)

    def given(self, after: int) -> wire.Evidence:
        """Return the evidence of this moment, with the events after a number."""
        now = self.clock()
        whole = [device for device in self.board.devices if not device.is_mig]
        silent = self._silent(now)
        recent = self.events.after(after)
        published = self.publication.snapshot is not None
        kernel_log = self.kernel_log
        return wire.Evidence(
            node=self.board.node,
            run=self.run,
            boot_id=self.boot_id,
            uptime_seconds=round(self.uptime_seconds(), 3),
            tick_age_seconds=round(self.publication.age_seconds(), 3) if published else None,
            driver=self._driver.on_wire(now),
            gpus=self._gpus(whole, silent, now),
            unidentified=tuple(
                wire.Unidentified(index=device.gpu, reason=silent[device])
                for device in whole
                if not device.uuid
            ),
            events=events_on_wire(recent.events, whole, now),
            missed=recent.missed,
            newest=recent.newest,
            listening=self.listener.reason,
            kernel_log=OFF if kernel_log is None else kernel_log.reason,
            kernel_log_lost=0 if kernel_log is None else kernel_log.lost,
        )

    def _gpus(
        self, whole: Sequence[Device], silent: Mapping[Device, str], now: float
    ) -> tuple[wire.Gpu, ...]:
        calls = self.supervisor.calls()
        return tuple(
            self._gpu(device, silent.get(device, ""), calls.get(device.uuid, _NO_CALL), now)
            for device in whole
            if device.uuid
        )

    def _gpu(self, device: Device, silent: str, called: tuple[str, float], now: float) -> wire.Gpu:
        readings = self._readings.of(device.uuid)
        instances = tuple(d for d in self.board.devices if d.parent == device.uuid)
        call, seconds = called if called[1] > self.tick_seconds else _NO_CALL
        return wire.Gpu(
            device=device,
            silent=silent,
            silent_seconds=round(now - readings.answered_at, 3) if silent else 0.0,
            call=call,
            call_seconds=round(seconds, 3),
            readings=readings.on_wire(now),
            instances=instances,
            holders=self._holders({device.uuid, *(d.uuid for d in instances)}),
        )

    def _silent(self, now: float) -> dict[Device, str]:
        """Return who does not answer and why; of a GPU that did not say who it is, how it failed."""
        refusals = self._driver.refusals
        return {
            device: refusals.get(device.gpu, reason) if reason == FAILED else reason
            for device, reason in self.board.silent(now).items()
        }

    def _holders(self, uuids: set[str]) -> tuple[wire.Holder, ...]:
        found = {
            (one.namespace, one.pod): wire.Holder(
                namespace=one.namespace,
                pod=one.pod,
                uid=one.uid or self.pod_uid(one.namespace, one.pod),
            )
            for one in self._tenants
            if one.device in uuids
        }
        return tuple(found.values())
