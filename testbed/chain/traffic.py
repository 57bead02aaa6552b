"""Requests that come to pools of pods, and how busy they keep the devices that these hold.

Each pool's requests are spread evenly over its processes that run, so that more replicas take load
from one another. Processes on one device take turns, as a time-sliced GPU lets them.
"""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simulator.node import SimulatedNode
from testbed.driver.feeder import DriverFeed
from testbed.load.feed import LoadFeed
from testbed.load.processes import DEVICES, Demand, LoadProcess

MARK: Final = "pool"
_LOOK_SECONDS: Final = 0.5
_MEMORY_BYTES: Final = 2**30
# More than this does not wait: clients give up.
_FULLEST: Final = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What comes to a pool.

    Attributes:
        gpu_seconds: of a device's time, that a request takes.
        service_seconds: that a request takes of a server which has no other; further ones wait.
    """

    requests_per_second: float = 0.0
    gpu_seconds: float = 0.0
    service_seconds: float = 0.06

    @property
    def gpus(self) -> float:
        """How many devices would be fully busy with it."""
        return self.requests_per_second * self.gpu_seconds

    def latency_seconds(self, pods: int) -> float:
        """Return what a request takes, waiting included, in one of that many servers' queues."""
        load = self.requests_per_second * self.service_seconds / pods
        return self.service_seconds / (1 - min(load, _FULLEST))


class PoolFeed(LoadFeed):
    """Lets the driver of a node report the processes of pools, as busy as their traffic is.

    A process of a pool has ``MARK`` and the pool's name as the last words of its command. The
    pool's traffic, for one pod, is told to it by the file of its name in ``folder``.

    Attributes:
        traffic: by pool; may be changed at any time. Others have none.
        gpus: how busy each device is, 0 to 1, by its uuid.
    """

    def __init__(self, node: SimulatedNode, driver: DriverFeed, proc: Path, folder: Path) -> None:
        super().__init__(node, driver, proc)
        self.traffic: dict[str, Traffic] = {}
        self.gpus: Mapping[str, float] = self._levels
        self._folder = folder
        self._told: dict[str, str] = {}
        self._next_look = 0.0
        folder.mkdir()

    def tell(self, pool: str, pods: int) -> None:
        """Write down for the pods of a pool what comes to each of that many."""
        traffic, spread = self.traffic.get(pool, Traffic()), max(pods, 1)
        text = json.dumps({
            "requests_per_second": traffic.requests_per_second / spread,
            "latency_seconds": traffic.latency_seconds(spread),
        })  # fmt: skip
        if text != self._told.get(pool):
            new = self._folder / f"{pool}.new"
            new.write_text(text)
            new.rename(self._folder / pool)
            self._told[pool] = text

    def _look(self) -> None:
        # Reading all of procfs ten times a second would cost more than all else here.
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + _LOOK_SECONDS
        processes = tuple(_processes(self._proc))
        pods = Counter(pool for pool, _, _ in processes)
        for pool in {*pods, *self._told}:
            self.tell(pool, pods[pool])
        by_device: defaultdict[str, dict[int, float]] = defaultdict(dict)
        for pool, pid, device in processes:
            by_device[device][pid] = self.traffic.get(pool, Traffic()).gpus / pods[pool]
        self._found = {
            device: [_process(pid, device, share) for pid, share in in_turns(wanted).items()]
            for device, wanted in by_device.items()
        }


def in_turns(wanted: Mapping[int, float]) -> dict[int, float]:
    """Return the shares of a device whose processes take turns: who wants less leaves the rest.

    >>> in_turns({1: 0.1, 2: 2.0, 3: 0.5})
    {1: 0.1, 3: 0.45, 2: 0.45}
    """
    left, shares = 1.0, {}
    ordered = sorted(wanted.items(), key=lambda item: item[1])
    for others, (pid, wish) in zip(range(len(ordered), 0, -1), ordered, strict=True):
        shares[pid] = min(wish, left / others)
        left -= shares[pid]
    return shares


def _process(pid: int, device: str, share: float) -> LoadProcess:
    demand = Demand(share=share, memory_bytes=_MEMORY_BYTES)
    return LoadProcess(pid=pid, devices=frozenset([device]), demand=demand)


def _processes(proc: Path) -> Iterator[tuple[str, int, str]]:
    """Yield the pool, PID and device of each process of a pool."""
    for folder in sorted(path for path in proc.iterdir() if path.name.isdecimal()):
        *_, mark, pool = ["", "", *_words(folder / "cmdline")]
        device = _setting(folder / "environ", DEVICES) if mark == MARK else ""
        if device:
            yield pool, int(folder.name), device


def _setting(environ: Path, name: str) -> str:
    pairs = (word.partition("=") for word in _words(environ))
    return next((value for key, _, value in pairs if key == name), "")


def _words(file: Path) -> list[str]:
    try:
        return file.read_text(errors="replace").split("\0")[:-1]
    except OSError:  # The process has ended.
        return []
