"""What an autoscaler's owner can read of a cluster, without one: discovery, HPA, scale, pods, metrics.

Answers as kube-apiserver does, in memory or over HTTP. The metrics APIs are either given answers
or another server's, as behind the aggregation layer.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
from aiohttp import web

from adapter.api import label_selectors
from slicewatch.kube.errors import of_status

Json = dict[str, Any]
T = TypeVar("T")
Forward = Callable[[str], Awaitable[tuple[int, bytes]]]

NAMESPACE: Final = "ml"
CUSTOM: Final = "custom.metrics.k8s.io"
EXTERNAL: Final = "external.metrics.k8s.io"
RESOURCE: Final = "metrics.k8s.io"
_METRICS: Final = (CUSTOM, EXTERNAL, RESOURCE)
SELECTOR: Final = "app=web"


def pods_metric(
    name: str = "gpu_utilization", target: str = "70", kind: str = "AverageValue"
) -> Json:
    """Return a metric of pods, as an HPA names it."""
    source = {"metric": {"name": name}, "target": {"type": kind, "averageValue": target}}
    return {"type": "Pods", "pods": source}


def external_metric(name: str, **target: str) -> Json:
    """Return a metric of no object; the target is its ``value`` or ``averageValue``."""
    source = {"metric": {"name": name}, "target": {"type": "AverageValue"} | target}
    return {"type": "External", "external": source}


def object_metric(kind: str, of: str, name: str, **target: str) -> Json:
    """Return a metric of an object of the core group."""
    described = {"kind": kind, "name": of, "apiVersion": "v1"}
    source = {"describedObject": described, "metric": {"name": name}}
    kind_of_target = "Value" if "value" in target else "AverageValue"
    return {"type": "Object", "object": source | {"target": {"type": kind_of_target} | target}}


def values(by_name: Mapping[str, str]) -> Json:
    """Return an answer of the custom metrics API."""
    items = [
        {"describedObject": {"name": name}, "value": value, "windowSeconds": 15,
         "timestamp": "2026-09-20T10:14:58Z"}
        for name, value in by_name.items()
    ]  # fmt: skip
    return {"kind": "MetricValueList", "items": items}


def status(code: int, message: str) -> tuple[int, bytes]:
    """Return a refusal in Kubernetes' form."""
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return code, msgspec.json.encode(body | {"message": message, "code": code})


