"""The chain with the adapter as it is run for real: pods of a Deployment behind its Service.

Their rights and the APIServices are those of the guide. The containers have no image of their own:
they run the checkout, its interpreter and the system's libraries, mounted read-only.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from testbed import binaries
from testbed.chain import asking
from testbed.chain.chain import EXPORTER_PORT, Chain
from testbed.chain.manifests import NAMESPACE, SERVICE, Manifest
from testbed.chain.mounts import mounts, program
from testbed.cluster import image
from testbed.cluster.namespaces import CHECKOUT
from testbed.cluster.processes import NodeProcess

PROMETHEUS_PORT: Final = 9090
REPLICAS: Final = 2
API_PORT: Final = 6443
_GUIDE: Final = CHECKOUT / "docs" / "guides" / "first-hpa.md"
_TAKEN: Final = ("ServiceAccount", "ClusterRole", "Role", "RoleBinding", "ClusterRoleBinding",
                 "APIService")  # fmt: skip
_PLAIN_PORT: Final = 8080
_WITHIN: Final = f"--namespace={NAMESPACE}"

RULES: Final = """
rules:
# The container's name stands for the Service in front of it, as it does in many clusters.
- seriesQuery: 'gpu_tenant_info{namespace!="",container!=""}'
  resources: {overrides: {namespace: {resource: namespace}, container: {resource: service}}}
  name: {as: service_gpu_utilization}
  metricsQuery: &mean >-
    avg(gpu_utilization * on (uuid) group_right () gpu_tenant_info{<<.LabelMatchers>>})
    by (<<.GroupBy>>)
- seriesQuery: 'gpu_tenant_info{namespace!="",deployment!=""}'
  resources:
    overrides: {namespace: {resource: namespace}, deployment: {group: apps, resource: deployment}}
  name: {as: deployment_gpu_utilization}
  metricsQuery: *mean
externalRules:
- seriesQuery: 'gpu_tenant_info{namespace!=""}'
  resources: {overrides: {namespace: {resource: namespace}}}
  name: {as: gpus_held}
  metricsQuery: 'count(gpu_tenant_info{<<.LabelMatchers>>})'
"""

_SCRAPE: Final = """
scrape_configs:
- job_name: exporter
  scrape_interval: 1s
  honor_labels: true
  static_configs: [{{targets: ['{target}']}}]
  metric_relabel_configs:
  - {{source_labels: [pod], regex: '(.+)-[^-]+-[^-]+', target_label: deployment}}
"""


@dataclass(kw_only=True)
class Asked:
    """What became of the requests of ``asking``; complete once the context has been left."""

    answers: list[dict[str, Any]] = field(default_factory=list)

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Return the answers that are not 200."""
        return [answer for answer in self.answers if answer["status"] != 200]


