"""What is served besides utilization, memory and power: who has it, and how it is combined."""

from collections.abc import Mapping, Sequence

import pytest

from adapter.allocation import Allocation
from adapter.join import Join
from adapter.outcome import Absence, Rule
from adapter.query import SERVED
from slicewatch.catalog import CATALOG
from slicewatch.kube.objects import Pod
from slicewatch.wire.layout import Layout, Tenant
from slicewatch.wire.snapshot import Column, Snapshot
from testbed import fleet
from testbed.front_proxy import ROOT, Asker

BUSY, CONTENTION = SERVED["gpu_tenant_busy_ratio"], SERVED["gpu_tenant_contention_ratio"]


def pod(name: str, **about: str) -> Pod:
    return fleet.pod(fleet.pod_json(name, **about))  # type: ignore[arg-type]  # only texts


def joined(
    layout: Layout,
    pods: Sequence[Pod],
    devices: Mapping[str, Column] | None = None,
    tenants: Mapping[str, Column] | None = None,
) -> Join:
    shot = fleet.snapshot(layout, devices, tenant_values=tenants, shares="processes")
    return Join(Allocation(layout, {p.key: p for p in pods}), shot)


def shared(busy: Column, contention: Column) -> Join:
    """Return two GPUs: pods a and b on the first, a alone on the second."""
    held = [("GPU-n1-0", "a"), ("GPU-n1-0", "b"), ("GPU-n1-1", "a")]
    layout = fleet.layout(
        [fleet.gpu(0), fleet.gpu(1)], [fleet.tenant(device, name) for device, name in held]
    )
    return joined(
        layout, [pod("a"), pod("b")], {"gpu_utilization": [90.0, 30.0]},
        {"gpu_tenant_busy_ratio": busy, "gpu_tenant_contention_ratio": contention},
    )  # fmt: skip


def test_the_raw_value_of_a_shared_device_is_that_of_the_device() -> None:
    join = shared([0.1, 0.8, 0.3], [0.0, 0.0, 0.0])
    raw = SERVED["gpu_device_utilization"]
    assert join.pod(("ml", "b"), raw).value == 90.0
    assert join.pod(("ml", "b"), raw).parts[0].rule is Rule.DEVICE
    assert join.pod(("ml", "a"), raw).value == 60.0


def test_a_pod_is_as_busy_as_the_mean_of_its_devices_and_as_hindered_as_on_the_worst() -> None:
    join = shared([0.1, 0.8, 0.3], [0.5, 0.1, 0.0])
    assert join.pod(("ml", "a"), BUSY).value == pytest.approx(0.2)
    assert join.pod(("ml", "a"), CONTENTION).value == 0.5
    assert join.pod(("ml", "b"), CONTENTION).value == 0.1


def test_containers_of_a_pod_are_busy_together_and_hindered_each() -> None:
    held = [fleet.tenant("GPU-n1-0", "a", container=name) for name in ("one", "two")]
    tenants: dict[str, Column] = {
        "gpu_tenant_busy_ratio": [0.2, 0.3], "gpu_tenant_contention_ratio": [0.3, 0.2],
    }  # fmt: skip
    join = joined(fleet.layout([fleet.gpu(0)], held), [pod("a")], None, tenants)
    assert join.pod(("ml", "a"), BUSY).value == pytest.approx(0.5)
    assert join.pod(("ml", "a"), CONTENTION).value == 0.3


def test_what_is_not_known_of_a_tenant_is_absent_also_where_it_is_alone() -> None:
    outcome = shared([0.1, 0.8, None], [0.0, 0.0, 0.0]).pod(("ml", "a"), BUSY)
    assert outcome.absence is Absence.NO_SHARES
    assert "GPU-n1-1" in outcome.detail


def test_shares_that_can_never_be_known_have_the_exporters_reason() -> None:
    layout = fleet.layout(
        [fleet.mig(0, 1)], [fleet.tenant("MIG-n1-0-1", "a")],
        support={"gpu_contention_ratio": ("mig_instance",)},
    )  # fmt: skip
    outcome = joined(layout, [pod("a")]).pod(("ml", "a"), CONTENTION)
    assert outcome.absence is Absence.UNSUPPORTED
    assert "mig_instance" in outcome.detail


@pytest.mark.parametrize("name", ["gpu_contention_ratio", "gpu_pressure_ratio"])
def test_a_node_and_a_namespace_are_as_bad_as_their_worst_device(name: str) -> None:
    layout = fleet.layout(
        [fleet.gpu(0), fleet.gpu(1)], [fleet.tenant("GPU-n1-0", n) for n in "ab"]
    )
    join = joined(layout, [pod("a"), pod("b")], {name: [0.25, 0.75]})
    assert join.node(SERVED[name]).value == 0.75
    assert join.namespace("ml", SERVED[name]).value == 0.25


