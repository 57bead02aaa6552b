"""The cluster of the scale benchmark: where its exporters are, and what an API server takes."""

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import grid, population
from bench.networks import BENCHMARKS

NETWORKS = [grid.LOOPBACK, BENCHMARKS]


@pytest.mark.parametrize("network", NETWORKS, ids=str)
@given(node=st.integers(0, grid.LOOPBACK.num_addresses - 1))
def test_an_exporter_is_known_by_its_address(network, node):
    assert grid.node_at(grid.address(node, network)) == node


@pytest.mark.parametrize("network", NETWORKS, ids=str)
@given(nodes=st.integers(1, 450))
def test_every_node_is_an_endpoint_once_in_slices_of_kubernetes_size(network, nodes):
    slices = list(grid.slices(nodes, 9400, network))
    found = {}
    for piece in slices:
        assert 0 < len(piece["endpoints"]) <= 100
        found |= {one["nodeName"]: one["addresses"] for one in piece["endpoints"]}
    assert sum(len(piece["endpoints"]) for piece in slices) == nodes
    assert len({piece["metadata"]["name"] for piece in slices}) == len(slices)
    assert found == {
        population.node_name(node): [grid.address(node, network)] for node in range(nodes)
    }


def test_the_benchmarks_network_has_addresses_that_an_api_server_takes_as_endpoints():
    for node in (0, 5000):
        address = IPv4Address(grid.address(node, BENCHMARKS))
        assert not address.is_loopback
        assert not address.is_link_local


def test_a_pod_for_a_real_api_server_has_an_image_limits_and_a_whole_owner_but_no_status():
    (pod, *_) = grid.pods_on(0, 3)
    made = population.accepted(pod.manifest())
    (container,) = made["spec"]["containers"]
    assert container["image"]
    # An extended resource has to have a limit that equals its request.
    assert container["resources"]["limits"] == container["resources"]["requests"]
    (owner,) = made["metadata"]["ownerReferences"]
    assert owner["controller"]
    assert owner["uid"]
    assert owner["apiVersion"] == "apps/v1"
    assert made["spec"]["nodeName"] == population.node_name(0)
    assert "status" not in made
