"""Kubernetes objects of dynamic resource allocation: classes, slices and templates of claims."""

from collections.abc import Mapping
from typing import Any, Final

Manifest = dict[str, Any]

API: Final = "resource.k8s.io/v1"
DRIVER: Final = "gpu.nvidia.com"
TYPE: Final = "type"
"""The attribute by which NVIDIA's classes tell their devices apart: ``gpu`` or ``mig``."""


def device_class(kind: str) -> Manifest:
    """Return the class of NVIDIA's devices of a type, such as ``gpu.nvidia.com``."""
    selector = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].{TYPE} == '{kind}'"
    return {
        "apiVersion": API,
        "kind": "DeviceClass",
        "metadata": {"name": class_name(kind)},
        "spec": {"selectors": [{"cel": {"expression": selector}}]},
    }


def class_name(kind: str) -> str:
    """Return what NVIDIA calls the class of a type."""
    return f"{kind}.nvidia.com"


def resource_slice(node: str, devices: Mapping[str, Mapping[str, str]]) -> Manifest:
    """Return the one slice of the pool of a node.

    Args:
        node: whose pool, which has its name.
        devices: attributes, ``type`` among them, by the name of the device.
    """
    listed = [
        {"name": name, "attributes": {key: {"string": value} for key, value in said.items()}}
        for name, said in devices.items()
    ]
    return {
        "apiVersion": API,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{DRIVER}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": listed,
        },
    }


def claim_template(namespace: str, name: str, kind: str) -> Manifest:
    """Return a template of claims of one device of a type."""
    request = {"name": "device", "exactly": {"deviceClassName": class_name(kind)}}
    return {
        "apiVersion": API,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
