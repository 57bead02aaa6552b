"""One machine of a fleet: its GPUs, its driver, and what can be changed while it runs."""

import threading
from dataclasses import dataclass
from enum import StrEnum
from typing import get_args

from simulator import identity
from simulator.board_state import BoardState
from simulator.checking import check_fault
from simulator.clock import Clock
from simulator.driver import Driver, driver_at
from simulator.faults import NEVER, Injection, Story
from simulator.gpu import Identity, SimulatedGpu
from simulator.links import Links
from simulator.memory_errors import MemoryErrors
from simulator.scenario import Ecc, Fault, GpuGroup, Node, RecoveryNeeded, Scenario, Xid
from simulator.sharing import Rules
from simulator.stage import StageMaker
from simulator.tenancy import Owner, Tenancy, tenancies, vgpu_tenancies
from simulator.timeline import GpuTimeline
from slicewatch.hardware import model_named

# Faults that a driver reports when they happen, and of the last also when they end.
Telling = Xid | Ecc | RecoveryNeeded


class EventKind(StrEnum):
    """What a driver reports when it happens."""

    XID = "xid"
    SINGLE_BIT_ECC = "single_bit_ecc"
    DOUBLE_BIT_ECC = "double_bit_ecc"
    RECOVERY_ACTION = "recovery_action"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuEvent:
    """Something that happened on a GPU at a second of the fleet.

    ``data`` is the number of the Xid, or of the recovery action that is wanted from then on.
    """

    at: float
    kind: EventKind
    gpu: str
    data: int = 0
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None


class EventCursor:
    """What happens on a node from now on, each event once. For one thread."""

    def __init__(self, node: "SimulatedNode") -> None:
        self._node = node
        self._seen = node.clock.now()
        self._of_that_moment = 0
        self.take()

    def take(self) -> tuple[GpuEvent, ...]:
        """Return what happened since the last call, in order."""
        with self._node.changed:
            now = self._node.clock.now()
            # More can happen at the moment seen last, since a manual clock stands still.
            events = self._node.events(self._seen, now)
        new = events[self._of_that_moment :]
        self._seen = now
        self._of_that_moment = sum(event.at == now for event in events)
        return new


