"""The node: kubelet and processes together are the tenants of its devices."""

import pytest

from exporter.measure.attribution import METHOD
from exporter.page import page_of
from exporter.tenants.owners import HOST, Owner
from slicewatch.catalog import CATALOG
from slicewatch.catalog.readings.processes import ProcessKind
from slicewatch.catalog.sharing import OF_DEVICES, OF_TENANTS, PRESSURE
from slicewatch.service.exposition import Format
from slicewatch.wire.layout import Layout
from tests.unit.exporter.attributed import (
    GIB,
    ONE,
    SIDECAR,
    SLICES,
    TWO,
    A,
    B,
    Node,
    held,
    process,
    rows,
)
from tests.unit.exporter.people import People


def test_a_pod_that_shares_a_device_has_its_own_share_memory_and_processes():
    """dcgm-exporter #587, #144: per container, and not the device's values for each."""
    node = Node(People({1: A, 2: B, 3: B}), held(A, ONE), held(B, ONE))
    node.tick(
        {ONE: [process(1, 3 * GIB), process(2), process(3)]}, {ONE: {1: 24, 2: 30}}, count=15
    )
    uses = node.uses(ONE)
    assert rows(uses, "gpu_tenant_busy_ratio") == pytest.approx(
        {("GPU-0", "a", "main"): 0.24, ("GPU-0", "b", "main"): 0.30}
    )
    assert rows(uses, "gpu_tenant_memory_used_bytes") == {
        ("GPU-0", "a", "main"): 3 * GIB, ("GPU-0", "b", "main"): 2 * GIB,
    }  # fmt: skip
    assert list(rows(uses, "gpu_tenant_processes").values()) == [1, 2]
    assert list(rows(uses, "gpu_tenant_memory_utilization").values()) == [3.75, 2.5]
    assert uses.shares == METHOD


def test_a_process_on_two_gpus_counts_on_both():
    """HAMi #445: only the first of the cards had data."""
    node = Node(People({1: A}), held(A, ONE), held(A, TWO))
    node.tick(
        {ONE: [process(1)], TWO: [process(1, 2 * GIB)]}, {ONE: {1: 40}, TWO: {1: 60}}, count=15
    )
    uses = node.uses(ONE, TWO)
    assert rows(uses, "gpu_tenant_busy_ratio") == pytest.approx(
        {("GPU-0", "a", "main"): 0.4, ("GPU-1", "a", "main"): 0.6}
    )
    assert list(rows(uses, "gpu_tenant_memory_used_bytes").values()) == [GIB, 2 * GIB]


def test_the_containers_of_a_pod_with_a_gpu_each_are_kept_apart():
    """HAMi #863: two GPUs for two containers of one pod, and dcgm-exporter's pod totals."""
    node = Node(People({1: A, 2: SIDECAR}), held(A, ONE), held(SIDECAR, TWO))
    node.tick(
        {ONE: [process(1)], TWO: [process(2, 2 * GIB)]}, {ONE: {1: 40}, TWO: {2: 5}}, count=15
    )
    uses = node.uses(ONE, TWO)
    assert rows(uses, "gpu_tenant_busy_ratio") == pytest.approx(
        {("GPU-0", "a", "main"): 0.4, ("GPU-1", "a", "sidecar"): 0.05}
    )


def test_a_container_with_a_device_and_no_process_has_zeros():
    """HAMi #1794, #281: allocated and idle is known to be nothing, and not missing."""
    node = Node(People({}), held(A, ONE))
    node.tick({ONE: []}, count=60)
    uses = node.uses(ONE)
    values = {name: column[0] for name, column in uses.of_tenants.items()}
    assert values == dict.fromkeys(values, 0)
    assert len(values) == len(OF_TENANTS)
    assert uses.of_devices["gpu_tenants_allocated"] == [1]
    assert uses.of_devices["gpu_tenants_active"] == [0]


def test_a_pod_that_the_kubelet_does_not_list_is_a_tenant_by_its_processes():
    """dcgm-exporter #127, #138: a pod that goes around the device plugin had no labels."""
    node = Node(People({1: A, 2: B}), held(A, ONE, resource="nvidia.com/gpu"))
    node.tick({ONE: [process(1), process(2)]}, {ONE: {1: 10, 2: 50}}, count=15)
    uses = node.uses(ONE)
    assert [(t.pod, t.allocated, t.uid) for t in uses.tenants] == [
        ("a", True, "a-uid"), ("b", False, "b-uid"),
    ]  # fmt: skip
    assert uses.of_tenants["gpu_tenant_busy_ratio"] == pytest.approx([0.1, 0.5])
    assert uses.of_devices["gpu_tenants_allocated"] == [1]
    assert uses.of_devices["gpu_tenants_active"] == [2]
    assert sources(uses) == {"a": "kubelet", "b": "process"}


def test_tenants_that_run_at_the_same_time_are_under_the_devices_pressure():
    one, other = SLICES
    node = Node(People({1: A, 2: B}), held(A, one), held(B, one))
    node.tick({one: [process(1), process(2)], other: [process(2)]})
    uses = node.uses(one, other, pressure=0.8)
    assert uses.of_devices["gpu_pressure_ratio"] == [0.8, 0.0]
    assert node.uses(one, pressure=None).of_devices["gpu_pressure_ratio"] == [None]


