"""``slicewatch explain hpa`` as people run it: kubeconfig, HTTP, and the real adapter behind it."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from slicewatch.service.server import Address, serving
from testbed import fleet
from testbed.api_server import kubeconfig
from testbed.autoscaled_cluster import AutoscaledCluster, external_metric, pods_metric
from testbed.front_proxy import ApiPort

PODS = (("web-a", "n1"), ("web-b", "n2"), ("web-c", "n3"))


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str

    @property
    def words(self) -> str:
        return " ".join(self.out.split())


class Scene:
    """A cluster over HTTP whose metrics API is an adapter's, and the command."""

    def __init__(self, port: ApiPort, folder: Path) -> None:
        self.port, self.folder = port, folder
        self.cluster = AutoscaledCluster(pods_metric(), replicas=3)
        for name, node in PODS:
            pod = fleet.pod_json(name, node=node, labels={"app": "web"})
            self.cluster.add(pod)
            port.add(fleet.web(name, node))
            port.receive(fleet.node_frame(node, name, 91.0))
        self.kubeconfig = folder / "kubeconfig"

    def reach(self, server: str, namespace: str = "ml") -> None:
        text = yaml.safe_load(kubeconfig(server, {"token": "t"}))
        text["contexts"][0]["context"]["namespace"] = namespace
        self.kubeconfig.write_text(yaml.safe_dump(text))

    async def explain(self, *arguments: str) -> Done:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "cli", "explain", "hpa", *arguments,
            f"--kubeconfig={self.kubeconfig}",
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await process.communicate()
        return Done(process.returncode or 0, out.decode(), err.decode())


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    port = ApiPort(tmp_path / "pki")
    made = Scene(port, tmp_path)
    async with (
        port.serving(),
        port.client(port.front_proxy()) as client,
        serving(made.cluster.app(), Address("127.0.0.1", 0)) as address,
    ):

        async def forward(raw: str) -> tuple[int, bytes]:
            answer = await port.ask(raw, client=client)
            return answer.status, answer.body

        made.cluster.forward = forward
        made.reach(f"http://{address}")
        yield made


async def test_values_are_explained_from_the_device_to_the_replicas(scene: Scene) -> None:
    done = await scene.explain("web")
    assert done.err == ""
    assert done.status == 0
    assert "NVIDIA H200 GPU-n1-0: 91 (the device's value" in done.words
    assert "91 / target 70 (average value) = ratio 1.3" in done.words
    assert done.out.rstrip().splitlines()[-1] == "Deployment web goes from 3 to 4 replicas"


async def test_a_silent_exporter_is_the_cause_that_is_shown(scene: Scene) -> None:
    scene.port.pass_seconds(60)
    done = await scene.explain("web", "-n", "ml")
    assert done.status == 1
    assert "the last value is too old" in done.out.rstrip().splitlines()[-1]


async def test_json_is_json(scene: Scene) -> None:
    done = await scene.explain("web", "--output", "json")
    found = json.loads(done.out)
    assert found["decision"]["desired"] == 4
    assert found["metrics"][0]["tree"]["unit"] == "percent"
    assert {pod["devices"][0]["uuid"] for pod in found["metrics"][0]["pods"]} == {
        "GPU-n1-0", "GPU-n2-0", "GPU-n3-0",
    }  # fmt: skip


async def test_an_unknown_metric_is_refused_in_the_adapters_words(scene: Scene) -> None:
    scene.cluster.autoscaler["spec"]["metrics"] = [
        pods_metric("gpu_utilisation"),
        external_metric("queue_depth", averageValue="5"),
    ]
    done = await scene.explain("web")
    assert done.status == 1
    assert "did you mean gpu_utilization" in done.words
    assert "could not find the external metric queue_depth" in done.words


async def test_a_missing_right_is_answered_with_the_rule(scene: Scene) -> None:
    scene.cluster.denied = ("/apis/autoscaling",)
    done = await scene.explain("web")
    assert (done.status, done.out) == (2, "")
    assert '{apiGroups: ["autoscaling"], resources: ["horizontalpodautoscalers"]' in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("web", "--context=nowhere"), "no context nowhere; it has it"),
        (("web", "--output=xml"), "must be text or json"),
        (("wbe",), "there is no HPA wbe in namespace ml; there are web"),
    ],
)
async def test_wrong_usage_is_said_in_a_line(
    scene: Scene, arguments: tuple[str, ...], said: str
) -> None:
    done = await scene.explain(*arguments)
    assert done.status == 2
    assert said in " ".join(done.err.replace("│", " ").split())


async def test_an_api_server_that_does_not_answer_is_said(scene: Scene) -> None:
    scene.reach("http://127.0.0.1:1")
    done = await scene.explain("web")
    assert done.status == 2
    assert "cannot read the HPA ml/web" in done.err
