"""From true processes in true containers to the series of tenants, on a test cluster.

The exporter is the product's own process on the node. Load programs run in pods and beside them;
the driver reports their PIDs, and everything between a PID and a name is real: procfs, cgroups,
the runtime's containers, the kubelet's links and its PodResources, claims and their slices.
"""

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from simulator.clock import RealTimeClock
from simulator.fleet import Fleet
from simulator.node import SimulatedNode
from testbed import binaries
from testbed.chain import manifests
from testbed.chain.page import Page
from testbed.cluster import waiting
from testbed.cluster.cluster import Cluster
from testbed.cluster.processes import NodeProcess
from testbed.dra import driver as dra_driver
from testbed.dra import objects
from testbed.driver import build
from testbed.driver.feeder import DriverFeed
from testbed.load import processes
from testbed.load.feed import LoadFeed

EXPORTER_PORT: Final = 9401
WINDOW_SECONDS: Final = 10

SHARED: Final = "nvidia.com/gpu.shared"
REPLICAS: Final = 5
MIG: Final = "nvidia.com/mig-3g.40gb"
OTHER_MIG: Final = "nvidia.com/mig-2g.20gb"
GPU_CLAIM: Final = "one-gpu"
MIG_CLAIM: Final = "one-mig"

# Four for the device plugin, one that it shares, one for claims, one that nobody manages; at the
# end the partitioned one, whose last instance is for claims.
SCENARIO: Final = """
nodes:
  - name: node1
    gpus:
      - {model: H100-80GB, count: 7}
      - {model: H100-80GB, mig: [3g.40gb, 2g.20gb, 1g.10gb]}
"""

