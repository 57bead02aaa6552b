"""How long a step of the load takes until an autoscaler sees it.

Simulated GPU, C library, exporter process, adapter process, metrics API: nothing in between is
shortened. The value is a mean over the exporter's window, so that it moves at once and arrives a
window later. A step begins right after a tick, its worst moment.
"""

import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

from bench import node as nodes
from bench import processes
from bench.adapters import START_SECONDS, RunningAdapter, adapter
from bench.errors import BenchError
from bench.report import Goal, Of, Row, Unit
from bench.rounds import extent
from exporter.settings import ExporterSettings
from simulator.clock import RealTimeClock
from simulator.fleet import Fleet
from simulator.node import SimulatedNode

LOW: Final = 0.1
HIGH: Final = 0.9
# Up, down, up: each begins where the one before it has arrived.
STEPS: Final = (HIGH, LOW, HIGH)
POLL_SECONDS: Final = 0.05
ARRIVED_SHARE: Final = 0.9
REACTION_SECONDS: Final = 2.0
# Percent; a value that has moved by more has seen the step.
NOTICEABLE: Final = 0.5

NAMESPACE: Final = "inference"
POD: Final = "server-0"
PATH: Final = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{NAMESPACE}/pods/*/gpu_utilization"
SCENARIO: Final = f"""
nodes:
  - name: gpu-node
    gpus: [{{model: H100-80GB, count: 8}}]
workloads:
  - name: server
    namespace: {NAMESPACE}
    load: {LOW}
    pods:
      - {{name: {POD}, devices: [{{node: gpu-node, gpu: 0}}]}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """Seconds from a step until the served value moved, and until it was nearly there."""

    moved: float
    arrived: float


async def measure(folder: Path) -> list[Row]:
    """Return how fast the served value follows steps of the load."""
    window = ExporterSettings().window_seconds
    fleet = Fleet.load(SCENARIO, clock=RealTimeClock())
    async with (
        aiohttp.ClientSession() as client,
        nodes.node(fleet, folder) as machine,
        nodes.exporter(machine, folder, client, tick_seconds=1.0) as exporter,
        adapter([_pod()], NAMESPACE, [exporter.url], folder) as asked,
    ):
        await _settled(asked, 100 * LOW, window)
        # A window that is not full yet follows faster than one in production.
        await asyncio.sleep(window)
        seen = [await _reaction(asked, machine.simulated, level, window) for level in STEPS]
    return [
        _row("step: load to a moved value", [r.moved for r in seen], REACTION_SECONDS),
        _row(
            f"step: load to {ARRIVED_SHARE:.0%} of the change, window {window:g} s",
            [r.arrived for r in seen], window + REACTION_SECONDS,
        ),
    ]  # fmt: skip


def _pod() -> dict[str, object]:
    return {
        "metadata": {"name": POD, "labels": {"app": "server"}},
        "spec": {"nodeName": "gpu-node", "containers": [{"name": "main"}]},
        "status": {"phase": "Running"},
    }


def _row(figure: str, seconds: list[float], limit: float) -> Row:
    return Row(
        figure=figure, value=statistics.median(seconds), unit=Unit.SECONDS,
        spread=extent(seconds), goal=Goal(limit=limit, of=Of.VALUE),
    )  # fmt: skip


async def _settled(asked: RunningAdapter, percent: float, window: float) -> None:
    """Wait until the value of the pod is that of a whole window of one load."""

    async def there() -> bool:
        values = await asked.values(PATH)
        return len(values) == 1 and abs(values[0] - percent) < NOTICEABLE

    await processes.until(
        there, what=f"a utilization of {percent:g} %", seconds=START_SECONDS + 2 * window,
        child=asked.child,
    )  # fmt: skip


async def _reaction(
    asked: RunningAdapter, node: SimulatedNode, level: float, window: float
) -> Reaction:
    before, after = await _value(asked), 100 * level
    node.set_load(node.gpus[0].uuid, level)
    began = time.monotonic()
    moved = await _until(asked, lambda v: abs(v - before) > NOTICEABLE, began, window)
    nearly = (1 - ARRIVED_SHARE) * abs(after - before)
    arrived = await _until(asked, lambda v: abs(v - after) <= nearly, began, window)
    await _settled(asked, after, window)
    return Reaction(moved=moved, arrived=arrived)


async def _value(asked: RunningAdapter) -> float:
    (value,) = await asked.values(PATH)
    return value


async def _until(
    asked: RunningAdapter, holds: Callable[[float], bool], began: float, window: float
) -> float:
    """Ask again and again; return the seconds since ``began`` when the value was as wanted.

    Raises:
        BenchError: it never was.
    """
    while (passed := time.monotonic() - began) < 3 * window:
        if all(map(holds, await asked.values(PATH))):
            return time.monotonic() - began
        await asyncio.sleep(POLL_SECONDS)
    raise BenchError(f"the value did not follow the load within {passed:.0f} s")
