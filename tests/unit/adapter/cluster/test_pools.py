"""Contention per pool of nodes."""

from typing import Any

import pytest

from testbed import fleet

POOL = "H100-SXM5-80GB"
MEAN, MAX, KNOWN, CONTENDED = (
    "gpu_cluster_pool_contention_mean_ratio",
    "gpu_cluster_pool_contention_max_ratio",
    "gpu_cluster_pool_contention_known_devices",
    "gpu_cluster_pool_contended_seconds_total",
)


def report(
    cluster: Any,
    node: str,
    ratios: list[float | None],
    seconds: list[float | None] | None = None,
    *,
    run: str = "r",
    up: list[bool] | None = None,
) -> None:
    rows = fleet.layout([fleet.gpu(i, node=node) for i in range(len(ratios))], node=node, run=run)
    columns = {"gpu_contention_ratio": ratios}
    if seconds is not None:
        columns["gpu_contended_seconds_total"] = seconds
    cluster.receive(fleet.frame(rows, fleet.snapshot(rows, columns, up=up)))


def test_a_pool_has_the_mean_and_the_highest_of_the_devices_that_are_known(cluster: Any) -> None:
    cluster.put(*(cluster.node(name, {"gpu": 2}, gpu__product=POOL) for name in ("n1", "n2")))
    report(cluster, "n1", [0.1, 0.3])
    report(cluster, "n2", [0.5, None])
    assert cluster.series(MEAN) == {(POOL,): pytest.approx(0.3)}
    assert cluster.series(MAX) == {(POOL,): 0.5}
    assert cluster.series(KNOWN) == {(POOL,): 3}


def test_a_pool_is_told_by_the_label_that_was_chosen(make_cluster: Any) -> None:
    cluster = make_cluster(pool_label="nvidia.com/pool")
    cluster.put(cluster.node("n1", {"gpu": 1}, gpu__product=POOL, pool="inference"))
    report(cluster, "n1", [0.25])
    assert cluster.series(MEAN) == {("inference",): 0.25}


def test_nodes_without_the_label_are_in_no_pool(cluster: Any) -> None:
    report(cluster, "unlabelled", [0.25])
    assert cluster.series(MEAN) == {("",): 0.25}


@pytest.mark.parametrize(
    "reported",
    [{"ratios": [None]}, {"ratios": [0.5], "up": [False]}, {"ratios": [1.5]}],
    ids=["unknown", "down", "impossible"],
)
def test_what_is_not_known_is_no_part_of_the_pool(cluster: Any, reported: dict[str, Any]) -> None:
    report(cluster, "n1", **reported)
    assert cluster.series(MEAN) == {}
    assert cluster.series(KNOWN) == {}


def test_a_reading_that_is_too_old_is_no_part_of_the_pool(cluster: Any) -> None:
    report(cluster, "n1", [0.5])
    cluster.pass_seconds(10.0)
    report(cluster, "n2", [0.1])
    cluster.pass_seconds(10.0)
    assert cluster.series(MEAN) == {("",): 0.1}


def test_contended_time_grows_by_what_the_devices_counters_grow_by(cluster: Any) -> None:
    report(cluster, "n1", [0.5, 0.5], [100.0, 7.0])
    assert cluster.series(CONTENDED) == {("",): 0.0}
    report(cluster, "n1", [0.5, 0.5], [103.0, 7.5])
    assert cluster.series(CONTENDED) == {("",): 3.5}
    report(cluster, "n1", [0.5, 0.5], [103.0, None])
    assert cluster.series(CONTENDED) == {("",): 3.5}


def test_contended_time_never_falls_when_an_exporter_starts_anew_or_a_node_goes(
    cluster: Any,
) -> None:
    report(cluster, "n1", [0.5], [100.0])
    cluster.series(CONTENDED)
    report(cluster, "n1", [0.5], [104.0])
    assert cluster.series(CONTENDED) == {("",): 4.0}
    report(cluster, "n1", [0.5], [1.0], run="another life")
    assert cluster.series(CONTENDED) == {("",): 4.0}
    report(cluster, "n1", [0.5], [3.0], run="another life")
    assert cluster.series(CONTENDED) == {("",): 6.0}
    for target in list(cluster.source.streams):
        cluster.source.remove(target)
    assert cluster.series(CONTENDED) == {("",): 6.0}
