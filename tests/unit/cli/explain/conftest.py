"""An autoscaled cluster, and the explanation of its HPA as a user sees it."""

import io
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from cli.explain.command import Output, Wanted, explain
from cli.explain.report import COLUMNS
from testbed import fleet
from testbed.autoscaled_cluster import AutoscaledCluster, pods_metric, values

NOW = datetime(2026, 9, 20, 10, 15, tzinfo=UTC)
UTILIZATION = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ml/pods/*/gpu_utilization"
Json = dict[str, Any]


@dataclass(frozen=True)
class Shown:
    """What was written, and the exit status."""

    status: int
    text: str

    @property
    def last(self) -> str:
        return self.text.rstrip().splitlines()[-1]

    @property
    def words(self) -> str:
        """The text without its line breaks."""
        return " ".join(self.text.split())

    @property
    def json(self) -> Json:
        found: Json = json.loads(self.text)
        return found


@pytest.fixture
def cluster() -> AutoscaledCluster:
    """Two pods at 87.5 and 92.5 with target 70."""
    made = AutoscaledCluster(pods_metric())
    for name, node in (("web-a", "n1"), ("web-b", "n2")):
        made.add(fleet.pod_json(name, node=node, labels={"app": "web"}))
    made.metrics[UTILIZATION] = values({"web-a": "87500m", "web-b": "92500m"})
    return made


@pytest.fixture
def shown(cluster: AutoscaledCluster) -> Callable[..., Awaitable[Shown]]:
    async def show(output: Output = Output.TEXT, name: str = "web") -> Shown:
        written = io.StringIO()
        console = Console(file=written, width=COLUMNS, highlight=False)
        wanted = Wanted(name=name, output=output)
        status = await explain(cluster, wanted, "ml", now=lambda: NOW, console=console)
        return Shown(status, written.getvalue())

    return show
