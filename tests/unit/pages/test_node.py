"""The state of a node says what the snapshot says, and nothing of what it does not."""

from pathlib import Path

import pytest

from slicewatch.pages import findings
from slicewatch.pages.message import Health, Lines
from slicewatch.pages.node import node_state, tracked, worst
from slicewatch.wire.layout import Device, Layout, Tenant
from slicewatch.wire.snapshot import Snapshot

A100 = "NVIDIA A100-SXM4-80GB"
NOW = 1_000_000.0


def gpu(number, *, mig=False, model=A100):
    return Device(uuid=f"GPU-{number}", gpu=number, model=model, mig_enabled=mig)


def part(number, start, size, *, of=0, compute=0):
    return Device(
        uuid=f"MIG-{of}-{number}-{compute}", gpu=of, model=A100, parent=f"GPU-{of}",
        gpu_instance=number, compute_instance=compute, profile=f"{size}g", placement_start=start,
        placement_size=size,
    )  # fmt: skip


def state(devices, values=(), *, tenants=(), tenant_values=(), up=None, support=(), known=True):
    layout = Layout(
        run="r", number=1, node="n", window_seconds=15, devices=tuple(devices),
        tenants=tuple(tenants), tenants_known=known, support=dict(support), driver="580",
    )  # fmt: skip
    snapshot = Snapshot(
        run="r", layout=1, sequence=1, up=up or [True] * len(devices),
        ages=[0.5] * len(devices), values=dict(values), tenant_values=dict(tenant_values),
    )  # fmt: skip
    return node_state(layout, snapshot, wall_seconds=NOW, passed_seconds=1.0)


def tenant(device, pod, *, container="main", replica="", allocated=True):
    return Tenant(
        device=device, namespace="ml", pod=pod, container=container, replica=replica,
        allocated=allocated,
    )  # fmt: skip


def test_a_whole_gpu_is_one_device():
    (found,) = state([gpu(0)], {"gpu_utilization": [42.0], "gpu_power_usage_watts": [200.0]}).gpus
    (device,) = found.devices
    assert (device.utilization, device.uuid, found.power_watts) == (42.0, "GPU-0", 200.0)
    assert (found.health, found.age_seconds, found.mig) == (Health.GOOD, 1.5, False)


def test_what_is_not_known_is_absent_and_its_reason_is_there():
    shown = state(
        [gpu(0)], {"gpu_utilization": [None]}, support={"gpu_utilization": ("mig_enabled",)}
    )
    (device,) = shown.gpus[0].devices
    assert device.utilization is None
    assert device.memory_used_bytes is None
    assert device.reasons == {"utilization": "mig_enabled"}


def test_a_partitioned_gpu_has_its_devices_by_place_and_the_slices_of_its_model():
    devices = [gpu(0, mig=True), part(7, 4, 1), part(1, 0, 4), gpu(1), part(9, 0, 1, of=1)]
    found = state(devices, {"gpu_utilization": [None, 10.0, 20.0, 30.0, 40.0]}).gpus[0]
    assert [device.utilization for device in found.devices] == [20.0, 10.0]
    assert found.memory_slices == 8


def test_a_model_that_nobody_knows_has_as_many_slices_as_are_in_use():
    devices = [gpu(0, mig=True, model="NVIDIA X"), part(1, 0, 4), part(2, 4, 2)]
    assert state(devices).gpus[0].memory_slices == 6


def test_tenants_stand_by_busy_share_and_replicas_of_one_container_are_added_up():
    tenants = [
        tenant("GPU-0", "a", replica="0"), tenant("GPU-0", "a", replica="1"),
        tenant("GPU-0", "b", allocated=False), tenant("GPU-1", "c"),
    ]  # fmt: skip
    shown = state(
        [gpu(0), gpu(1)], {"gpu_sharing_replicas": [4.0, None]}, tenants=tenants,
        tenant_values={"gpu_tenant_busy_ratio": [0.1, 0.1, 0.6, None]},
    )  # fmt: skip
    first, second = (one.devices[0] for one in shown.gpus)
    assert [(t.pod, t.replicas, t.busy_ratio) for t in first.tenants] == [
        ("b", 0, 0.6),
        ("a", 2, 0.1),
    ]
    assert first.replicas == 4
    assert [(t.pod, t.busy_ratio) for t in second.tenants] == [("c", None)]


