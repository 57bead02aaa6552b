"""The chain with the pools of many Deployments on devices of every kind, scaled as the users do.

One simulated node has them all: whole GPUs, MIG instances, and time-sliced GPUs, a group of these
for each question. Which replica of a group a pod gets is the kubelet's choice.
"""

import copy
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Final

import yaml

from testbed.chain import manifests, server
from testbed.chain.chain import WINDOW_SECONDS, Chain
from testbed.chain.manifests import Manifest
from testbed.chain.mounts import mounts, program
from testbed.chain.traffic import MARK, PoolFeed
from testbed.cluster import image
from testbed.cluster.cluster import Cluster
from testbed.cluster.processes import NodeProcess
from testbed.driver import build
from testbed.driver.feeder import REFRESHES_PER_SECOND, DriverFeed

MANIFEST: Final = Path(__file__).with_name("gpu-hpa.yaml")
SLICES: Final = 4
SHARED: Final = f"{manifests.GPU}.shared"
MIG: Final = "nvidia.com/mig-1g.10gb"
CROWD: Final = f"{SHARED}-crowd"
OWN: Final = f"{SHARED}-own"
BESIDE: Final = f"{SHARED}-beside"

WORKLOAD_METRICS: Final = """
workloadMetrics:
  interval: 2s
  metrics:
    - {name: request_latency_ms, series: request_latency_ms, type: average, window: 6s, idle: zero}
"""
_TRAFFIC: Final = "/traffic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """The GPUs of the node: so many whole ones, time-sliced ones by resource, partitioned ones."""

    whole: int
    sliced: Mapping[str, int]
    partitioned: int

    def scenario(self) -> str:
        """Return them as a node of the simulator."""
        mig = ", ".join(["1g.10gb"] * 7)
        return f"""
nodes:
  - name: node1
    gpus:
      - {{model: H100-80GB, count: {self.whole + sum(self.sliced.values())}}}
      - {{model: H100-80GB, count: {self.partitioned}, mig: [{mig}]}}
"""


FEW: Final = Equipment(whole=5, sliced={SHARED: 2, CROWD: 2, OWN: 2, BESIDE: 1}, partitioned=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A Deployment, the resource that each of its pods takes one of, and its HPA if it has one.

    Attributes:
        name: under which its traffic is known.
        least: fewest replicas, instead of the manifest's.
        measured: whether its pods have a page; without one, the HPA has no latency to ask for.
    """

    name: str
    resource: str
    namespace: str
    deployment: str = "inference-pool"
    replicas: int = 2
    least: int | None = None
    measured: bool = True


def autoscaler(pool: Pool, *, hastened: int) -> Manifest:
    """Return the users' HPA for a pool, all its periods divided by a factor."""
    made: Manifest = copy.deepcopy(yaml.safe_load(MANIFEST.read_text()))
    spec = made["spec"]
    made["metadata"] |= {"name": hpa_name(pool), "namespace": pool.namespace}
    spec["scaleTargetRef"]["name"] = pool.deployment
    spec["minReplicas"] = pool.least or spec["minReplicas"]
    if not pool.measured:
        spec["metrics"] = spec["metrics"][:1]
    for rules in spec["behavior"].values():
        rules["stabilizationWindowSeconds"] //= hastened
        for policy in rules["policies"]:
            policy["periodSeconds"] //= hastened
    return made


def hpa_name(pool: Pool) -> str:
    """Return the manifest's name, for the Deployment that it names; another one's own."""
    return pool.deployment.replace("inference-pool", "inference-hpa")


