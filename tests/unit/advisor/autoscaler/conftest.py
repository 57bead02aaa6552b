"""Situations for the calculator, as short as the cases that need them."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from advisor.autoscaler.metrics import Situation
from advisor.autoscaler.readings import Readings, Sample
from slicewatch.kube.autoscaling import HorizontalPodAutoscaler, Scale, ScaledPod

NOW = datetime(2026, 9, 20, 10, 15, tzinfo=UTC)
Json = dict[str, Any]


def made_pod(name: str, *, phase: str = "Running", ready: bool = True, **more: Any) -> ScaledPod:
    deleted = {"deletionTimestamp": "2026-09-20T10:14:00Z"} if more.get("deleting") else {}
    condition = {
        "type": "Ready",
        "status": str(ready),
        "lastTransitionTime": more.get("changed", "2026-09-20T09:00:00Z"),
    }
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "ml"} | deleted,
            "spec": {"containers": [{"name": "main", "resources": more.get("resources", {})}]},
            "status": {
                "phase": phase,
                "startTime": more.get("started", "2026-09-20T08:59:00Z"),
                "conditions": [condition],
            },
        },
        ScaledPod,
    )


def pods_metric(target: str = "80", name: str = "gpu_utilization") -> Json:
    return {
        "type": "Pods",
        "pods": {
            "metric": {"name": name},
            "target": {"type": "AverageValue", "averageValue": target},
        },
    }


def made_autoscaler(
    *metrics: Json, least: int | None = 1, most: int = 100, behavior: Json | None = None
) -> HorizontalPodAutoscaler:
    spec: Json = {
        "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
        "minReplicas": least,
        "maxReplicas": most,
        "metrics": list(metrics or (pods_metric(),)),
        "behavior": behavior,
    }
    return msgspec.convert(
        {"metadata": {"name": "web", "namespace": "ml"}, "spec": spec}, HorizontalPodAutoscaler
    )


@pytest.fixture
def seen() -> Callable[..., Situation]:
    """Return a maker of situations: pods with values, of an autoscaler."""

    def make(
        values: dict[str, float] | None = None,
        *,
        pods: list[ScaledPod] | None = None,
        readings: list[Readings] | None = None,
        autoscaler: HorizontalPodAutoscaler | None = None,
        replicas: int | None = None,
        existing: int | None = None,
    ) -> Situation:
        given = values or {}
        listed = [made_pod(name) for name in given] if pods is None else pods
        samples = {n: Sample(value=round(v * 1000), read_at=NOW) for n, v in given.items()}
        wanted = len(listed) if replicas is None else replicas
        scale = {
            "metadata": {"name": "web"},
            "spec": {"replicas": wanted},
            "status": {
                "replicas": wanted if existing is None else existing,
                "selector": "app=web",
            },
        }
        return Situation(
            autoscaler=autoscaler or made_autoscaler(),
            scale=msgspec.convert(scale, Scale),
            pods=listed,
            readings=[Readings(by_pod=samples)] if readings is None else readings,
            now=NOW,
        )

    return make


@pytest.fixture
def pod() -> Callable[..., ScaledPod]:
    return made_pod


@pytest.fixture
def autoscaler() -> Callable[..., HorizontalPodAutoscaler]:
    return made_autoscaler


@pytest.fixture
def metric() -> Callable[..., Json]:
    return pods_metric