class AutoscaledCluster:
    """A Deployment ``web`` in namespace ``ml``, its HPA of the same name, and their pods.

    Attributes:
        autoscaler: the HPA's spec and status; may be changed, like everything here.
        scale: of the Deployment.
        pods: of all namespaces, as the API server writes them.
        groups: versions of the API groups that are served, the preferred one first.
        registrations: APIServices by name.
        metrics: answers of the metrics APIs, by path; with their query or for any.
        forward: who answers for the metrics APIs instead.
        denied: paths, or their beginnings, that the caller may not read.
        asked: all that was read, in order.
    """

    def __init__(self, *metrics: Json, replicas: int = 2, least: int = 1, most: int = 10) -> None:
        target = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}
        self.autoscaler: Json = {
            "metadata": {"name": "web", "namespace": NAMESPACE},
            "spec": {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most,
                     "metrics": list(metrics)},
            "status": {"currentReplicas": replicas, "desiredReplicas": replicas, "conditions": []},
        }  # fmt: skip
        self.scale: Json | None = {
            "metadata": {"name": "web", "namespace": NAMESPACE},
            "spec": {"replicas": replicas},
            "status": {"replicas": replicas, "selector": SELECTOR},
        }
        self.pods: list[Json] = []
        self.groups: dict[str, Sequence[str]] = {
            "apps": ("v1",),
            CUSTOM: ("v1beta2", "v1beta1"),
            EXTERNAL: ("v1beta1",),
            RESOURCE: ("v1beta1",),
        }
        self.registrations: dict[str, Json] = {}
        self.metrics: dict[str, Json | tuple[int, bytes]] = {}
        self.forward: Forward | None = None
        self.denied: tuple[str, ...] = ()
        self.asked: list[str] = []

    def add(self, pod: Json, *, ready: bool = True) -> None:
        """Let a pod exist; ``testbed.fleet.pod_json`` makes one."""
        condition = {"type": "Ready", "status": str(ready)}
        self.pods.append(pod | {"status": {**pod["status"], "conditions": [condition]}})

    async def read(self, path: str, form: type[T]) -> T:
        """Return the answer to a path, decoded, as ``slicewatch.kube.client.ApiServer`` does.

        Raises:
            KubeError: it was refused.
        """
        code, body = await self.answer(path)
        if code != HTTPStatus.OK:
            said = msgspec.json.decode(body)["message"]
            raise of_status(code, f"GET {path}: {code} {said}", said)
        return msgspec.json.decode(body, type=form)

    def app(self) -> web.Application:
        """Return an application that serves all this."""

        async def handle(request: web.Request) -> web.Response:
            code, body = await self.answer(request.raw_path)
            return web.Response(body=body, status=code, content_type="application/json")

        served = web.Application()
        served.router.add_get("/{path:.*}", handle)
        return served

    async def answer(self, raw: str) -> tuple[int, bytes]:
        """Return status and body for a path with its query."""
        self.asked.append(raw)
        split = urlsplit(raw)
        path, query = unquote(split.path), {k: v[0] for k, v in parse_qs(split.query).items()}
        if any(path.startswith(denied) for denied in self.denied):
            return status(HTTPStatus.FORBIDDEN, f'User "u" cannot get {path}')
        parts = path.strip("/").split("/")
        if parts[1] in _METRICS and len(parts) > len(("apis", "group", "version")):
            return await self._metric(raw, path)
        found = self._object(path, query)
        if found is None:
            return status(HTTPStatus.NOT_FOUND, f"{path} not found")
        return HTTPStatus.OK, msgspec.json.encode(found)

    async def _metric(self, raw: str, path: str) -> tuple[int, bytes]:
        if self.forward is not None:
            return await self.forward(raw)
        found = self.metrics.get(unquote(raw), self.metrics.get(path))
        if isinstance(found, tuple):
            return found
        if found is None:
            return status(HTTPStatus.NOT_FOUND, f"the server could not find {path}")
        return HTTPStatus.OK, msgspec.json.encode(found)

    def _object(self, path: str, query: Mapping[str, str]) -> Json | None:
        autoscalers = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers"
        match path.strip("/").split("/"):
            case ["apis", "apiregistration.k8s.io", _, _, name]:
                return self.registrations.get(name)
            case ["apis", group]:
                return self._group(group)
            case ["apis", "apps", _]:
                return _resources(("deployments", "Deployment"), ("deployments/scale", "Scale"))
            case ["api", "v1"]:
                return _resources(("pods", "Pod"), ("services", "Service"), ("nodes", "Node"))
            case ["api", "v1", "pods"]:
                return self._pods("", query)
            case ["api", "v1", "namespaces", namespace, "pods"]:
                return self._pods(namespace, query)
        return {
            autoscalers: {"items": [self.autoscaler]},
            f"{autoscalers}/web": self.autoscaler,
            f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/web/scale": self.scale,
        }.get(path)

    def _group(self, name: str) -> Json | None:
        versions = [{"version": version} for version in self.groups.get(name, ())]
        return {"versions": versions, "preferredVersion": versions[0]} if versions else None

    def _pods(self, namespace: str, query: Mapping[str, str]) -> Json:
        chosen = label_selectors.parse(query.get("labelSelector", ""))
        found = [
            pod
            for pod in self.pods
            if namespace in {"", pod["metadata"]["namespace"]}
            and chosen.matches(pod["metadata"]["labels"])
        ]
        first, size = int(query.get("continue", "0")), int(query["limit"])
        more = str(first + size) if first + size < len(found) else ""
        return {"items": found[first : first + size], "metadata": {"continue": more}}


def _resources(*named: tuple[str, str]) -> Json:
    return {"resources": [{"name": name, "kind": kind} for name, kind in named]}
