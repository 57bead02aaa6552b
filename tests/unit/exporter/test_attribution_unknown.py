"""What is not known of tenants is absent, with a reason where one can be given."""

import pytest

from exporter.nvml.protocol import Lost, Unsupported
from exporter.nvml.reader import Cycle
from exporter.tenants.owners import HOST, Fault
from exporter.tenants.protocol import Allocation
from exporter.tenants.tenants import Holders, TenantMap
from slicewatch.catalog.readings.processes import ProcessKind
from tests.unit.exporter.attributed import (
    GIB,
    ONE,
    PARENT,
    PLAN,
    SLICES,
    A,
    B,
    Node,
    held,
    process,
)
from tests.unit.exporter.people import People


def test_memory_that_the_driver_does_not_state_leaves_the_tenants_unknown():
    """dcgm-exporter publishes the word for "not available" as 17 million MiB."""
    node = Node(People({1: A, 2: A, 3: B}), held(A, ONE), held(B, ONE))
    node.tick({ONE: [process(1), process(2, None), process(3)]}, {ONE: {1: 40}}, count=15)
    uses = node.uses(ONE)
    assert uses.of_tenants["gpu_tenant_memory_used_bytes"] == [None, GIB]
    assert uses.of_tenants["gpu_tenant_memory_utilization"] == [None, 1.25]
    assert uses.of_tenants["gpu_tenant_processes"] == [2, 1]
    assert node.rejected == []


def test_memory_that_cannot_be_true_is_rejected_and_counted():
    """DCGM #83: a blank of another width than NVML's own."""
    node = Node(People({1: A}), held(A, ONE))
    node.tick({ONE: [process(1, 2**63 - 16)]})
    uses = node.uses(ONE)
    assert uses.of_tenants["gpu_tenant_memory_used_bytes"] == [None]
    assert node.rejected == ["gpu_tenant_memory_used_bytes", "gpu_tenant_memory_utilization"]


def test_tenants_of_mig_instances_have_memory_and_processes_but_no_shares():
    node = Node(People({1: A, 2: B}), held(A, SLICES[0]), held(B, SLICES[1]))
    none = Unsupported("mig_enabled")
    lists = {PARENT: none, SLICES[0]: [process(1)], SLICES[1]: [process(2, 2 * GIB)]}
    node.tick(lists, {PARENT: none}, count=15)
    uses = node.uses(PARENT, *SLICES, capacity=10 * GIB)
    assert uses.of_tenants["gpu_tenant_memory_used_bytes"] == [GIB, 2 * GIB]
    assert uses.of_tenants["gpu_tenant_memory_utilization"] == [10, 20]
    assert uses.of_tenants["gpu_tenant_busy_ratio"] == [None, None]
    assert uses.of_devices["gpu_contention_ratio"] == [None] * 3
    assert uses.of_devices["gpu_tenants_active"] == [None, 1, 1]
    assert uses.reasons["gpu_contention_ratio"] == ("mig_enabled", "mig_instance", "mig_instance")
    assert uses.shares == ""


def test_through_the_server_of_mps_memory_is_known_and_shares_are_not():
    """dcgm-exporter #474, #388, #478: clients are the tenants, the server is none."""
    clients = [process(pid, kind=ProcessKind.MPS) for pid in (1, 2)]
    node = Node(People({1: A, 2: B, 50: HOST}, servers={50}), held(A, ONE), held(B, ONE))
    node.tick({ONE: [*clients, process(50)]}, {ONE: {50: 70}}, count=15)
    uses = node.uses(ONE)
    assert [tenant.pod for tenant in uses.tenants] == ["a", "b"]
    assert uses.of_tenants["gpu_tenant_memory_used_bytes"] == [GIB, GIB]
    assert uses.of_tenants["gpu_tenant_busy_ratio"] == [None, None]
    assert uses.of_devices["gpu_contended_seconds_total"] == [None]
    assert uses.reasons == {
        "gpu_contention_ratio": ("mps",), "gpu_contended_seconds_total": ("mps",)
    }  # fmt: skip


def test_of_a_device_that_does_not_answer_nothing_is_said_but_who_holds_it():
    node = Node(People({1: A, 2: B}), held(A, ONE), replicas={"GPU-0": 4})
    node.tick({ONE: [process(1), process(2)]}, {ONE: {1: 40, 2: 20}}, count=15)
    uses = node.uses(ONE, down=(ONE,))
    assert [tenant.pod for tenant in uses.tenants] == ["a"]
    assert {column[0] for column in uses.of_tenants.values()} == {None}
    known = {name: column[0] for name, column in uses.of_devices.items() if column[0] is not None}
    assert known == {"gpu_tenants_allocated": 1, "gpu_sharing_replicas": 4}
    assert node.uses(ONE).of_tenants["gpu_tenant_busy_ratio"] == pytest.approx([0.4, 0.2])


def test_a_pass_that_was_lost_changes_nothing():
    node = Node(People({1: A}), held(A, ONE))
    node.tick({ONE: [process(1)]}, {ONE: {1: 40}}, count=15)
    before = node.uses(ONE)
    lost = Cycle(gpu=ONE, plan=PLAN, devices=Lost("gpu_is_lost"), at=15.5, spent={})
    node.attribution.take([lost], node.holders)
    assert node.uses(ONE) == before


def test_a_fault_of_the_node_is_the_reason_and_hides_every_tenant_of_processes():
    node = Node(People({1: A}, fault=Fault.PID_NAMESPACE), held(B, ONE))
    node.tick({ONE: [process(1)]}, {ONE: {1: 40}}, count=15)
    uses = node.uses(ONE)
    assert [tenant.pod for tenant in uses.tenants] == ["b"]
    assert {column[0] for column in uses.of_tenants.values()} == {None}
    assert uses.of_devices["gpu_tenants_active"] == [None]
    assert uses.reasons["gpu_contention_ratio"] == ("pid_namespace",)


def test_a_kubelet_that_fails_takes_no_label_away():
    """dcgm-exporter #342: a failed answer left every series without its pod."""
    tenants = TenantMap()
    given = Allocation(
        namespace="ns", pod="a", container="main", resource="nvidia.com/gpu", device_id="GPU-0"
    )
    tenants.take([given], now=0.0)
    node = Node(People({1: A}))
    seen = []
    for second in range(30):
        # Every third answer fails: the map is not told anything then.
        if second % 3:
            tenants.take([given], now=float(second))
        node.holders = tenants.holders((ONE,), float(second))
        node.tick({ONE: [process(1)]}, {ONE: {1: 40}})
        seen.append(node.uses(ONE).tenants)
    assert all(found is seen[0] for found in seen)
    assert [tenant.allocated for tenant in seen[0]] == [True]


def test_while_the_kubelet_has_not_answered_processes_alone_are_the_tenants():
    node = Node(People({1: A}))
    node.holders = Holders()
    node.tick({ONE: [process(1)]}, {ONE: {1: 40}}, count=15)
    uses = node.uses(ONE)
    assert [tenant.allocated for tenant in uses.tenants] == [False]
    assert uses.of_devices["gpu_tenants_allocated"] == [None]
    assert uses.of_devices["gpu_tenants_active"] == [1]
