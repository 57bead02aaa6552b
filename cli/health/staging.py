"""Evidence of a node that is not there: a scenario of the simulator, read as its exporter would.

Time is the scenario's own and moves from poll to poll, so that a day takes seconds. The reads are
the exporter's, of the same simulated driver; only its threads are missing, which is why a GPU that
hangs is not asked.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from exporter.nvml import protocol
from exporter.nvml.plan import Plan
from exporter.nvml.protocol import DriverUnavailableError, Outcome, Session
from exporter.nvml.simulated import SimulatedNvml
from simulator.fleet import Fleet
from simulator.node import GpuEvent, SimulatedNode
from simulator.timeline import GpuState
from slicewatch.wire.evidence import (
    Driver,
    Event,
    Evidence,
    Failed,
    Gpu,
    Happening,
    Lost,
    Reading,
    Unidentified,
    Unsupported,
    Value,
)
from slicewatch.wire.layout import Device

RUN: Final = "simulated"
HANGING: Final = "hang"


class Staged:
    """One node of a fleet on a manual clock.

    Args:
        fleet: whose time is moved.
        node: one of its nodes.
        uptime_seconds: of the machine when the scenario begins.
    """

    def __init__(self, fleet: Fleet, node: SimulatedNode, uptime_seconds: float) -> None:
        self._fleet = fleet
        self._node = node
        self._uptime_seconds = uptime_seconds
        self._nvml = SimulatedNvml(node)
        self._plan = Plan.of(())
        self._sessions: dict[str, Session] = {}
        self._known: dict[str, Device] = {}
        self._unidentified: tuple[Unidentified, ...] = ()
        self._answered: dict[str, float] = {}
        self._events = node.listen()
        self._happened = 0
        self._version: protocol.Driver | None = None
        self._starts = 0
        self._down = ""
        self._since = 0.0

    def polls(self, seconds: float, interval_seconds: float) -> Iterator[tuple[float, Evidence]]:
        """Yield the times of polls and what the exporter answers, from now on for so long."""
        count = int(seconds // interval_seconds)
        for number in range(count + 1):
            at = number * interval_seconds
            self._fleet.advance_to(at)
            yield at, self.evidence(at)

    def evidence(self, at: float) -> Evidence:
        """Return what the exporter would say at a second of the scenario."""
        self._follow_driver(at)
        events = tuple(self._event(event, at) for event in self._events.take())
        return Evidence(
            node=self._node.name,
            run=RUN,
            boot_id=RUN,
            uptime_seconds=self._uptime_seconds + at,
            tick_age_seconds=0.0,
            driver=self._driver(at),
            gpus=tuple(self._gpu(device, at) for device in self._known.values()),
            unidentified=self._unidentified,
            events=events,
            newest=self._happened,
            kernel_log="off",
        )

    def _follow_driver(self, at: float) -> None:
        if not self._down and self._version is not None:
            try:
                self._nvml.count()
            except DriverUnavailableError:
                self._nvml.stop()
                self._version = None
        if self._version is None:
            self._start(at)

    def _start(self, at: float) -> None:
        try:
            self._version = self._nvml.start()
        except DriverUnavailableError as error:
            if self._down != error.reason:
                self._down, self._since = error.reason, at
            return
        self._starts += 1
        self._down, self._since = "", at
        self._sessions.clear()
        self._unidentified = tuple(self._identify())
        for device in self._known.values():
            self._sessions[device.uuid] = self._nvml.open(device)

    def _identify(self) -> Iterator[Unidentified]:
        for index, gpu in enumerate(self._node.gpus):
            if gpu.stage.state is GpuState.HUNG:
                yield Unidentified(index=index, reason=HANGING)
                continue
            found = self._nvml.identify(index)
            if isinstance(found, protocol.Value):
                self._known[found.value.uuid] = found.value
            elif isinstance(found, protocol.Failed):
                yield Unidentified(index=index, reason=found.error.lower())
            else:
                yield Unidentified(index=index, reason=found.reason)

    def _driver(self, at: float) -> Driver:
        version = self._version
        before = 0.0 if self._since else self._uptime_seconds
        return Driver(
            down=self._down,
            seconds=at - self._since + before,
            starts=self._starts,
            version=version.driver if version else "",
            nvml=version.nvml if version else "",
            cuda=version.cuda if version else "",
        )

    def _gpu(self, device: Device, at: float) -> Gpu:
        last = self._answered.get(device.uuid, 0.0)
        if self._down:
            return Gpu(device=device, silent=self._down, silent_seconds=at - last)
        simulated = self._node.gpu(device.uuid)
        if simulated is not None and simulated.stage.state is GpuState.HUNG:
            return Gpu(
                device=device, silent=HANGING, silent_seconds=at - last,
                call=self._plan.gpu.probes[0].name, call_seconds=at - last,
            )  # fmt: skip
        return self._asked(device, at, last)

    def _asked(self, device: Device, at: float, last: float) -> Gpu:
        session = self._sessions[device.uuid]
        found = session.devices()
        if isinstance(found, protocol.Lost):
            return Gpu(device=device, silent=found.reason, silent_seconds=at - last)
        if not isinstance(found, protocol.Value):
            return Gpu(device=device, readings=dict.fromkeys(self._names(), _reading(found)))
        self._answered[device.uuid] = at
        whole, *instances = found.value
        self._known[device.uuid] = whole
        readings = {
            probe.name: _reading(session.read(probe, whole)) for probe in self._plan.gpu.probes
        }
        return Gpu(device=whole, readings=readings, instances=tuple(instances))

    def _names(self) -> Iterator[str]:
        return (probe.name for probe in self._plan.gpu.probes)

    def _event(self, event: GpuEvent, at: float) -> Event:
        self._happened += 1
        gpu = self._known.get(event.gpu)
        return Event(
            number=self._happened,
            kind=Happening(event.kind.value),
            age_seconds=at - event.at,
            gpu=event.gpu,
            data=event.data,
            pci_bus_id=gpu.pci_bus_id if gpu else "",
            gpu_instance=event.gpu_instance_id,
            compute_instance=event.compute_instance_id,
        )


def _reading(outcome: Outcome[Any]) -> Reading:
    if isinstance(outcome, protocol.Value):
        return Value(reading=msgspec.Raw(msgspec.json.encode(outcome.value)), age_seconds=0.0)
    if isinstance(outcome, protocol.Unsupported):
        return Unsupported(reason=outcome.reason)
    if isinstance(outcome, protocol.Failed):
        return Failed(error=outcome.error, age_seconds=0.0)
    return Lost(reason=outcome.reason, age_seconds=0.0)
