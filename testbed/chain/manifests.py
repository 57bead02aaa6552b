"""Kubernetes objects of the chain: the registered API, its rights, a Deployment and its HPA."""

import base64
from pathlib import Path
from typing import Any, Final

from testbed.cluster import image

Manifest = dict[str, Any]

NAMESPACE: Final = "slicewatch"
SERVICE: Final = "slicewatch-adapter"
SERVICE_HOST: Final = f"{SERVICE}.{NAMESPACE}.svc"
ADAPTER_USER: Final = f"system:serviceaccount:{NAMESPACE}:{SERVICE}"
EXPORTER_USER: Final = f"system:serviceaccount:{NAMESPACE}:slicewatch-exporter"
WORKLOADS: Final = "ml"
GPU: Final = "nvidia.com/gpu"

API_VERSIONS: Final = (
    ("custom.metrics.k8s.io", "v1beta1", 100),
    ("custom.metrics.k8s.io", "v1beta2", 200),
    ("external.metrics.k8s.io", "v1beta1", 100),
)


def namespace(name: str) -> Manifest:
    """Return a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def registration(address: str, port: int, authority: Path) -> list[Manifest]:
    """Return what makes a server on the node the metrics APIs of the cluster.

    Args:
        address: of the node; loopback is refused in an EndpointSlice.
        port: where the adapter listens.
        authority: signed the adapter's serving certificate, PEM.
    """
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE},
        "spec": {"ports": [{"name": "https", "port": 443, "targetPort": port}]},
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": SERVICE,
            "namespace": NAMESPACE,
            "labels": {"kubernetes.io/service-name": SERVICE},
        },
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
    }
    return [service, endpoints, *(_api(*version, authority) for version in API_VERSIONS)]


def _api(group: str, version: str, priority: int, authority: Path) -> Manifest:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": {
            "group": group,
            "version": version,
            "service": {"name": SERVICE, "namespace": NAMESPACE},
            "caBundle": base64.b64encode(authority.read_bytes()).decode(),
            "groupPriorityMinimum": 100,
            "versionPriority": priority,
        },
    }


def rights() -> list[Manifest]:
    """Return what the adapter may do: read what the cluster has, find exporters and the proxy's CA."""
    subject = {"kind": "User", "name": ADAPTER_USER, "apiGroup": "rbac.authorization.k8s.io"}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": SERVICE},
        "rules": [
            {
                "apiGroups": [""],
                "resources": ["pods", "nodes", "resourcequotas"],
                "verbs": ["get", "list", "watch"],
            },
            {
                "apiGroups": ["scheduling.k8s.io"],
                "resources": ["priorityclasses"],
                "verbs": ["list", "watch"],
            },
            {
                "apiGroups": ["discovery.k8s.io"],
                "resources": ["endpointslices"],
                "verbs": ["get", "list", "watch"],
            },
        ],
    }
    return [
        role,
        _binding("ClusterRoleBinding", SERVICE, None, {"kind": "ClusterRole", "name": SERVICE}, subject),
        _binding(
            "RoleBinding", SERVICE, "kube-system",
            {"kind": "Role", "name": "extension-apiserver-authentication-reader"}, subject,
        ),
    ]  # fmt: skip


def exporter_rights() -> list[Manifest]:
    """Return what the exporter may do: read the pods and the resource slices."""
    name = "slicewatch-exporter"
    subject = {"kind": "User", "name": EXPORTER_USER, "apiGroup": "rbac.authorization.k8s.io"}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
            {
                "apiGroups": ["resource.k8s.io"],
                "resources": ["resourceslices"],
                "verbs": ["list", "watch"],
            },
        ],
    }
    reference = {"kind": "ClusterRole", "name": name}
    return [role, _binding("ClusterRoleBinding", name, None, reference, subject)]


def _binding(
    kind: str, name: str, namespace_name: str | None, role: Manifest, subject: Manifest
) -> Manifest:
    metadata = {"name": name} | ({"namespace": namespace_name} if namespace_name else {})
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "roleRef": {**role, "apiGroup": "rbac.authorization.k8s.io"},
        "subjects": [subject],
    }


def metric_reader(user: str, metric: str) -> list[Manifest]:
    """Return the right to read one metric of the pods, and no other, for a user."""
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "metric-reader", "namespace": WORKLOADS},
        "rules": [
            {
                "apiGroups": ["custom.metrics.k8s.io"],
                "resources": [f"pods/{metric}"],
                "verbs": ["get"],
            }
        ],
    }
    reference = {"kind": "Role", "name": "metric-reader"}
    return [role, _binding("RoleBinding", "metric-reader", WORKLOADS, reference, subject)]


def deployment(name: str, replicas: int) -> Manifest:
    """Return a Deployment whose pods take one GPU each and stop at once when told to."""
    container = {
        "name": "server",
        "image": image.PAUSE,
        "imagePullPolicy": "Never",
        "resources": {"limits": {GPU: "1"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": WORKLOADS},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
            },
        },
    }


def autoscaler(name: str, metric: str, target: str, *, least: int, most: int) -> Manifest:
    """Return an HPA on a Pods metric with a behaviour that keeps a test short."""
    no_wait = {
        "stabilizationWindowSeconds": 0,
        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 1}],
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": WORKLOADS},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": least,
            "maxReplicas": most,
            "metrics": [
                {
                    "type": "Pods",
                    "pods": {
                        "metric": {"name": metric},
                        "target": {"type": "AverageValue", "averageValue": target},
                    },
                }
            ],
            "behavior": {
                "scaleUp": no_wait,
                # A pod that just went leaves its share to the others only a window later.
                "scaleDown": {**no_wait, "stabilizationWindowSeconds": 10},
            },
        },
    }
