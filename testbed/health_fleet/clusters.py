"""A cluster of machines with their monitors, and the people who also write to its nodes."""

import asyncio
from typing import Any, Final

import msgspec

from health.book import ALLOW, CONFIG_MAP_NAME, PAUSED
from health.names import CLEAR, HOLD
from health.settings import HealthSettings
from slicewatch.kube.daemon_sets import DAEMON_SET
from slicewatch.kube.errors import NotFoundError
from slicewatch.kube.nodes import WHOLE_NODE
from slicewatch.kube.objects import CONFIG_MAP
from testbed.health_fleet.machine import Machine
from testbed.health_fleet.warden import NAMESPACE, Warden
from testbed.health_fleet.watched_kube import WatchedKube

POLL_SECONDS: Final = 60.0
BEGIN_SECONDS: Final = 1_000_000.0

# The node controller's word for a cordon.
UNSCHEDULABLE: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
# What others have written to the node, in forms that only they know.
FOREIGN: Final[dict[str, Any]] = {
    "labels": {"nvidia.com/gpu.product": "H100", "example.com/rack": "r1"},
    "annotations": {
        "example.com/seen": "7",
        "nvsentinel.example/cordoned": "true",
        "kubeadm.alpha.kubernetes.io/cri-socket": "unix:///run/containerd.sock",
    },
    "taints": [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule", "later": {"a": 1}},
        {"key": "example.com/lane", "effect": "PreferNoSchedule", "timeAdded": "2026-01-01T00:00:00Z"},
    ],
    "conditions": [
        {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ok", "seen": 1},
        {"type": "GPUHealthy", "status": "False", "reason": "Other", "message": "of another tool"},
    ],
}  # fmt: skip


class Cluster:
    """Nodes ``node-0`` and so on.

    Args:
        nodes: how many.
        gpus: of each.
        settings: of the monitors.
        machine: further choices for each machine.

    Attributes:
        now: seconds of the clock that all share.
        turns: how many turns monitors have taken.
    """

    def __init__(
        self, nodes: int, gpus: int, settings: HealthSettings, **machine: Any  # noqa: ANN401 - of Machine
    ) -> None:  # fmt: skip
        self.now = BEGIN_SECONDS
        self.turns = 0
        self.settings = settings
        self.gpus = gpus
        limit = min(settings.budget_absolute, settings.budget_percent * nodes // 100)
        self.kube = WatchedKube(max(1, limit))
        self.machines = [
            Machine(f"node-{number}", self.clock, gpus=gpus, **machine) for number in range(nodes)
        ]
        self.wardens = [Warden(one, self.kube, self.clock, settings) for one in self.machines]
        self.paused = False

    def clock(self) -> float:
        """Return what time it is."""
        return self.now

    async def set_up(self) -> None:
        """Create what a cluster has before the monitors come."""
        status = {"desiredNumberScheduled": len(self.machines)}
        daemon_set = {"metadata": {"name": self.settings.daemon_set}, "status": status}
        await self.kube.create(DAEMON_SET, daemon_set, NAMESPACE)
        for number in range(len(self.machines)):
            await self.create(number)

    async def turn(
        self, asleep: frozenset[int] = frozenset(), seconds: float = POLL_SECONDS
    ) -> None:
        """Let time pass, and all monitors take a turn at once, but for those that do not run."""
        self.now += seconds
        awake = [one for number, one in enumerate(self.wardens) if number not in asleep]
        self.turns += len(awake)
        turns = (one.turn(may_cordon=not self.paused) for one in awake)
        await asyncio.gather(*turns)

    async def create(self, number: int) -> None:
        """Let a node join."""
        labels = {**FOREIGN["labels"], self.settings.expected_gpus_label: str(self.gpus)}
        body = {
            "metadata": {
                "name": self.machines[number].name,
                "labels": labels,
                "annotations": FOREIGN["annotations"],
            },
            "spec": {"podCIDR": "10.0.0.0/24", "taints": FOREIGN["taints"]},
            "status": {"conditions": FOREIGN["conditions"], "capacity": {"cpu": "96"}},
        }
        await self.kube.create(WHOLE_NODE, body)

    async def replace(self, number: int) -> None:
        """Let another node join in place of one, under its name."""
        self.kube.delete(WHOLE_NODE, self.machines[number].name)
        await self.create(number)

    async def cordon(self, number: int, unschedulable: bool = True) -> None:
        """Let a human cordon or uncordon a node."""
        await self._patch(number, {"spec": {"unschedulable": unschedulable or None}})

    async def annotate(
        self, number: int, *, hold: str | None = None, clear: str | None = None
    ) -> None:
        """Let a human say something to a monitor, or take it back."""
        notes = {HOLD: hold, CLEAR: clear}
        await self._patch(number, {"metadata": {"annotations": notes}})

    async def report(self, number: int) -> None:
        """Let the kubelet and the node controller write what they write from time to time."""
        said = {"type": "Ready", "status": "True", "seen": int(self.now)}
        name = self.machines[number].name
        await self.kube.patch(
            WHOLE_NODE, name, {"status": {"conditions": [said]}},
            subresource="status", strategic=True,
        )  # fmt: skip
        spec = self.kube.body(name)["spec"]
        others = [one for one in spec.get("taints") or () if one["key"] != UNSCHEDULABLE["key"]]
        follows = [UNSCHEDULABLE] if spec.get("unschedulable") else []
        await self._patch(number, {"spec": {"taints": [*others, *follows]}})

    async def pause(self, *, paused: bool, allow: str = "") -> None:
        """Let a human pause new cordons or let them go on, and let bursts through."""
        data = {PAUSED: str(paused).lower(), ALLOW: allow}
        body = {"metadata": {"name": CONFIG_MAP_NAME}, "data": data}
        try:
            await self.kube.patch(CONFIG_MAP, CONFIG_MAP_NAME, body, namespace=NAMESPACE)
        except NotFoundError:
            await self.kube.create(CONFIG_MAP, body, NAMESPACE)
        self.paused = paused

    async def slots(self) -> set[str]:
        """Return the nodes that have a slot of the budget."""
        found = await self.kube.get(CONFIG_MAP, CONFIG_MAP_NAME, NAMESPACE)
        return set(msgspec.json.decode(found.data.get("slots") or "{}"))

    async def _patch(self, number: int, patch: dict[str, Any]) -> None:
        await self.kube.patch(WHOLE_NODE, self.machines[number].name, patch)
