"""How many GPUs a node's labels promise, and when they are not to be believed."""

import pytest

from health.expectation import expected_gpus

LABEL = "nvidia.com/gpu.count"


@pytest.mark.parametrize(
    ("labels", "number"),
    [
        ({LABEL: "8"}, 8),
        ({LABEL: "0"}, 0),
        ({LABEL: "8", "nvidia.com/mig.strategy": "mixed"}, 8),
        ({LABEL: "8", "nvidia.com/gpu.replicas": "4"}, 8),
        ({}, None),
        ({LABEL: ""}, None),
        ({LABEL: "-1"}, None),
        ({LABEL: "eight"}, None),
        ({LABEL: "８"}, None),
    ],
)
def test_the_label_is_the_number_of_gpus(labels, number):
    assert expected_gpus(labels, LABEL) == number


def test_under_the_single_strategy_it_counts_mig_devices_and_promises_nothing():
    assert expected_gpus({LABEL: "56", "nvidia.com/mig.strategy": "single"}, LABEL) is None


def test_a_label_of_the_cluster_s_own_is_believed_whatever_the_strategy():
    labels = {"example.com/gpus": "8", "nvidia.com/mig.strategy": "single"}
    assert expected_gpus(labels, "example.com/gpus") == 8


def test_no_label_promises_nothing():
    assert expected_gpus({LABEL: "8"}, "") is None
