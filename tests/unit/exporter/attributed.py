"""An attribution that is told one second after the other, as its tests use it."""

from exporter.measure.attribution import Attribution
from exporter.nvml.plan import Plan, ScopePlan
from exporter.nvml.protocol import Failed, Unsupported, Value
from exporter.nvml.reader import Cycle
from exporter.tenants.owners import Owner
from exporter.tenants.tenants import Holders
from slicewatch.catalog.processes import PROCESS_UTILIZATION, PROCESSES
from slicewatch.catalog.readings.processes import (
    GpuProcess,
    Processes,
    ProcessKind,
    ProcessShare,
    ProcessUtilization,
)
from slicewatch.wire.layout import Tenant
from tests.unit.exporter.desk import make_gpu, make_mig

NOW_US = 1_800_000_000_000_000
GIB = 2**30
ONE, TWO = make_gpu(0), make_gpu(1)
PARENT = make_gpu(2, mig_enabled=True)
SLICES = (make_mig(PARENT, 0), make_mig(PARENT, 1))
A, B = (Owner(namespace="ns", pod=pod, container="main", uid=f"{pod}-uid") for pod in "ab")
SIDECAR = Owner(namespace="ns", pod="a", container="sidecar", uid="a-uid")


def _plan(*probes):
    return ScopePlan(probes=probes, metrics=((),) * len(probes))


PLAN = Plan(gpu=_plan(PROCESSES, PROCESS_UTILIZATION), mig=_plan(PROCESSES))


def held(owner, device, **facts):
    return Tenant(
        device=device.uuid, namespace=owner.namespace, pod=owner.pod, container=owner.container,
        **facts,
    )  # fmt: skip


def process(pid, used=GIB, kind=ProcessKind.COMPUTE):
    return GpuProcess(pid, kind, used)


def listed(*processes):
    return Value(Processes(processes))


class Node:
    """An attribution that is told one second after the other."""

    def __init__(self, people, *tenants, replicas=None):
        self.people = people
        self.holders = Holders(tenants=tenants, known=True, replicas=replicas or {})
        self.rejected = []
        self.attribution = Attribution(
            people, window_seconds=60, short_window_seconds=15, reject=self.rejected.append
        )
        self.at = 0

    def tick(self, lists, percents=None, *, count=1):
        """Let seconds pass.

        Args:
            lists: by device, the processes or the outcome of asking for them.
            percents: by device, the share of each pid, or the outcome of asking for them.
            count: how many seconds.
        """
        for _ in range(count):
            self.at += 1
            cycles = [
                self._cycle(device, found, (percents or {}).get(device, {}))
                for device, found in lists.items()
            ]
            self.attribution.take(cycles, self.holders)

    def uses(self, *devices, down=(), capacity=80 * GIB, pressure=None):
        up = [device not in down for device in devices]
        number = len(devices)
        return self.attribution.uses(
            devices, up, self.holders, capacity=[capacity] * number, pressure=[pressure] * number
        )

    def _cycle(self, device, found, percents):
        outcomes = found if isinstance(found, Value | Unsupported | Failed) else listed(*found)
        readings = (outcomes,) if device.is_mig else (outcomes, self._shares(percents))
        return Cycle(
            gpu=device, plan=PLAN, devices=Value((device,)), readings=(readings,),
            at=float(self.at), spent={},
        )  # fmt: skip

    def _shares(self, percents):
        if not isinstance(percents, dict):
            return percents
        until = NOW_US + 1_000_000 * self.at
        shares = tuple(ProcessShare(pid, until, percent) for pid, percent in percents.items())
        return Value(ProcessUtilization(shares, until - 1_000_000, until))


def rows(uses, name):
    """Return the values of a metric of tenants by device, pod and container."""
    return {
        (t.device, t.pod, t.container): value
        for t, value in zip(uses.tenants, uses.of_tenants[name], strict=True)
    }
