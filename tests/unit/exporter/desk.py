"""A driver that answers what a test tells it to, and watches that it is used as it must be."""

import asyncio
import threading
from contextlib import contextmanager

from exporter.nvml.plan import Plan, ScopePlan
from exporter.nvml.protocol import Driver, Slot, Unsupported, Value
from slicewatch.catalog.readings.clocks import Clock
from slicewatch.catalog.readings.memory import Memory
from slicewatch.catalog.readings.power import Energy, Power, Temperature
from slicewatch.catalog.readings.utilization import Utilization
from slicewatch.wire.layout import Device

READINGS = {
    "utilization": Utilization(samples=((2_000_000, 40),), since_us=1_000_000),
    "memory": Memory(total_bytes=1000, free_bytes=650, used_bytes=250, reserved_bytes=100),
    "power": Power(draw_milliwatts=300_000),
    "energy": Energy(used_millijoules=5_000),
    "temperature": Temperature(celsius=44),
    "sm_clock": Clock(megahertz=1980),
    "memory_clock": Clock(megahertz=2619),
}


def _part(part):
    kept = [(p, m) for p, m in zip(part.probes, part.metrics, strict=True) if p.name in READINGS]
    return ScopePlan(probes=tuple(p for p, _ in kept), metrics=tuple(m for _, m in kept))


# The plan of the catalog, as far as there are readings: the catalog grows, these tests need not.
PLAN = Plan(gpu=_part(Plan.of(()).gpu), mig=_part(Plan.of(()).mig))

# What is not among the readings: a test that needs it gives it.
BARE = Unsupported("device")


def make_gpu(index=0, uuid=None, **facts):
    return Device(uuid=uuid or f"GPU-{index}", gpu=index, model="NVIDIA H100", **facts)


def make_mig(gpu, number, **facts):
    facts = {"uuid": f"MIG-{gpu.uuid}-{number}", "profile": "1g.10gb"} | facts
    return Device(
        gpu=gpu.gpu, model=gpu.model, parent=gpu.uuid, gpu_instance=number + 7,
        compute_instance=0, placement_start=number, placement_size=1, **facts,
    )  # fmt: skip


class Desk:
    """An ``Nvml`` whose every answer a test can change at any time.

    Attributes:
        slots: what is enumerated.
        found: per uuid, what ``devices()`` answers; by default the GPU alone.
        readings: per probe name, the outcome; or per (uuid, probe name); others are ``BARE``.
        refusal: raised by ``start``; ``gone`` by ``gpus``.
        starts, stops: how often it was started and stopped.
        sessions_open: how many were opened and not closed.
        reads: (uuid, probe name) of each read, in order.
        mig_change_pending: uuids of the GPUs that a reset gives another MIG mode.
        gates: by place, what calls there wait for.
        inside: how many threads are inside a call; stuck: how many of them wait for a gate.
        misuse: what should never happen.
    """

    def __init__(self, *gpus):
        self.slots = tuple(Slot(index=g.gpu, gpu=Value(g)) for g in gpus)
        self.found = {}
        self.readings = {name: Value(reading) for name, reading in READINGS.items()}
        self.refusal = None
        self.gone = None
        self.starts = self.stops = 0
        self.sessions_open = 0
        self.reads = []
        self.misuse = []
        self.gates = {}
        self.mig_change_pending = set()
        self.inside = 0
        self.stuck = 0
        self._lock = threading.Lock()

    def hang(self, place):
        """Let calls at a uuid, at ``identity <index>``, ``start`` or ``stop``, block until the gate is set."""
        self.gates[place] = threading.Event()
        return self.gates[place]

    def start(self):
        self._off_the_loop()
        self._pass_gate("start")
        if self.refusal is not None:
            raise self.refusal
        if self.starts != self.stops:
            self.misuse.append("started twice")
        self.starts += 1
        return Driver(driver="580.95.05", nvml="13.580.95.05", cuda="13.0")

    def stop(self):
        self._off_the_loop()
        self._pass_gate("stop")
        if self.inside:
            self.misuse.append("stopped while a thread was inside a call")
        self.stops += 1

    def count(self):
        self._off_the_loop()
        if self.gone is not None:
            raise self.gone
        return len(self.slots)

    def identify(self, index):
        with self.call(f"identity {index}"):
            return self.slots[index].gpu

    def open(self, gpu):
        self._off_the_loop()
        return DeskSession(self, gpu)

    def events(self, gpus):
        raise NotImplementedError("no test here listens to events")

    @contextmanager
    def call(self, uuid):
        self._off_the_loop()
        with self._lock:
            self.inside += 1
            if self.starts == self.stops:
                self.misuse.append("called while NVML was stopped")
        try:
            self._pass_gate(uuid)
            yield
        finally:
            with self._lock:
                self.inside -= 1

    def _pass_gate(self, place):
        gate = self.gates.get(place)
        if gate is not None:
            self.stuck += 1
            gate.wait(30)
            self.stuck -= 1

    def _off_the_loop(self):
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        self.misuse.append("called on the event loop's thread")


class DeskSession:
    def __init__(self, desk, gpu):
        self._desk = desk
        self._gpu = gpu
        self.closed = False
        desk.sessions_open += 1

    @property
    def mig_change_pending(self):
        return self._gpu.uuid in self._desk.mig_change_pending

    def devices(self):
        with self._desk.call(self._gpu.uuid):
            return self._desk.found.get(self._gpu.uuid, Value((self._gpu,)))

    def read(self, probe, device):
        with self._desk.call(self._gpu.uuid):
            self._desk.reads.append((device.uuid, probe.name))
            answers = self._desk.readings
            return answers.get((device.uuid, probe.name), answers.get(probe.name, BARE))

    def close(self):
        self._desk.sessions_open -= 1
        self.closed = True


class Hand:
    """A clock that a test moves."""

    def __init__(self, now=1000.0):
        self.now = now

    def __call__(self):
        return self.now


async def until(condition, seconds=10.0):
    """Let the loop turn until the condition holds, which other threads bring about."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - threads set no event of a loop
            await asyncio.sleep(0.005)
