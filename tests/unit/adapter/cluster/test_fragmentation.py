"""What is free and of no use to those who wait, and what another partition would change."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.hardware import MODELS, HardwareError, Placement, placements_for, room_for
from slicewatch.wire.layout import Device, Layout, Tenant
from slicewatch.wire.snapshot import Frame, Snapshot

SMALL, LARGE = "mig-1g.10gb", "mig-3g.40gb"
A100 = "NVIDIA A100-SXM4-80GB"
STRANDED, REPARTITION = "gpu_cluster_stranded_devices", "gpu_cluster_repartition_pods"


def by_resource(series: dict[tuple[str, ...], float]) -> dict[str, float]:
    return {key[3].removeprefix("nvidia.com/"): value for key, value in series.items()}


def report(
    cluster: Any,
    held: dict[int, str],
    *,
    node: str = "n",
    model: str = A100,
    known: bool = True,
    placed: bool = True,
) -> None:
    """Let an exporter report a GPU cut into seven small slices, some of them held by pods."""
    gpu = Device(uuid="GPU-0", gpu=0, model=model, mig_enabled=True)
    slices = [
        Device(
            uuid=f"MIG-{start}",
            gpu=0,
            model=model,
            parent="GPU-0",
            gpu_instance=start + 7,
            compute_instance=0,
            profile="1g.10gb",
            placement_start=start if placed else None,
            placement_size=1 if placed else None,
        )
        for start in range(7)
    ]
    tenants = tuple(
        Tenant(device=f"MIG-{start}", namespace="ml", pod=pod, container="main")
        for start, pod in held.items()
    )
    layout = Layout(
        run="r",
        number=1,
        node=node,
        window_seconds=15.0,
        devices=(gpu, *slices),
        tenants=tenants,
        tenants_known=known,
    )
    shot = Snapshot(run="r", layout=1, sequence=1, up=[True] * 8, ages=[0.1] * 8, values={})
    cluster.receive(Frame(layout=layout, snapshot=shot))


def hold(cluster: Any, *starts: int, **reported: Any) -> None:
    """Let pods hold some of the seven small slices of a node, and others wait for large ones."""
    cluster.put(cluster.node("n", {SMALL: 7, LARGE: 0}))
    for start in starts:
        cluster.put(cluster.pod(f"p{start}", {SMALL: 1}, node="n"))
    report(cluster, {start: f"p{start}" for start in starts}, **reported)


def test_free_slices_are_stranded_if_no_pod_that_waits_can_use_them(cluster: Any) -> None:
    cluster.put(cluster.node("n", {SMALL: 7, "gpu": 1}))
    cluster.put(cluster.pod("a", {SMALL: 4}, node="n"))
    cluster.put(cluster.pod("waits", {LARGE: 1}))
    assert by_resource(cluster.series(STRANDED)) == {SMALL: 3, "gpu": 1}


def test_nothing_is_stranded_while_nobody_waits(cluster: Any) -> None:
    cluster.put(cluster.node("n", {SMALL: 7}))
    assert cluster.series(STRANDED) == {}


def test_gpus_spread_over_nodes_are_stranded_for_a_pod_that_wants_them_together(
    cluster: Any,
) -> None:
    cluster.put(cluster.node("n1", {"gpu": 4}), cluster.node("n2", {"gpu": 4}))
    cluster.put(cluster.pod("training", {"gpu": 8}))
    assert by_resource(cluster.series(STRANDED)) == {"gpu": 8}
    cluster.put(cluster.node("n3", {"gpu": 8}))
    assert by_resource(cluster.series(STRANDED)) == {"gpu": 8}
    cluster.put(cluster.pod("small", {"gpu": 2}))
    assert cluster.series(STRANDED) == {}


def test_a_node_selector_keeps_a_pod_from_free_devices(cluster: Any) -> None:
    cluster.put(cluster.node("l40s", {"gpu": 8}, gpu__product="L40S-48GB"))
    chosen = {"nvidia.com/gpu.product": "H100-SXM5-80GB"}
    cluster.put(cluster.pod("h100-training", {"gpu": 8}, nodeSelector=chosen))
    assert by_resource(cluster.series(STRANDED)) == {"gpu": 8}


def test_what_is_free_on_a_cordoned_node_is_not_stranded(cluster: Any) -> None:
    cluster.put(cluster.node("n", {SMALL: 7}, cordoned=True), cluster.pod("waits", {LARGE: 1}))
    assert cluster.series(STRANDED) == {}


def test_a_pod_that_is_held_back_by_a_gate_does_not_count_as_waiting(cluster: Any) -> None:
    cluster.put(cluster.node("n", {SMALL: 7}))
    cluster.put(cluster.pod("gated", {LARGE: 1}, condition={"reason": "SchedulingGated"}))
    assert cluster.series(STRANDED) == {}


def test_free_parts_of_one_gpu_that_lie_together_could_be_cut_anew(cluster: Any) -> None:
    """Slices 0 to 3 are held: the other half of the GPU has room for one of the large ones."""
    hold(cluster, 0, 1, 2, 3)
    cluster.put(cluster.pod("waits", {LARGE: 1}), cluster.pod("two", {LARGE: 2}))
    key = ("ml", f"nvidia.com/{LARGE}", "3g.40gb")
    assert cluster.series(REPARTITION) == {key: 1}


def test_as_many_free_parts_that_lie_apart_could_not(cluster: Any) -> None:
    """Slices 0 and 6 are held: five of seven are free, and neither half of the GPU is."""
    hold(cluster, 0, 6)
    cluster.put(cluster.pod("waits", {LARGE: 1}))
    assert cluster.series(REPARTITION) == {}
    assert by_resource(cluster.series(STRANDED)) == {SMALL: 5}


def test_a_pod_that_fits_somewhere_as_it_is_needs_no_other_partition(cluster: Any) -> None:
    hold(cluster, 0)
    cluster.put(cluster.node("other", {LARGE: 1}), cluster.pod("waits", {LARGE: 1}))
    assert cluster.series(REPARTITION) == {}


@pytest.mark.parametrize(
    "reported",
    [{"known": False}, {"placed": False}, {"model": "NVIDIA Imagined 1"}],
    ids=["tenants", "places", "model"],
)
def test_where_it_is_unknown_which_parts_are_free_no_pod_is_said_to_fit(
    cluster: Any, reported: dict[str, Any]
) -> None:
    hold(cluster, 0, 1, **reported)
    cluster.put(cluster.pod("waits", {LARGE: 1}))
    assert cluster.series(REPARTITION) == {}


def test_a_pod_whose_device_is_not_reported_yet_may_be_on_any_part(cluster: Any) -> None:
    hold(cluster, 0, 1, 2)
    cluster.put(cluster.pod("waits", {LARGE: 1}))
    assert len(cluster.series(REPARTITION)) == 1
    cluster.put(cluster.pod("starting", {SMALL: 1}, node="n", phase="Pending"))
    assert cluster.series(REPARTITION) == {}


def test_a_node_without_an_exporter_offers_no_room(cluster: Any) -> None:
    cluster.put(cluster.node("n", {SMALL: 7}), cluster.pod("waits", {LARGE: 1}))
    assert cluster.series(REPARTITION) == {}


MIG_MODELS = [model for model in MODELS.values() if model.supports_mig]


@given(st.data())
def test_as_many_fit_beside_what_stays_as_can_be_placed_there(data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(MIG_MODELS))
    wanted = data.draw(st.sampled_from(model.mig_profiles))
    taken: list[Placement] = []
    for profile in data.draw(st.lists(st.sampled_from(model.mig_profiles), max_size=4)):
        spot = data.draw(st.sampled_from(profile.placements))
        if not any(overlap(spot, other) for other in taken):
            taken.append(spot)
    free = [s for s in wanted.placements if not any(overlap(s, other) for other in taken)]
    assert room_for(wanted, taken, 0) == min(most(free), wanted.max_instances)


def most(spots: list[Placement]) -> int:
    """Return how many of the spots do not overlap at most, by trying all."""
    if not spots:
        return 0
    first, *rest = spots
    return max(most(rest), 1 + most([spot for spot in rest if not overlap(first, spot)]))


def overlap(one: Placement, other: Placement) -> bool:
    """Tell whether two placements overlap."""
    return one.start < other.start + other.size and other.start < one.start + one.size


@pytest.mark.parametrize("model", MIG_MODELS, ids=lambda model: model.name)
def test_an_empty_gpu_has_room_for_as_many_as_can_be_created(model: Any) -> None:
    for profile in model.mig_profiles:
        number = room_for(profile, [], 0)
        assert number == profile.max_instances
        assert len(placements_for(model, [profile.name] * number)) == number
        assert room_for(profile, [], number) == 0
        with pytest.raises(HardwareError):
            placements_for(model, [profile.name] * (number + 1))
