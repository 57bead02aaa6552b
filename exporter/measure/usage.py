"""What the processes of one device say of its tenants.

Processes become tenants here: those of one container are one, those outside of any pod are one
together. A process whose container is unknown belongs to nobody, and what it used is counted as
such. Whose a process is, is decided elsewhere; nothing here reads anything.
"""

from collections.abc import Iterable, Mapping, Sequence

from exporter.measure.sharing import DeviceSharing, Sharing, TenantKey
from exporter.nvml.protocol import Outcome, Unsupported, Value
from exporter.tenants.owners import Owner, Processes
from slicewatch.catalog.readings.processes import (
    MICROSECONDS,
    GpuProcess,
    ProcessKind,
    ProcessUtilization,
)
from slicewatch.catalog.readings.processes import Processes as ProcessList
from slicewatch.wire.layout import Tenant

# Why the shares of a device's processes are not known, beside what its driver says. On a vGPU host
# all virtual machines would be one tenant, the host: who waits there is in the scheduler's log.
MPS = "mps"
VGPU_HOST = "vgpu_host"


def key_of(who: Owner | Tenant) -> TenantKey:
    """Return the tenant that it is, or that an owner's processes belong to."""
    return (who.namespace, who.pod, who.container)


class Usage:
    """One device: its processes, and how its tenants share it. Times are monotonic seconds.

    Attributes:
        hosts_vgpus: its processes are those of virtual machines.
        state: how it is shared, as of the last tick.
    """

    def __init__(self, *, window_seconds: float, short_window_seconds: float) -> None:
        self._sharing = Sharing(
            window_seconds=window_seconds, short_window_seconds=short_window_seconds
        )
        self._listed: tuple[GpuProcess, ...] | None = None
        # Once work of MPS clients was put down to their server, so is all that they do: a moment
        # without work says nothing about it.
        self._through_server = False
        # Seen at work since the last list, which is not read in every tick.
        self._seen: set[int] = set()
        self._owners: Mapping[Owner, Sequence[GpuProcess]] = {}
        self._owners_of: int | None = None
        self._refused = ""
        self._fault = ""
        self._taken = False
        self.hosts_vgpus = False
        self.state: DeviceSharing = self._sharing.state(0.0)

    @property
    def reason(self) -> str:
        """Return why the shares of the tenants cannot be known, in one word; empty if they can."""
        return self._fault or self._refused

    def take_list(self, outcome: Outcome[ProcessList] | None) -> None:
        """Take the list of processes; None if it was not asked for."""
        if outcome is None:
            return
        if (
            isinstance(outcome, Value)
            and outcome.value.found == self._listed
            and not (self._seen or self._through_server)
        ):
            return
        self._owners_of = None
        self._seen.clear()
        if not isinstance(outcome, Value):
            self._listed = None
            return
        self._listed = outcome.value.found
        if all(process.kind is not ProcessKind.MPS for process in self._listed):
            self._through_server = False

    def take_shares(
        self,
        outcome: Outcome[ProcessUtilization] | None,
        holders: Iterable[Tenant],
        processes: Processes,
        at: float,
    ) -> None:
        """Take what each process kept busy since the last tick.

        Args:
            outcome: None or a failure leaves that time unknown.
            holders: who was given the device, whether they use it or not.
            processes: knows whose a process is.
            at: when it was read.
        """
        self._fault = str(processes.fault)
        if isinstance(outcome, Value):
            self._taken = True
            self._take(outcome.value, holders, processes, at)
        elif isinstance(outcome, Unsupported):
            self._refused = outcome.reason
        # Where nothing was ever known there is nothing that could grow old.
        if self._taken:
            self.state = self._sharing.state(at)

    def owners(self, processes: Processes) -> Mapping[Owner, Sequence[GpuProcess]]:
        """Return whose processes there are, and what each of them holds as far as it is listed.

        The same object until something of it may have changed.
        """
        if self._owners_of != processes.version:
            self._owners = self._found(processes)
            self._owners_of = processes.version
        return self._owners

    @property
    def is_listed(self) -> bool:
        """Tell whether the driver said which processes there are."""
        return self._listed is not None

    def _found(self, processes: Processes) -> dict[Owner, list[GpuProcess]]:
        found: dict[Owner, list[GpuProcess]] = {}
        listed = self._listed or ()
        for process in listed:
            if (owner := _tenant_of(process.pid, processes)) is not None:
                found.setdefault(owner, []).append(process)
        for pid in self._seen.difference(process.pid for process in listed):
            if (owner := _tenant_of(pid, processes)) is not None:
                # It is there, with nothing listed.
                found.setdefault(owner, [])
        return found

    def _take(
        self,
        reading: ProcessUtilization,
        holders: Iterable[Tenant],
        processes: Processes,
        at: float,
    ) -> None:
        pids = [share.pid for share in reading.shares]
        if not self._seen.issuperset(pids):
            self._seen.update(pids)
            self._owners_of = None
        self._through_server |= any(map(processes.is_mps_server, pids))
        self._refused = MPS if self._through_server else ""
        if self.hosts_vgpus:
            self._refused = VGPU_HOST
        self._count(reading, holders, processes, at)

    def _count(
        self,
        reading: ProcessUtilization,
        holders: Iterable[Tenant],
        processes: Processes,
        at: float,
    ) -> None:
        covered = 0 if self.reason else reading.covered_us()
        # Who holds the device or has a context on it is there, and others can be in its way.
        present: tuple[Owner | Tenant, ...] = (*holders, *self.owners(processes))
        busy = {key_of(one): [0.0, 0] for one in present}
        unattributed = 0.0
        for share in reading.shares if covered else ():
            seconds = share.percent * covered / (100 * MICROSECONDS)
            owner = processes.owner(share.pid)
            if owner is None:
                unattributed += seconds
                continue
            used = busy.setdefault(key_of(owner), [0.0, 0])
            used[0] += seconds
            used[1] += share.percent > 0
        tenants: Mapping[TenantKey, tuple[float, int]] = {
            key: (seconds, int(active)) for key, (seconds, active) in busy.items()
        }
        self._sharing.take(at, covered / MICROSECONDS, tenants, unattributed)


def _tenant_of(pid: int, processes: Processes) -> Owner | None:
    """Return whose process it is; None for the server of MPS, which works for others."""
    return None if processes.is_mps_server(pid) else processes.owner(pid)