def test_tenants_that_take_turns_have_contention_and_no_pressure():
    node = Node(People({1: A, 2: B}), held(A, ONE), held(B, ONE))
    node.tick({ONE: [process(1), process(2)]}, {ONE: {1: 40, 2: 40}}, count=60)
    uses = node.uses(ONE, pressure=0.8)
    assert uses.of_devices["gpu_pressure_ratio"] == [None]
    assert uses.of_devices["gpu_contention_ratio"] == [pytest.approx(0.4)]


def test_processes_of_the_host_are_a_tenant_without_a_name_to_tell():
    node = Node(People({1: A, 7: HOST}), held(A, ONE))
    node.tick({ONE: [process(1), process(7, kind=ProcessKind.GRAPHICS)]}, {ONE: {7: 30}}, count=15)
    uses = node.uses(ONE)
    assert rows(uses, "gpu_tenant_busy_ratio") == pytest.approx(
        {("GPU-0", "", ""): 0.3, ("GPU-0", "a", "main"): 0.0}
    )
    assert sources(uses) == {"a": "kubelet"}


def sources(uses):
    """Return the source that ``gpu_tenant_info`` states, by pod."""
    layout = Layout(
        run="r", number=1, node="n", window_seconds=15, devices=(ONE,), tenants=uses.tenants
    )
    text = page_of(layout, [CATALOG["gpu_tenant_info"]]).constant[Format.TEXT]
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            labels = dict(part.split("=") for part in line.split("{")[1].split("}")[0].split(","))
            found[labels["pod"].strip('"')] = labels["source"].strip('"')
    return found


def test_a_process_that_ended_takes_its_row_with_it():
    """dcgm-exporter #140, #16: series of a pod lived on for half an hour."""
    node = Node(People({1: A, 2: B}), held(A, ONE))
    node.tick({ONE: [process(1), process(2)]}, {ONE: {1: 40, 2: 20}}, count=15)
    assert [tenant.pod for tenant in node.uses(ONE).tenants] == ["a", "b"]
    del node.people.owners[2]
    node.tick({ONE: [process(1)]}, {ONE: {1: 40}})
    assert [tenant.pod for tenant in node.uses(ONE).tenants] == ["a"]


def test_totals_of_a_tenant_that_comes_back_soon_go_on():
    node = Node(People({1: A, 2: B}))
    node.tick({ONE: [process(1)]}, {ONE: {1: 40}}, count=10)
    node.tick({ONE: []}, count=20)
    assert node.uses(ONE).tenants == ()
    node.tick({ONE: [process(1)]}, {ONE: {1: 40}}, count=10)
    (total,) = node.uses(ONE).of_tenants["gpu_tenant_busy_seconds_total"]
    assert total == pytest.approx(8)


def test_a_static_pods_hash_is_no_uid_but_a_known_uid_is_added_to_the_holder():
    static = Owner(namespace="ns", pod="b", container="main", uid="0123456789abcdef")
    node = Node(People({1: A, 2: static}), held(A, ONE), held(static, ONE))
    node.tick({ONE: [process(1), process(2)]})
    assert [tenant.uid for tenant in node.uses(ONE).tenants] == ["a-uid", ""]


def test_tenants_are_the_same_object_while_nothing_of_them_changes():
    node = Node(People({1: A, 2: B}), held(A, ONE))
    node.tick({ONE: [process(1), process(2)]}, {ONE: {1: 10}})
    before = node.uses(ONE).tenants
    node.tick({ONE: [process(2), process(1)]}, {ONE: {1: 20, 2: 5}})
    assert node.uses(ONE).tenants is before


def test_a_device_that_is_gone_is_forgotten_with_its_totals():
    node = Node(People({1: A}), held(A, ONE), held(A, TWO))
    node.tick({ONE: [process(1)], TWO: [process(1)]}, {ONE: {1: 40}, TWO: {1: 40}}, count=10)
    assert [tenant.device for tenant in node.uses(ONE).tenants] == ["GPU-0"]
    node.tick({ONE: [], TWO: []})
    totals = rows(node.uses(ONE, TWO), "gpu_tenant_busy_seconds_total")
    assert totals == pytest.approx({("GPU-0", "a", "main"): 4, ("GPU-1", "a", "main"): 0})


def test_two_saturating_tenants_are_in_each_others_way():
    node = Node(People({1: A, 2: B}), held(A, ONE), held(B, ONE), replicas={"GPU-0": 2})
    node.tick({ONE: [process(1), process(2)]}, {ONE: {1: 50, 2: 50}}, count=60)
    uses = node.uses(ONE)
    assert uses.of_tenants["gpu_tenant_contention_ratio"] == pytest.approx([0.5, 0.5])
    assert uses.of_devices["gpu_contention_ratio"] == pytest.approx([0.5])
    assert uses.of_devices["gpu_contended_seconds_total"] == [60]
    assert uses.of_devices["gpu_sampled_seconds_total"] == [60]
    assert uses.of_devices["gpu_unattributed_busy_ratio"] == [0]
    assert uses.of_devices["gpu_sharing_replicas"] == [2]


def test_every_metric_of_tenants_and_devices_has_a_column_of_their_length():
    node = Node(People({1: A}), held(A, ONE), held(A, TWO))
    uses = node.uses(ONE, TWO)
    assert {name: len(column) for name, column in uses.of_tenants.items()} == {
        metric.name: 2 for metric in OF_TENANTS
    }
    assert {name: len(column) for name, column in uses.of_devices.items()} == {
        metric.name: 2 for metric in (*OF_DEVICES, PRESSURE)
    }
    assert uses.reasons == {}