class ReplicaChain(Chain):
    """The chain with two adapters in pods, and a Prometheus that scrapes the exporter."""

    def _start_adapter(self, undo: ExitStack) -> None:
        del undo  # Pods end with the cluster.
        self.start_prometheus()
        self.cluster.apply([*of_guide(), _service(), _rules()])
        self.deploy()

    def _require_adapter(self) -> None:
        """Ask nothing of pods, which are started again."""

    def start_prometheus(self) -> None:
        """Start a Prometheus with no memory of an earlier one."""
        folder, address = self.cluster.folder, self.cluster.node_address
        config = folder / "prometheus.yml"
        config.write_text(_SCRAPE.format(target=f"{address}:{EXPORTER_PORT}"))
        command = [
            str(binaries.binary("prometheus")),
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'prometheus'}",
            f"--web.listen-address={address}:{PROMETHEUS_PORT}",
        ]
        self.prometheus: NodeProcess = self.cluster.popen(command, log="prometheus")

    def deploy(self, *flags: str, volumes: Sequence[Manifest] = ()) -> None:
        """Run the replicas with these flags, and return once they are ready and no others are left.

        Args:
            flags: beside those that all have.
            volumes: further ones, each mounted at ``/<name>``.
        """
        address = self.cluster.node_address
        always = [
            f"--exporters=http://{address}:{EXPORTER_PORT}",
            f"--prometheus-url=http://{address}:{PROMETHEUS_PORT}",
            "--rules-files=/rules/rules.yaml",
        ]
        rules = {"name": "rules", "configMap": {"name": f"{SERVICE}-rules"}}
        self.kubectl("delete", "deployment", SERVICE, "--ignore-not-found", "--cascade=foreground")
        self.cluster.apply([_deployment([*always, *flags], [rules, *volumes])])
        self.rolled_out()

    def rolled_out(self) -> None:
        """Wait until requests go to all replicas of the present Deployment and nowhere else."""
        self.kubectl("rollout", "status", f"deployment/{SERVICE}", "--timeout=60s")
        self.cluster.until(self._routed, what="routes to the adapter's pods", log="kube-proxy")

    def _routed(self) -> bool:
        # What kube-proxy has done counts: it follows the endpoints up to a second later.
        routes = set(
            re.findall(rf"--to-destination (\S+):{API_PORT}\b", self.cluster.run("iptables-save"))
        )
        pods = self.addresses()
        return routes - {self.cluster.node_address} == set(pods) and len(pods) == REPLICAS

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl in the adapter's namespace."""
        return self.cluster.kubectl(*arguments, _WITHIN)

    def pods(self) -> list[dict[str, Any]]:
        """Return the adapter's pods, those that are being ended included."""
        found: list[dict[str, Any]] = self.cluster.get("pods", _WITHIN)["items"]
        return found

    def addresses(self) -> list[str]:
        """Return the addresses of ``pods``."""
        return [pod["status"]["podIP"] for pod in self.pods()]

    @contextmanager
    def asking(self, path: str, *, log: str) -> Iterator[Asked]:
        """Ask for a path through the aggregator ten times a second while the body runs."""
        client = self.cluster.pki.folder / "admin"
        arguments = {
            "server": self.cluster.server,
            "ca": self.cluster.pki.ca,
            "certificate": client.with_suffix(".crt"),
            "key": client.with_suffix(".key"),
            "path": path,
        }
        flags = [f"--{name}={value}" for name, value in arguments.items()]
        asker = self.cluster.popen([sys.executable, "-m", asking.__name__, *flags], log=log)
        asked = Asked()
        try:
            # What happens has to happen to connections that are in use already.
            self.cluster.until(lambda: len(_lines(asker.log)) > 10, what="answers", log=log)
            yield asked
        finally:
            status = asker.end()
            asked.answers += [json.loads(line) for line in _lines(asker.log)]
        if status:
            raise AssertionError(f"the asker ended with {status}: {_lines(asker.log)[-5:]}")


def _lines(log: Path) -> list[str]:
    return log.read_text().splitlines()


def of_guide() -> list[Manifest]:
    """Return what the guide lets people apply, without the parts for an adapter by hand."""
    blocks = re.findall(r"```yaml\n(.*?)```", _GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    found = [made for block in blocks for made in yaml.safe_load_all(block)]
    return [made for made in found if made["kind"] in _TAKEN]


def _service() -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE},
        "spec": {
            "selector": {"app": SERVICE},
            "ports": [{"name": "https", "port": 443, "targetPort": API_PORT}],
        },
    }


def _rules() -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{SERVICE}-rules", "namespace": NAMESPACE},
        "data": {"rules.yaml": RULES},
    }


def secret(name: str, content: Mapping[str, bytes]) -> Manifest:
    """Return a Secret of the adapter's namespace."""
    texts = {key: value.decode() for key, value in content.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "stringData": texts,
    }


def _deployment(flags: Sequence[str], volumes: Sequence[Manifest]) -> Manifest:
    host = mounts(program(Path(sys.prefix), CHECKOUT))
    container = {
        "name": "adapter",
        "image": image.PAUSE,
        "imagePullPolicy": "Never",
        "command": [sys.executable, "-m", "cli", "adapter", *flags],
        "env": [{"name": "PYTHONPATH", "value": str(CHECKOUT)}],
        "readinessProbe": {
            "httpGet": {"path": "/readyz", "port": _PLAIN_PORT},
            "periodSeconds": 1,
            "failureThreshold": 2,
        },
        "volumeMounts": [
            *({"name": one["name"], "mountPath": f"/{one['name']}"} for one in volumes),
            *host.volume_mounts,
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }
    pod = {
        "serviceAccountName": SERVICE,
        "terminationGracePeriodSeconds": 20,
        "containers": [container],
        "volumes": [
            *volumes,
            *host.volumes,
            {"name": "tmp", "emptyDir": {}},
        ],
    }
    labels = {"app": SERVICE}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": labels},
            "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
