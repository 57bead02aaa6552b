"""A cluster whose objects, readings and clocks are set by hand, and what is made of them."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from adapter.cluster.external import ClusterExternal
from adapter.cluster.facts import ClusterFacts, series_of
from adapter.cluster.freshness import Caches
from adapter.cluster.page import ClusterPage
from adapter.cluster.pods import Pods
from adapter.sources.fake import FakeSource
from adapter.sources.source import Target
from adapter.view import View
from slicewatch.catalog import CATALOG
from slicewatch.kube.cache import Cache
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.objects import (
    NODE,
    POD,
    PRIORITY_CLASS,
    RESOURCE_QUOTA,
    Node,
    Object,
    Pod,
    PriorityClass,
    ResourceQuota,
)
from slicewatch.service.exposition import Format
from slicewatch.wire.snapshot import Frame, encode
from testbed.front_proxy import WALL, ManualClock

Json = dict[str, Any]


class FakeCluster:
    def __init__(self, **settings: Any) -> None:
        self.monotonic, self.wall = ManualClock(1000.0), ManualClock(WALL)
        self.source, self.index = FakeSource(), Pods()
        self.view = View(
            self.index,
            self.source,
            max_age_seconds=15.0,
            monotonic=self.monotonic,
            wall=self.wall,
        )
        kube = FakeKube()
        self.caches = Caches(
            pods=Cache(kube, POD),
            nodes=Cache(kube, NODE),
            quotas=Cache(kube, RESOURCE_QUOTA),
            priority_classes=Cache(kube, PRIORITY_CLASS),
        )
        self.by_type: dict[type[Object], Cache[Any]] = {
            Pod: self.caches.pods,
            Node: self.caches.nodes,
            ResourceQuota: self.caches.quotas,
            PriorityClass: self.caches.priority_classes,
        }
        self.facts = ClusterFacts(self.caches, self.view, **settings)
        self.page = ClusterPage(self.facts)
        self.external = ClusterExternal(self.facts)
        self.caches.pods.listen(self.index.changed)
        for cache in self.by_type.values():
            cache.synced, cache.fault = True, ""

    def put(self, *objects: Object) -> None:
        for new in objects:
            self.by_type[type(new)]._set(new.key, new)

    def remove(self, *objects: Object) -> None:
        for old in objects:
            self.by_type[type(old)]._set(old.key, None)

    def receive(self, frame: Frame) -> None:
        assert frame.layout is not None
        target = Target(f"http://{frame.layout.node}:9400")
        self.source.receive(target, encode(frame), self.monotonic())

    def pass_seconds(self, seconds: float) -> None:
        self.monotonic.at += seconds
        self.wall.at += seconds

    def series(self, name: str) -> dict[tuple[str, ...], float]:
        """Return a family as of now, by the values of its labels."""
        self.pass_seconds(1.0)
        metric = CATALOG[name]
        return {tuple(k): v for k, v in series_of(metric, self.facts.fact(metric.origin)).items()}

    def scraped(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        text = self.page.render(Format.TEXT).decode()
        return {
            family.name: [(sample.labels, sample.value) for sample in family.samples]
            for family in text_string_to_metric_families(text)
        }

    @staticmethod
    def pod(
        name: str,
        requests: Mapping[str, int | str] | None = None,
        *,
        namespace: str = "ml",
        node: str = "",
        phase: str = "",
        created: str = "",
        condition: Mapping[str, str] | None = None,
        claims: int = 0,
        **spec: Any,
    ) -> Pod:
        wanted = {f"nvidia.com/{r}": str(n) for r, n in (requests or {}).items()}
        container = {"name": "main", "resources": {"requests": wanted}}
        body: Json = {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"containers": [container], **spec},
            "status": {"phase": phase or ("Running" if node else "Pending")},
        }
        if node:
            body["spec"]["nodeName"] = node
        if claims:
            body["spec"]["resourceClaims"] = [{"name": f"c{n}"} for n in range(claims)]
        if created:
            body["metadata"]["creationTimestamp"] = created
        if condition is not None:
            body["status"]["conditions"] = [
                {"type": "PodScheduled", "status": "False", **condition}
            ]
        return msgspec.convert(body, Pod)

    @staticmethod
    def node(
        name: str,
        allocatable: Mapping[str, int | str] | None = None,
        *,
        cordoned: bool = False,
        **labels: str,
    ) -> Node:
        """Return a node; ``__`` in the name of a label is a dot, and the domain is NVIDIA's."""
        offered = {f"nvidia.com/{r}": str(n) for r, n in (allocatable or {}).items()}
        named = {f"nvidia.com/{key.replace('__', '.')}": text for key, text in labels.items()}
        body = {
            "metadata": {"name": name, "labels": named},
            "spec": {"unschedulable": cordoned},
            "status": {"allocatable": {"cpu": "64", **offered}},
        }
        return msgspec.convert(body, Node)


@pytest.fixture
def make_cluster() -> type[FakeCluster]:
    return FakeCluster


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()