class SimulatedNode:
    """A machine with GPUs.

    Attributes:
        changed: guards everything on the node and is notified when its future changes; a manual
            clock notifies those who wait on it through the clock.
    """

    def __init__(self, node: Node, scenario: Scenario, clock: Clock) -> None:
        self.name = node.name
        self.changed = threading.Condition()
        self.clock = clock
        self._node = node
        faults = tuple(fault for fault in scenario.faults if fault.node == node.name)
        self._story = Story(faults)
        self._tenancies = tenancies(scenario, node.name)
        self.gpus = tuple(
            self._gpu(scenario, index, group) for index, group in enumerate(node.groups())
        )
        self._of_pid: dict[int, list[Tenancy]] = {}
        for one in self._tenancies:
            for pid in one.pids:
                self._of_pid.setdefault(pid, []).append(one)

    @property
    def driver(self) -> Driver:
        """The driver as it is now."""
        return self.driver_at(self.clock.now())

    def driver_at(self, at: float) -> Driver:
        """Return the driver at a moment."""
        with self.changed:
            return driver_at(self._story, at, version=self._node.driver, cuda=self._node.cuda)

    def gpu(self, uuid: str) -> SimulatedGpu | None:
        """Return the GPU of that uuid, or None."""
        return next((gpu for gpu in self.gpus if gpu.uuid == uuid), None)

    def owner_of(self, pid: int) -> Owner | None:
        """Return whose process it is, or None: one of the host, or none that runs now."""
        now = self.clock.now()
        running = (one for one in self._of_pid.get(pid, ()) if one.holds(now))
        return next((one.owner for one in running), None)

    def runs(self, pid: int) -> bool:
        """Tell whether a process with a context on a GPU runs now."""
        return any(process.pid == pid for gpu in self.gpus for process in gpu.processes)

    def is_mps_server(self, pid: int) -> bool:
        """Tell the server of MPS on one of the GPUs."""
        return any(gpu.mps_server_pid == pid for gpu in self.gpus)

    def set_load(self, device: str, level: float | None) -> None:
        """Keep a GPU or MIG device at a load from now on; None gives it back to its pods.

        Raises:
            ValueError: the node has no such device now, it is a GPU in MIG mode, or the level is
                not between 0 and 1.
        """
        for gpu in self.gpus:
            if device in gpu.stage.loads:
                gpu.set_load(level, device=device)
                return
        raise ValueError(f"{self.name} has no device {device} that can have a load now")

    def inject(self, fault: Fault) -> Injection:
        """Let a fault happen; its times count from now.

        Raises:
            ScenarioError: the fault is impossible on this node.
        """
        check_fault("fault", fault, {self.name: self._node})
        with self.changed:
            now = self.clock.now()
            injection = self._story.add(fault, now=now)
            self._rebuild(now)
        return injection

    def clear(self, injection: Injection | None = None) -> None:
        """End a fault now, or every fault of the node, those of the scenario included."""
        with self.changed:
            now = self.clock.now()
            self._story.clear(injection, now=now)
            self._rebuild(now)

    def listen(self) -> "EventCursor":
        """Return a cursor that starts after everything that has happened."""
        return EventCursor(self)

    def events(self, since: float, until: float) -> tuple[GpuEvent, ...]:
        """Return what happened from ``since`` to ``until``, both included, in order."""
        with self.changed:
            found = self._story.occurrences(since, until, get_args(Telling))
            times = [(o.begin, False, o.fault) for o in found if isinstance(o.fault, Telling)]
            times += [(o.end, True, o.fault) for o in found if isinstance(o.fault, RecoveryNeeded)]
        # At one moment what ends comes last: a fault is cleared after others were injected.
        happened = sorted((t for t in times if since <= t[0] <= until), key=lambda t: t[:2])
        return tuple(self._event(at, fault) for at, _, fault in happened)

    def next_change(self, after: float) -> float | None:
        """Return when a fault next begins or ends, as far as it is known now."""
        with self.changed:
            at = self._story.next_change(after)
        return None if at == NEVER else at

    def _event(self, at: float, fault: Telling) -> GpuEvent:
        if isinstance(fault, Xid):
            return GpuEvent(
                at=at,
                kind=EventKind.XID,
                gpu=self.gpus[fault.gpu].uuid,
                data=fault.xid,
                gpu_instance_id=fault.gpu_instance,
                compute_instance_id=fault.compute_instance,
            )
        if isinstance(fault, Ecc):
            single = fault.bits == "single"
            kind = EventKind.SINGLE_BIT_ECC if single else EventKind.DOUBLE_BIT_ECC
            return GpuEvent(at=at, kind=kind, gpu=self.gpus[fault.gpu].uuid)
        gpu = self.gpus[fault.gpu]
        wanted = gpu.errors.recovery_at(at)
        return GpuEvent(at=at, kind=EventKind.RECOVERY_ACTION, gpu=gpu.uuid, data=wanted)

    def _rebuild(self, now: float) -> None:
        for gpu in self.gpus:
            gpu.timeline.rebuild(now=now)
        self.changed.notify_all()

    def _gpu(self, scenario: Scenario, index: int, group: GpuGroup) -> SimulatedGpu:
        model = model_named(group.model)
        uuid = identity.gpu_uuid(scenario.seed, self.name, index)
        vgpus = vgpu_tenancies(group, uuid, index, self.name)
        maker = StageMaker(
            uuid=uuid,
            index=index,
            model=model,
            slots=group.mig,
            tenancies=[*(one for one in self._tenancies if one.holding.gpu == index), *vgpus],
            rules=Rules(model=model, policy=group.scheduler.policy),
            story=self._story,
        )
        timeline = GpuTimeline(
            uuid=uuid, index=index, model=model, maker=maker, changed=self.changed
        )
        has_serial = "GeForce" not in model.nvml_name
        board = Identity(
            uuid=uuid,
            index=index,
            minor=index,
            pci_bus_id=identity.pci_bus_id(index),
            serial=identity.serial(scenario.seed, self.name, index) if has_serial else "",
            board_part_number=f"SIM-{model.name}",
            vbios="00.00.00.00.01",
        )
        return SimulatedGpu(
            identity=board,
            model=model,
            timeline=timeline,
            group=group,
            vgpus=vgpus,
            clock=self.clock,
            driver=self.driver_at,
            errors=MemoryErrors(
                model, self._story, timeline, clock=self.clock, driver=self.driver_at
            ),
            setup=BoardState(model, self._story, timeline, clock=self.clock),
            links=Links(model, self._story, timeline, clock=self.clock, driver=self.driver_at),
        )
