"""What ResourceQuotas say of GPUs and MIG devices."""

from typing import Any

import msgspec

from slicewatch.kube.objects import ResourceQuota

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-3g.40gb"


def quota(
    hard: dict[str, str],
    used: dict[str, str],
    *,
    namespace: str = "team-a",
    name: str = "gpu-quota-team-a",
) -> ResourceQuota:
    body = {
        "metadata": {"name": name, "namespace": namespace},
        "status": {"hard": hard, "used": used},
    }
    return msgspec.convert(body, ResourceQuota)


def test_a_teams_quota_shows_what_it_may_have_has_and_which_part_that_is(cluster: Any) -> None:
    cluster.put(
        quota(
            {"requests.nvidia.com/gpu": "8", "requests.nvidia.com/mig-3g.40gb": "4", "pods": "9"},
            {"requests.nvidia.com/gpu": "6", "requests.nvidia.com/mig-3g.40gb": "0", "pods": "7"},
        )
    )
    gpu = ("team-a", "gpu-quota-team-a", "requests", GPU)
    mig = ("team-a", "gpu-quota-team-a", "requests", MIG)
    assert cluster.series("gpu_cluster_quota_hard_devices") == {gpu: 8, mig: 4}
    assert cluster.series("gpu_cluster_quota_used_devices") == {gpu: 6, mig: 0}
    assert cluster.series("gpu_cluster_quota_used_ratio") == {gpu: 0.75, mig: 0.0}


def test_a_bound_that_nobody_counts_has_no_used_part(cluster: Any) -> None:
    """The API server takes a bound on limits of an extended resource, and never counts it."""
    cluster.put(quota({"limits.nvidia.com/gpu": "8"}, {}))
    key = ("team-a", "gpu-quota-team-a", "limits", GPU)
    assert cluster.series("gpu_cluster_quota_hard_devices") == {key: 8}
    assert cluster.series("gpu_cluster_quota_used_devices") == {}
    assert cluster.series("gpu_cluster_quota_used_ratio") == {}


def test_a_quota_of_none_has_no_used_ratio_and_a_lowered_one_more_than_1(cluster: Any) -> None:
    cluster.put(
        quota({"requests.nvidia.com/gpu": "0"}, {"requests.nvidia.com/gpu": "0"}, name="none"),
        quota({"requests.nvidia.com/gpu": "2"}, {"requests.nvidia.com/gpu": "3"}, name="lowered"),
        quota({"requests.nvidia.com/gpu": "1k"}, {"requests.nvidia.com/gpu": "500"}, name="large"),
    )
    found = cluster.series("gpu_cluster_quota_used_ratio")
    assert {key[1]: ratio for key, ratio in found.items()} == {"lowered": 1.5, "large": 0.5}


def test_a_quota_that_is_not_counted_yet_is_unknown(cluster: Any) -> None:
    new = msgspec.convert({"metadata": {"name": "q", "namespace": "a"}}, ResourceQuota)
    cluster.put(new)
    assert cluster.series("gpu_cluster_quota_hard_devices") == {}
    cluster.remove(new)
    assert cluster.series("gpu_cluster_quota_hard_devices") == {}
