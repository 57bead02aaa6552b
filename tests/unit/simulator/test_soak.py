"""The scenario for long runs is sound, does what it promises, and stays quick."""

import pytest

from simulator import soak
from simulator.checking import check
from simulator.fleet import Fleet


@pytest.fixture(scope="module")
def fleet():
    return Fleet(soak.scenario(pods=3000))


def test_thousands_of_pods_fit_and_end(fleet):
    check(fleet.scenario)
    pods = [pod for workload in fleet.scenario.workloads for pod in workload.pods]
    assert len({pod.name for pod in pods}) == 3000
    length = soak.length_seconds(fleet.scenario)
    assert 3600 < length < 24 * 3600
    assert fleet.truth.allocations(soak.NODE, length) == ()
    assert len(fleet.truth.allocations(soak.NODE, length / 2)) >= 5


def test_the_same_number_of_pods_is_the_same_scenario():
    assert soak.scenario(pods=50) == soak.scenario(pods=50)
    shorter = soak.length_seconds(soak.scenario(pods=50))
    assert shorter < soak.length_seconds(soak.scenario(pods=500))


def test_everything_goes_wrong_sooner_or_later(fleet):
    kinds = {type(fault).__name__ for fault in fleet.scenario.faults}
    assert kinds >= {"Lost", "Hang", "Garbage", "GarbageSamples", "MigLayout", "DriverGone", "Xid"}
    node = fleet.node(soak.NODE)
    length = soak.length_seconds(fleet.scenario)
    layouts = {
        tuple(device.profile.name for device in node.gpus[4].timeline.stage(at).devices)
        for at in range(0, int(length), 30)
    }
    assert len(layouts) == 3
    assert any(not node.driver_at(at).loaded for at in range(0, int(length), 10))
    assert len(node.events(0, length)) > 10


def test_tenants_use_no_more_than_the_device_over_all_the_hours(fleet):
    length = soak.length_seconds(fleet.scenario)
    for gpu in fleet.node(soak.NODE).gpus:
        got = gpu.timeline.tenant_seconds(gpu.uuid, (0, length))
        busy = fleet.truth.busy_seconds(gpu.uuid, 0, length)
        if gpu.index != 4:
            assert 0 < busy < length
            assert sum(seconds[-1] for seconds in got.values()) == pytest.approx(busy)
