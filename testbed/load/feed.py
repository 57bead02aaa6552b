"""Lets the driver of a node report the load programs that run there.

The simulated node says everything else: what its devices are, and how they behave under the load
that is set here. Its own processes are replaced.
"""

import time
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from simulator.gpu import SimulatedGpu
from simulator.node import SimulatedNode
from simulator.processes import Process, ProcessType
from simulator.timeline import MigDevice
from testbed.driver.answers import Answers
from testbed.driver.answers_of.processes import put_lists, put_ring
from testbed.driver.feeder import DriverFeed
from testbed.load.processes import LoadProcess, running
from testbed.load.sampling import Sampling


class LoadFeed:
    """Answers for the processes of all GPUs, with each refresh of the driver.

    Args:
        node: whose GPUs are loaded.
        driver: of that node; it must not run yet.
        proc: procfs of the node's PID namespace, which is the one that asks the driver.
    """

    def __init__(self, node: SimulatedNode, driver: DriverFeed, proc: Path) -> None:
        self._node = node
        self._proc = proc
        self._samplings = [Sampling() for _ in node.gpus]
        self._levels: dict[str, float] = {}
        self._found: dict[str, list[LoadProcess]] = {}
        for gpu in node.gpus:
            driver.answer(gpu.index, partial(self._answer, gpu))

    def _answer(self, gpu: SimulatedGpu, into: Answers) -> None:
        # The driver shows its GPUs in this order, so that one look serves all of a refresh.
        if gpu is self._node.gpus[0]:
            self._look()
        if gpu.mig_enabled:
            self._answer_mig(gpu, into)
        else:
            self._answer_whole(gpu, into)

    def _look(self) -> None:
        found: defaultdict[str, list[LoadProcess]] = defaultdict(list)
        for process in running(self._proc):
            for device in process.devices:
                found[device].append(process)
        self._found = found

    def _answer_whole(self, gpu: SimulatedGpu, into: Answers) -> None:
        working = self._working_on(gpu.uuid)
        put_lists((_listed(process) for process in working), into)
        sampling = self._samplings[gpu.index]
        # Stamped as it is shown: a reader who was here a moment ago must not miss it.
        sampling.note(time.time_ns() // 1000, {p.pid: p.demand.share for p in working})
        put_ring(sampling.ring, into)

    def _answer_mig(self, gpu: SimulatedGpu, into: Answers) -> None:
        everything: list[Process] = []
        for device in gpu.mig_devices:
            listed = [_listed(process, device) for process in self._working_on(device.uuid)]
            put_lists(listed, into, slot=device.index)
            everything += listed
        put_lists(everything, into)

    def _working_on(self, device: str) -> Iterable[LoadProcess]:
        """Return who works on a device, which is as busy as that makes it."""
        working = self._found.get(device, [])
        level = min(1.0, sum(process.demand.share for process in working))
        if level != self._levels.get(device, 0.0):
            self._levels[device] = level
            self._node.set_load(device, level)
        return working


def _listed(process: LoadProcess, device: MigDevice | None = None) -> Process:
    return Process(
        pid=process.pid,
        type=ProcessType.COMPUTE,
        used_bytes=process.demand.memory_bytes,
        gpu_instance_id=device.gpu_instance_id if device else None,
        compute_instance_id=device.compute_instance_id if device else None,
    )