def test_a_gpu_that_does_not_answer_is_bad_and_so_is_its_node():
    shown = state([gpu(0), gpu(1)], up=[False, True])
    assert [one.health for one in shown.gpus] == [Health.BAD, Health.GOOD]
    assert shown.health is Health.BAD
    assert shown.gpus[0].findings[0].text == "does not answer"


@pytest.mark.parametrize(
    ("series", "value", "health", "said"),
    [
        ('gpu_xid_last_seen_timestamp_seconds{xid="79"}', NOW - 120, Health.BAD, "Xid 79 2 min"),
        ('gpu_xid_last_seen_timestamp_seconds{xid="63"}', NOW - 5, Health.WARNING, "Xid 63 1 min"),
        ("gpu_row_remap_failure", 1, Health.BAD, "cannot be remapped"),
        ("gpu_row_remap_pending", 1, Health.WARNING, "waits for a reset"),
        ('gpu_recovery_action{action="gpu_reset"}', 1, Health.WARNING, "wants gpu reset"),
        ('gpu_clock_event_active{reason="hw_thermal_slowdown"}', 1, Health.WARNING, "by heat"),
        ('gpu_fabric_fault{kind="route_unhealthy"}', 1, Health.WARNING, "route unhealthy"),
    ],
)
def test_what_a_snapshot_says_of_health_is_said_in_words(series, value, health, said):
    (found,) = state([gpu(0)], {series: [value]}).gpus
    (finding,) = found.findings
    assert (finding.health, found.health) == (health, health)
    assert said in finding.text


@pytest.mark.parametrize(
    "values",
    [
        {'gpu_xid_last_seen_timestamp_seconds{xid="79"}': [NOW - 7200]},
        {'gpu_xid_last_seen_timestamp_seconds{xid="13"}': [NOW - 5]},
        {'gpu_clock_event_active{reason="sw_power_cap"}': [1]},
        {'gpu_recovery_action{action="none"}': [1]},
        {"gpu_row_remap_pending": [0]},
        {"gpu_row_remap_pending": [None]},
    ],
)
def test_what_is_normal_or_long_ago_is_no_finding(values):
    (found,) = state([gpu(0)], values).gpus
    assert (found.findings, found.health) == ((), Health.GOOD)


def test_every_finding_leads_to_a_page_that_there_is():
    pages = Path(__file__).parents[3] / "docs" / "runbooks"
    named = {runbook for *_, runbook in findings.FLAGS.values()}
    named |= {runbook for _, runbook in findings.REASONS.values()}
    named |= {"GPULost", "recovery_action", "fabric", "xid_fatal", "xid_warning"}
    assert {name for name in named if not (pages / f"{name}.md").exists()} == set()


def test_a_node_without_gpus_is_not_called_well():
    assert state([]).health is Health.UNKNOWN
    assert worst([Health.GOOD, Health.UNKNOWN]) is Health.UNKNOWN


def test_the_lines_of_a_device_are_its_own():
    layout = Layout(run="r", number=1, node="n", window_seconds=15, devices=(gpu(0),))
    snapshot = Snapshot(
        run="r", layout=1, sequence=1, up=[True], ages=[0.0], values={"gpu_utilization": [7.0]}
    )
    assert tracked(layout, snapshot) == {"GPU-0": (7.0, None, None, None)}
    shown = node_state(layout, snapshot, lines=lambda _: Lines(utilization=(1.0, None)))
    assert shown.gpus[0].lines.utilization == (1.0, None)