class PoolChain(Chain):
    """The running chain with its pools; they have no traffic until it is set."""

    equipment: ClassVar = FEW
    workload_metrics: ClassVar = WORKLOAD_METRICS
    refreshes_per_second: ClassVar = REFRESHES_PER_SECOND

    def __init__(self, cluster: Cluster, pools: Sequence[Pool]) -> None:
        super().__init__(cluster, scenario=self.equipment.scenario())
        self.pools = pools
        self._plugins: dict[str, NodeProcess] = {}
        self._traffic_folder = cluster.folder / "traffic"

    def _start(self, undo: ExitStack) -> None:
        self._start_exporter(undo)
        self._start_adapter(undo)
        for group, version, _ in manifests.API_VERSIONS:
            self._await_available(f"{version}.{group}")

    def _start_exporter(self, undo: ExitStack) -> None:
        cluster, state = self.cluster, self.cluster.folder / "nvml-state"
        proc = Path(f"/proc/{cluster.init.pid}/root/proc")
        driver = DriverFeed(self.node, state, refreshes_per_second=self.refreshes_per_second)
        self.feed = PoolFeed(self.node, driver, proc, self._traffic_folder)
        undo.enter_context(driver)
        names = {manifests.NAMESPACE, *(pool.namespace for pool in self.pools)}
        cluster.apply([manifests.namespace(name) for name in sorted(names)])
        for resource in self.devices():
            # Of the groups that are to be filled one by one, the first GPU.
            self.offer(resource, gpus=1 if resource in {CROWD, OWN} else None)
        self.exporter = self._process("exporter", self._exporter_flags(), build.environment(state))
        undo.callback(self.exporter.end)

    def _exporter_flags(self) -> list[str]:
        # Without the processes of pods, nobody's part of a time-sliced GPU is known.
        return [*super()._exporter_flags(), "--pid-namespace=any"]

    def _window_flags(self) -> list[str]:
        return [*super()._window_flags(), f"--contention-window-seconds={WINDOW_SECONDS}"]

    def _adapter_flags(self) -> list[str]:
        rules = self.cluster.folder / "workload-metrics.yaml"
        rules.write_text(self.workload_metrics)
        return [*super()._adapter_flags(), f"--rules-files={rules}"]

    def devices(self) -> dict[str, tuple[str, ...]]:
        """Return the uuids of the devices behind each resource."""
        gpus = iter(self.node.gpus)
        counts = {manifests.GPU: self.equipment.whole, **self.equipment.sliced}
        found = {name: tuple(gpu.uuid for gpu in islice(gpus, n)) for name, n in counts.items()}
        return found | {MIG: tuple(device.uuid for gpu in gpus for device in gpu.mig_devices)}

    def offer(self, resource: str, *, gpus: int | None = None) -> None:
        """Offer the first so many GPUs of a resource, or all; those that were offered stay."""
        offered = self.devices()[resource][:gpus]
        ids = list(offered)
        if resource in self.equipment.sliced:
            ids = [f"{uuid}::{replica}" for uuid in offered for replica in range(SLICES)]
        if resource in self._plugins:
            self._plugins[resource].end()
        self._plugins[resource] = self.cluster.start_device_plugin(resource, ids)

    def deploy(self, pools: Sequence[Pool]) -> None:
        """Run the pods of pools, and return once they do."""
        for pool in pools:
            self.feed.tell(pool.name, pool.replicas)
        self.cluster.apply([self._deployment(pool) for pool in pools])
        for pool in pools:
            self.cluster.kubectl(
                "rollout", "status", f"deployment/{pool.deployment}", "--timeout=50s",
                f"--namespace={pool.namespace}",
            )  # fmt: skip

    def _deployment(self, pool: Pool) -> Manifest:
        made = manifests.deployment(pool.deployment, pool.replicas)
        made["metadata"]["namespace"] = pool.namespace
        template = made["spec"]["template"]
        (container,) = template["spec"]["containers"]
        container["resources"] = {"limits": {pool.resource: "1"}}
        if not pool.measured:
            container["args"] = [MARK, pool.name]
            return made
        container |= _server(pool)
        template["metadata"]["annotations"] = {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(server.PORT),
        }
        places = program(Path(server.__file__)) | {_TRAFFIC: self._traffic_folder}
        host = mounts(places)
        container["volumeMounts"], template["spec"]["volumes"] = host.volume_mounts, host.volumes
        return made


def _server(pool: Pool) -> dict[str, Any]:
    # Neither the environment nor installed packages are looked at, which makes it start at once.
    interpreter = [str(Path(sys.executable).resolve()), "-I", "-S", server.__file__]
    return {
        "image": image.PAUSE,
        "command": [*interpreter, f"{_TRAFFIC}/{pool.name}", MARK, pool.name],
        "readinessProbe": {
            "httpGet": {"path": server.PATH, "port": server.PORT},
            "periodSeconds": 2,
        },
    }
