"""What a node, a namespace and a choice of devices get of a metric."""

from collections.abc import Sequence
from typing import Any

import pytest

from adapter.allocation import Allocation
from adapter.join import Join, labels_of
from adapter.outcome import Absence
from adapter.query import SERVED
from slicewatch.kube.objects import Pod
from slicewatch.wire.layout import Layout
from slicewatch.wire.snapshot import Snapshot
from testbed import fleet

UTILIZATION = SERVED["gpu_utilization"]
MEMORY = SERVED["gpu_memory_used_bytes"]
POWER = SERVED["gpu_power_usage_watts"]


def pod(name: str, **about: Any) -> Pod:
    return fleet.pod(fleet.pod_json(name, **about))


def joined(layout: Layout, pods: Sequence[Pod], snapshot: Snapshot | None = None) -> Join:
    known = {p.key: p for p in pods}
    return Join(Allocation(layout, known), snapshot or fleet.snapshot(layout))


def test_a_node_counts_a_shared_device_once() -> None:
    layout = fleet.layout([fleet.gpu(0)], [fleet.tenant("GPU-n1-0", n) for n in "abcd"])
    snapshot = fleet.snapshot(layout, {"gpu_utilization": [80.0]})
    join = joined(layout, [pod(n) for n in "abcd"], snapshot)
    assert join.node(POWER).value == fleet.READINGS["gpu_power_usage_watts"]
    assert join.node(UTILIZATION).value == 80.0


def partitioned(gpu_value: float | None) -> Join:
    layout = fleet.layout(
        [fleet.gpu(0, mig_enabled=True), fleet.mig(0, 1), fleet.mig(0, 2), fleet.gpu(1)]
    )
    snapshot = fleet.snapshot(layout, {"gpu_utilization": [gpu_value, 20.0, 40.0, 60.0]})
    return joined(layout, [], snapshot)


def test_a_partitioned_gpu_is_counted_by_its_parts_where_it_has_no_value_itself() -> None:
    assert partitioned(None).node(UTILIZATION).value == pytest.approx(40.0)
    assert partitioned(90.0).node(UTILIZATION).value == pytest.approx(75.0)


def test_a_namespace_counts_the_devices_of_its_pods_once() -> None:
    layout = fleet.layout(
        [fleet.gpu(0), fleet.gpu(1), fleet.gpu(2)],
        [
            fleet.tenant("GPU-n1-0", "a"),
            fleet.tenant("GPU-n1-0", "b"),
            fleet.tenant("GPU-n1-1", "c"),
            fleet.tenant("GPU-n1-1", "x", namespace="other"),
        ],
    )
    snapshot = fleet.snapshot(
        layout, tenant_values={"gpu_tenant_memory_used_bytes": [1.0, 2.0, 3.0, 4.0]}
    )
    pods = [pod("a"), pod("b"), pod("c"), pod("x", namespace="other")]
    join = joined(layout, pods, snapshot)
    assert join.namespace("ml", MEMORY).value == fleet.READINGS["gpu_memory_used_bytes"] + 3.0
    assert [p.device.gpu for p in join.namespace("ml", UTILIZATION).parts] == [0, 1]
    assert join.namespace("other", MEMORY).value == 4.0


def test_a_metric_selector_chooses_among_the_devices() -> None:
    layout = fleet.layout(
        [fleet.gpu(0), fleet.gpu(1)], [fleet.tenant(f"GPU-n1-{i}", "a") for i in (0, 1)]
    )
    snapshot = fleet.snapshot(layout, {"gpu_utilization": [20.0, 60.0]})
    join = joined(layout, [pod("a")], snapshot)
    assert join.pod(("ml", "a"), UTILIZATION, lambda d: d.gpu == 1).value == 60.0
    none = join.pod(("ml", "a"), UTILIZATION, lambda d: d.gpu == 9)
    assert none.absence is Absence.NOT_SELECTED


def test_devices_have_the_labels_of_their_series() -> None:
    layout = fleet.layout([fleet.mig(0, 3)])
    assert labels_of(layout, layout.devices[0]) == {
        "gpu": "0",
        "uuid": "MIG-n1-0-3",
        "model": "NVIDIA H200",
        "node": "n1",
        "gpu_instance": "3",
        "compute_instance": "0",
        "profile": "1g.18gb",
    }


def test_a_pod_without_one_of_its_devices_has_no_value_and_the_device_is_named() -> None:
    layout = fleet.layout(
        [fleet.gpu(0)], [fleet.tenant("GPU-n1-0", "a"), fleet.tenant("GPU-gone", "a")]
    )
    outcome = joined(layout, [pod("a")]).pod(("ml", "a"), UTILIZATION)
    assert outcome.absence is Absence.NO_VALUE
    assert "GPU-gone" in outcome.detail
