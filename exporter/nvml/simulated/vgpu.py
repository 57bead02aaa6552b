"""The vGPUs of a simulated host; rates and waits need a cursor, so the session holds this."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from exporter.nvml.protocol import Outcome, Unsupported, Value
from exporter.nvml.samples import Cursors
from exporter.nvml.vgpu_waits import LogEntry
from simulator.gpu import SimulatedGpu
from simulator.vgpu import VgpuHost
from slicewatch.catalog.readings.vgpu import (
    POLICIES,
    SchedulerPolicy,
    Vgpu,
    Vgpus,
    VgpuScheduler,
    VgpuUtilization,
    VgpuWaits,
)

NO_HOST: Final = Unsupported("no_vgpu_host")
NUMBERS: Final = {policy: number for number, policy in POLICIES.items()}

Read = Callable[[SimulatedGpu], Outcome[Any]]


class SimulatedVgpus:
    """The reads of one session.

    Args:
        cursors: how far the GPU was read.
        now_us: the CPU's clock.
    """

    def __init__(self, cursors: Cursors, now_us: Callable[[], int]) -> None:
        self._cursor = cursors.vgpus
        self._wait_cursor = cursors.vgpu_waits
        self._now_us = now_us
        self.reads: Mapping[str, Read] = {
            "vgpus": _on_host(_vgpus),
            "vgpu_utilization": _on_host(self._utilization),
            "vgpu_scheduler": _on_host(_scheduler),
            "vgpu_waits": _on_host(self._waits),
        }

    def _utilization(self, host: VgpuHost) -> VgpuUtilization:
        now_us = self._now_us()
        rows = [
            (
                sample.instance, sample.at_us, sample.sm_percent, sample.memory_percent,
                sample.encoder_percent, sample.decoder_percent,
            )
            for sample in host.samples(self._cursor.since_us(now_us))
        ]  # fmt: skip
        return self._cursor.take(rows, _running(host), now_us)

    def _waits(self, host: VgpuHost) -> VgpuWaits:
        entries = (
            LogEntry(
                entry.runlist_id,
                entry.timestamp_ns,
                entry.time_run_total_ns,
                entry.cumulative_preemption_ns,
            )
            for entry in host.log()
        )
        return self._wait_cursor.take(entries, _running(host))


def _on_host(read: Callable[[VgpuHost], Any]) -> Read:
    def ask(gpu: SimulatedGpu) -> Outcome[Any]:
        host = gpu.vgpu_host
        return NO_HOST if host is None else Value(read(host))

    return ask


def _running(host: VgpuHost) -> dict[int, str]:
    return {one.id: one.uuid for one in host.instances()}


def _vgpus(host: VgpuHost) -> Vgpus:
    found = tuple(
        Vgpu(
            one.uuid, one.type_name, one.vm, one.used_bytes, one.total_bytes, int(one.licensed)
        )
        for one in host.instances()
    )  # fmt: skip
    return Vgpus(len(found), found)


def _scheduler(host: VgpuHost) -> VgpuScheduler:
    scheduler = host.scheduler
    number = NUMBERS[SchedulerPolicy(scheduler.policy.value)]
    return VgpuScheduler(number, round(1e9 * scheduler.time_slice))
