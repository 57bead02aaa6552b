"""A cluster of one node with its monitor, and checks that find what a test says."""

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from health.agent import Agent, Clocks
from health.budget import CONFIG_MAP_NAME
from health.caretaker import Caretaker
from health.checks.model import Action, Check, CheckId, Healthy, Unhealthy
from health.observation import Observation
from health.settings import HealthSettings
from health.source import FakeExporter
from health.writes import DryRun, Writes
from slicewatch.catalog.health import HEALTH
from slicewatch.kube.daemon_sets import DAEMON_SET
from slicewatch.kube.events import EVENT
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.nodes import WHOLE_NODE
from slicewatch.kube.objects import CONFIG_MAP, Selection
from slicewatch.service.exposition import Format
from slicewatch.service.own_metrics import OwnMetrics
from testbed import evidence

NAMESPACE = "monitoring"
FOREIGN = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "posting"}


class Ill:
    """Two checks that find what a test says: one that cordons, one that only warns."""

    def __init__(self):
        self.finds = {"broken": Healthy(), "warm": Healthy()}

    def checks(self):
        return (
            Check(
                id=CheckId("broken"), title="it is broken", reason="GPUBroken",
                action=Action.CORDON, clear_seconds=0, judge=lambda _: self.finds["broken"],
            ),
            Check(
                id=CheckId("warm"), title="it is warm", reason="GPUWarm",
                action=Action.WARN, clear_seconds=0, judge=lambda _: self.finds["warm"],
            ),
        )  # fmt: skip


BROKEN = Unhealthy(message="it is broken", at_once=True)


class House:
    """A cluster of one node with its monitor; a minute passes with every turn."""

    def __init__(self, *, cluster=None, **settings):
        self.ill = Ill()
        self.now = 10_000.0
        self.kube = FakeKube() if cluster is None else cluster
        defaults = {"node_name": "node-1", "good_polls": 3}
        self.settings = HealthSettings(**(defaults | settings))
        self.exporter = FakeExporter(evidence.evidence([evidence.gpu(0), evidence.gpu(1)]))
        self.restart()

    @classmethod
    async def made(cls, *, node=None, agents=20, **settings):
        house = cls(**settings)
        body = {"metadata": {"name": "node-1"}, "status": {"conditions": [FOREIGN]}}
        await house.kube.create(WHOLE_NODE, body | (node or {}))
        daemon_set = {
            "metadata": {"name": "gpu-health-monitor"},
            "status": {"desiredNumberScheduled": agents},
        }
        await house.kube.create(DAEMON_SET, daemon_set, NAMESPACE)
        return house

    def restart(self):
        """Begin a new life of the monitor; what it knew is gone."""
        self.metrics = OwnMetrics(HEALTH)
        clocks = Clocks(monotonic=lambda: self.now, wall=lambda: 1.8e9 + self.now)
        observation = Observation(self.metrics, dry_run=False, clock=clocks.monotonic)
        gate = (DryRun if self.settings.dry_run else Writes)(self.kube, observation.wrote)
        caretaker = Caretaker(
            gate, self.settings, namespace=NAMESPACE, checks=self.ill.checks(),
            observation=observation, clocks=clocks,
        )  # fmt: skip
        self.agent = Agent(
            node="node-1", source=self.exporter, hands=caretaker, observation=observation,
            interval_seconds=60, clocks=clocks,
        )  # fmt: skip

    async def pass_turns(self, number=1):
        for _ in range(number):
            self.now += 60
            await self.agent.turn()

    async def node(self):
        return await self.kube.get(WHOLE_NODE, "node-1")

    async def human(self, **annotations):
        keys = {f"health.slicewatch.dev/{key}": value for key, value in annotations.items()}
        await self.kube.patch(WHOLE_NODE, "node-1", {"metadata": {"annotations": keys}})

    async def uncordon(self):
        await self.kube.patch(WHOLE_NODE, "node-1", {"spec": {"unschedulable": None}})

    async def reasons(self):
        page = await self.kube.list(EVENT, Selection(), limit=100)
        return [event.reason for event in page.objects]

    async def slots(self):
        data = (await self.kube.get(CONFIG_MAP, CONFIG_MAP_NAME, NAMESPACE)).data
        return list(msgspec.json.decode(data["slots"]))

    async def slots_if_any(self):
        page = await self.kube.list(CONFIG_MAP, Selection(namespace=NAMESPACE), limit=10)
        return await self.slots() if page.objects else []

    def steps(self):
        return set(labelled_samples(self.metrics, "slicewatch_health_steps_total"))


def labelled_samples(metrics, name):
    """Return the samples of a name by the values of their labels, in the order of the labels."""
    text = metrics.render(Format.TEXT).decode()
    return {
        tuple(label for _, label in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    }