_START_SECONDS: Final = 60.0
_CONTAINERD: Final = "containerd://"
_FETCH: Final = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())
"""


class ContainerName(NamedTuple):
    """A container of ``manifests.WORKLOADS``."""

    pod: str
    container: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """The uuids of the devices, by how one gets them.

    Attributes:
        whole: from the device plugin, one GPU each.
        shared: from it too, as one of ``REPLICAS`` replicas.
        mig, other_mig: likewise, instances of the partitioned GPU.
        claimed, claimed_mig: by a resource claim; the latter is an instance of that GPU too.
        unmanaged: by naming it.
    """

    whole: tuple[str, ...]
    shared: str
    claimed: str
    unmanaged: str
    mig: str
    other_mig: str
    claimed_mig: str

    @classmethod
    def of(cls, node: SimulatedNode) -> Self:
        """Return those of a node of ``SCENARIO``."""
        *whole, shared, claimed, unmanaged, partitioned = node.gpus
        mig, other_mig, claimed_mig = (device.uuid for device in partitioned.mig_devices)
        return cls(
            whole=tuple(gpu.uuid for gpu in whole),
            shared=shared.uuid,
            claimed=claimed.uuid,
            unmanaged=unmanaged.uuid,
            mig=mig,
            other_mig=other_mig,
            claimed_mig=claimed_mig,
        )

    def by_resource(self) -> dict[str, list[str]]:
        """Return what the device plugins offer."""
        return {
            manifests.GPU: list(self.whole),
            SHARED: [f"{self.shared}::{replica}" for replica in range(REPLICAS)],
            MIG: [self.mig],
            OTHER_MIG: [self.other_mig],
        }


class TenantChain:
    """The running chain. A context manager; ends with its cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.node = Fleet.load(SCENARIO, clock=RealTimeClock()).nodes[0]
        self.devices = Devices.of(self.node)
        # The node's own procfs, seen from outside: its PIDs are those that the exporter sees.
        self._proc = Path(f"/proc/{cluster.init.pid}/root/proc")
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            self._start(undo)
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._undo.close()

    def _start(self, undo: ExitStack) -> None:
        cluster, state = self.cluster, self.cluster.folder / "nvml-state"
        driver = DriverFeed(self.node, state)
        LoadFeed(self.node, driver, self._proc)
        undo.enter_context(driver)
        cluster.apply([manifests.namespace(manifests.WORKLOADS), *manifests.exporter_rights()])
        for resource, ids in self.devices.by_resource().items():
            undo.callback(cluster.start_device_plugin(resource, ids).end)
        self.claim_driver = self._start_claim_driver()
        undo.callback(self.claim_driver.end)
        self.exporter = cluster.popen(
            [sys.executable, "-m", "cli", "exporter", *self._exporter_flags()],
            log="exporter",
            env=build.environment(state),
        )
        undo.callback(self.exporter.end)
        log = self.exporter.log
        waiting.until(self._serves, what="the exporter's page", seconds=_START_SECONDS, log=log)

    def _start_claim_driver(self) -> NodeProcess:
        """Start the driver of claims, and offer devices once the kubelet knows it.

        A kubelet removes the slices of drivers that it does not know.
        """
        cluster, module = self.cluster, dra_driver.__name__
        program, kubeconfig = binaries.binary("kubectl"), cluster.kubeconfig()
        process = cluster.popen(
            [
                *(sys.executable, "-m", module, f"--name={objects.DRIVER}"),
                *(f"--kubectl={program}", f"--kubeconfig={kubeconfig}"),
            ],
            log="claim-driver",
        )

        def registered() -> bool:
            process.require_alive()
            return f"{dra_driver.REGISTERED} {objects.DRIVER}" in process.log.read_text()

        what = "the kubelet to know the driver of claims"
        waiting.until(registered, what=what, seconds=_START_SECONDS, log=process.log)
        cluster.apply([
            *(objects.device_class(kind) for kind in ("gpu", "mig")),
            objects.claim_template(manifests.WORKLOADS, GPU_CLAIM, "gpu"),
            objects.claim_template(manifests.WORKLOADS, MIG_CLAIM, "mig"),
            objects.resource_slice(cluster.node_name, self._claimable()),
        ])  # fmt: skip
        return process

    def _claimable(self) -> Mapping[str, Mapping[str, str]]:
        """Return what the driver of claims publishes.

        The GPU has a name that tells nothing. The instance is one that is made when it is claimed,
        and has no uuid before.
        """
        partitioned = self.node.gpus[-1]
        (instance,) = (d for d in partitioned.mig_devices if d.uuid == self.devices.claimed_mig)
        profile = instance.profile
        name = (
            f"gpu-{partitioned.identity.minor}-mig-{profile.name.replace('.', '')}"
            f"-{profile.profile_id}-{instance.placement.start}"
        )
        return {
            "board-7": {objects.TYPE: "gpu", "uuid": self.devices.claimed},
            name: {
                objects.TYPE: "mig", "parentUUID": partitioned.uuid, "profile": profile.name,
            },
        }  # fmt: skip

    def _exporter_flags(self) -> list[str]:
        cluster = self.cluster
        kubeconfig = cluster.kubeconfig("slicewatch-exporter", user=manifests.EXPORTER_USER)
        return [
            f"--listen={cluster.node_address}:{EXPORTER_PORT}",
            f"--node-name={cluster.node_name}",
            f"--kubelet-socket={cluster.pod_resources_socket}",
            f"--kubeconfig={kubeconfig}",
            f"--window-seconds={WINDOW_SECONDS}",
            f"--contention-window-seconds={WINDOW_SECONDS}",
            "--pid-namespace=any",
            "--pod-workloads",
            "--resource-slices",
        ]

    def _serves(self) -> bool:
        self.exporter.require_alive()
        try:
            return bool(self.page().samples("gpu_up"))
        except waiting.ClusterError:  # It does not listen yet.
            return False

    def page(self) -> Page:
        """Return what the exporter serves now.

        Raises:
            ClusterError: it does not answer.
            ValueError: as for ``Page``.
        """
        url = f"http://{self.cluster.node_address}:{EXPORTER_PORT}/metrics"
        return Page.parse(self.cluster.run(sys.executable, "-c", _FETCH, url))

    def container_pids(self) -> dict[ContainerName, int]:
        """Return the PID of each running container of the workloads.

        Names come from the API server and PIDs from the runtime: not from where the exporter has
        them, the kubelet's links and cgroups.
        """
        pids = self.cluster.container_pids()
        pods = self.cluster.get("pods", f"--namespace={manifests.WORKLOADS}")["items"]
        ids = {
            ContainerName(pod["metadata"]["name"], status["name"]): status["containerID"]
            for pod in pods
            for status in pod["status"].get("containerStatuses", [])
            if "containerID" in status
        }
        plain = {name: text.removeprefix(_CONTAINERD) for name, text in ids.items()}
        return {name: pids[found] for name, found in plain.items() if found in pids}

    def load_processes(self) -> tuple[processes.LoadProcess, ...]:
        """Return all load programs, those of containers and of the host."""
        return processes.running(self._proc)

    def host_process(self, demand: processes.Demand, device: str) -> NodeProcess:
        """Start a load program on the node, outside of any pod."""
        command = [str(binaries.binary("pause")), *demand.arguments()]
        return self.cluster.popen(command, log="host-load", env={processes.DEVICES: device})

    def signal(self, pid: int, name: str) -> None:
        """Send a signal, such as KILL, to a process of the node, by its PID there."""
        self.cluster.run("sh", "-c", f"kill -{name} {pid}")
