"""What models have because of what they are."""

import pytest

from slicewatch.hardware import MODELS, Architecture
from slicewatch.hardware.features import (
    CUDA_CAPABILITIES,
    bar1_bytes,
    comes_with_ecc,
    joins_fabric,
    retires_pages,
)

MIB, GIB = 2**20, 2**30


def named(condition):
    return {name for name, model in MODELS.items() if condition(model)}


def test_every_architecture_has_a_capability_and_a_newer_one_a_higher():
    capabilities = [CUDA_CAPABILITIES[architecture] for architecture in Architecture]
    assert capabilities == sorted(set(capabilities))


def test_only_desktop_boards_come_without_ecc():
    assert named(lambda model: not comes_with_ecc(model)) == {"RTX4090"}


def test_pages_are_retired_before_ampere_only():
    assert named(retires_pages) == {"V100-32GB", "T4"}


def test_only_nvswitch_generations_since_hopper_join_a_fabric():
    assert named(joins_fabric) == {"H100-80GB", "H200-141GB", "B200"}


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("T4", 256 * MIB), ("RTX4090", 256 * MIB), ("V100-32GB", 32 * GIB), ("A30", 32 * GIB),
        ("A100-40GB", 64 * GIB), ("A100-80GB", 128 * GIB), ("L40S", 64 * GIB),
        ("H100-80GB", 128 * GIB), ("H200-141GB", 256 * GIB), ("B200", 256 * GIB),
    ],
)  # fmt: skip
def test_the_window_of_a_board_is_what_nvidia_smi_shows(model, size):
    assert bar1_bytes(MODELS[model]) == size


@pytest.mark.parametrize(
    ("profile", "mib"), [("1g.5gb", 8191), ("2g.10gb", 16383), ("3g.20gb", 32767)]
)
def test_the_window_of_an_instance_is_what_nvidia_smi_shows(profile, mib):
    model = MODELS["A100-40GB"]
    assert bar1_bytes(model, model.profile(profile)) == mib * MIB
