"""The manifests of the health monitor as they are shipped, for tests to apply and to look into."""

from pathlib import Path
from typing import Any, Final

import yaml

FOLDER: Final = Path(__file__).parents[2] / "deploy" / "manifests" / "health"
NAMESPACE: Final = "kube-system"
ACCOUNT: Final = "gpu-health-sa"
USER: Final = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
DAEMON_SET: Final = "gpu-health-monitor"
RIGHTS: Final = (
    "service-account.yaml",
    "rbac.yaml",
    "node-policy.yaml",
    "budget-policy.yaml",
    "event-policy.yaml",
)
"""All but the DaemonSet."""

Manifest = dict[str, Any]


def objects(name: str) -> list[Manifest]:
    """Return the objects of one file."""
    return list(yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")))


def one(name: str, kind: str) -> Manifest:
    """Return the only object of a kind in a file."""
    (found,) = (each for each in objects(name) if each["kind"] == kind)
    return found