def test_waiting_vgpus_are_a_matter_of_the_node() -> None:
    join = joined(fleet.layout([fleet.gpu(0)]), [], {"gpu_vgpu_wait_ratio": [0.2]})
    assert join.node(SERVED["gpu_vgpu_wait_ratio"]).value == 0.2


def test_a_pod_that_shares_a_device_sees_all_of_its_memory_as_the_total() -> None:
    layout = fleet.layout([fleet.gpu(0)], [fleet.tenant("GPU-n1-0", n) for n in "ab"])
    join = joined(layout, [pod("a"), pod("b")], {"gpu_memory_total_bytes": [80e9]})
    total = SERVED["gpu_memory_total_bytes"]
    assert join.pod(("ml", "a"), total).value == join.node(total).value == 80e9


def leaving(busy: Column, **about: str) -> Join:
    """Return a GPU that pod a holds, and job did until it finished."""
    layout = fleet.layout([fleet.gpu(0)], [fleet.tenant("GPU-n1-0", n) for n in ("a", "job")])
    pods = [pod("a"), pod("job", phase="Succeeded")]
    return joined(layout, pods, {"gpu_utilization": [95.0]}, {"gpu_tenant_busy_ratio": busy})


def test_the_work_of_a_pod_that_has_just_finished_is_not_taken_for_its_neighbours() -> None:
    """As in dcgm-exporter #140 and #16, where a finished pod goes on counting."""
    outcome = leaving([0.05, 0.9]).pod(("ml", "a"), SERVED["gpu_utilization"])
    assert outcome.value == pytest.approx(5.0)
    alone = leaving([0.95, 0.0]).pod(("ml", "a"), SERVED["gpu_utilization"])
    assert (alone.value, alone.parts[0].rule) == (95.0, Rule.ALONE)


def test_a_node_with_mig_devices_has_percent_of_both() -> None:
    layout = fleet.layout([fleet.gpu(0, mig_enabled=True), fleet.mig(0, 1), fleet.gpu(1)])
    join = joined(layout, [], {"gpu_utilization": [None, 50.0, 100.0]})
    assert join.node(SERVED["gpu_device_utilization"]).value == 75.0


def test_no_two_names_are_the_same_and_none_shadows_another_metric() -> None:
    for name, served in SERVED.items():
        assert served.metric.name == name or name not in CATALOG
        assert served.column or served.tenant_column in CATALOG


async def test_an_answer_has_the_combination_and_the_window_of_the_metric(ask: Asker) -> None:
    layout = fleet.layout(
        [fleet.gpu(0), fleet.gpu(1)],
        [Tenant(device=f"GPU-n1-{i}", namespace="ml", pod="a", container="main") for i in (0, 1)],
        number=2,
    )
    shot = fleet.snapshot(
        layout, {"gpu_contention_ratio": [0.1, 0.4]},
        tenant_values={"gpu_tenant_busy_ratio": [0.2, 0.6]}, shares="processes",
    )  # fmt: skip
    ask.port.receive(fleet.frame(layout, _with(shot)))
    node = await ask(f"{ROOT}/nodes/n1/gpu_contention_ratio")
    assert b'"windowSeconds":60,"value":"400m"' in node.body
    pod_path = f"{ROOT}/namespaces/ml/pods/a/gpu_tenant_busy_ratio"
    for how, value in {"avg": "400m", "sum": "800m", "max": "600m"}.items():
        path = f"{pod_path}?metricLabelSelector=combine%3D{how}"
        assert await ask.values(path) == {"a": value}
    assert (
        b'"combine":"max"'
        in (await ask(f"{pod_path}?explain=true&metricLabelSelector=combine%3Dmax")).body
    )
    assert "it is served for nodes, namespaces" in await ask.refusal(
        f"{ROOT}/namespaces/ml/pods/a/gpu_contention_ratio", 404
    )


def _with(shot: Snapshot) -> Snapshot:
    """Return a snapshot whose contention is a value of its own window, as exporters send it."""
    means = {n: c for n, c in shot.means.items() if n != "gpu_contention_ratio"}
    return Snapshot(
        run=shot.run, layout=shot.layout, sequence=shot.sequence, up=shot.up, ages=shot.ages,
        values=shot.values, means=means, tenant_values=shot.tenant_values, shares=shot.shares,
    )  # fmt: skip
