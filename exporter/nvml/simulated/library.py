"""The life of the simulated library: start, enumeration, stop."""

from pathlib import Path

from exporter.nvml.protocol import (
    Driver,
    DriverUnavailableError,
    EventSource,
    Failed,
    Lost,
    Outcome,
    Session,
    Value,
)
from exporter.nvml.samples import CursorsByGpu
from exporter.nvml.simulated.events import SimulatedEvents
from exporter.nvml.simulated.refusals import (
    MISMATCH,
    Life,
    failure_of,
    refusal_of,
    refuse_on_event_loop,
)
from exporter.nvml.simulated.session import SimulatedSession, whole_gpu
from simulator.clock import RealTimeClock
from simulator.fleet import Fleet
from simulator.node import SimulatedNode
from slicewatch.wire.layout import Device


class SimulatedNvml:
    """NVML on one node of a fleet; see ``protocol.Nvml``."""

    def __init__(self, node: SimulatedNode) -> None:
        self.node = self._node = node
        self._life: Life | None = None
        self._cursors = CursorsByGpu()

    @classmethod
    def of(cls, scenario: Path | str, *, node: str = "") -> "SimulatedNvml":
        """Return NVML on a node of a fleet that runs in real time.

        Args:
            scenario: a file, or the name of a scenario that is shipped.
            node: which one of its nodes; empty for the first.

        Raises:
            ScenarioError: the scenario cannot be read or describes no possible fleet.
            KeyError: it has no such node.
        """
        fleet = Fleet.named(scenario, clock=RealTimeClock())
        return cls(fleet.node(node) if node else fleet.nodes[0])

    def start(self) -> Driver:
        """Initialise, once until the next ``stop``.

        Raises:
            DriverUnavailableError: the scenario has the driver gone or half replaced.
        """
        refuse_on_event_loop()
        with self._node.changed:
            if self._life is not None:
                raise RuntimeError("NVML is started already; stop it first")
            driver = self._node.driver
            if not driver.loaded:
                raise DriverUnavailableError("no_driver", "the NVIDIA driver is not loaded")
            if not driver.matches:
                raise DriverUnavailableError(
                    "version_mismatch",
                    f"NVIDIA's library is not yet that of kernel driver {driver.version}",
                )
            self._life = Life(driver.generation)
        major = driver.cuda.partition(".")[0]
        return Driver(driver=driver.version, nvml=f"{major}.{driver.version}", cuda=driver.cuda)

    def stop(self) -> None:
        """Shut down, if it is started; calls that hang return."""
        refuse_on_event_loop()
        with self._node.changed:
            if self._life is not None:
                self._life.ended = True
                self._life = None
                self._node.changed.notify_all()

    def count(self) -> int:
        """Return how many GPUs there are, those that do not answer included.

        Raises:
            DriverUnavailableError: the driver went away after the start.
        """
        refuse_on_event_loop()
        failure = failure_of(self._node, self._life, closed=False)
        if failure is not None:
            raise DriverUnavailableError(_word(failure), f"NVML answers {failure.error}")
        return len(self._node.gpus)

    def identify(self, index: int) -> Outcome[Device]:
        """Return the GPU at an index, or why it does not say who it is; waits while it hangs."""
        refuse_on_event_loop()
        gpu = self._node.gpus[index]
        refusal = refusal_of(self._node, gpu, self._life)
        return refusal or Value(whole_gpu(gpu, mig_enabled=gpu.mig_enabled))

    def open(self, gpu: Device) -> Session:
        """Return a session for a GPU that was identified."""
        refuse_on_event_loop()
        cursors = self._cursors.of(gpu.uuid)
        return SimulatedSession(self._node, self._node.gpu(gpu.uuid), cursors, self._life)

    def events(self, gpus: tuple[Device, ...]) -> Outcome[EventSource]:
        """Listen to these GPUs, without those that are lost."""
        refuse_on_event_loop()
        refusal: Lost | Failed | None = None
        listening = set()
        for device in gpus:
            refusal = refusal_of(self._node, self._node.gpu(device.uuid), self._life)
            if isinstance(refusal, Failed):
                return refusal
            if refusal is None:
                listening.add(device.uuid)
        if refusal is not None and not listening:
            return refusal
        return Value(SimulatedEvents(self._node, frozenset(listening), self._life))


def _word(failure: Failed) -> str:
    return "version_mismatch" if failure is MISMATCH else "no_driver"
