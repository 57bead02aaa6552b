"""The table of GPU models against what NVIDIA documents, and against itself."""

import pytest

from slicewatch.hardware import MODELS, HardwareError, memory_slices, model_named

GIBIBYTE = 2**30
MIG_MODELS = [model for model in MODELS.values() if model.supports_mig]


def test_every_model_that_users_plan_with_is_there():
    assert set(MODELS) == {
        "V100-32GB", "T4", "A30", "A100-40GB", "A100-80GB", "L40S", "RTX4090", "H100-80GB",
        "H200-141GB", "B200",
    }  # fmt: skip


def test_gpm_came_with_hopper():
    assert {model.name for model in MODELS.values() if model.gpm} == {
        "H100-80GB", "H200-141GB", "B200",
    }  # fmt: skip


def test_only_data_centre_gpus_from_ampere_on_have_mig():
    names = {model.name for model in MIG_MODELS}
    assert names == {"A30", "A100-40GB", "A100-80GB", "H100-80GB", "H200-141GB", "B200"}


@pytest.mark.parametrize(
    ("model", "profile", "profile_id", "sm_count", "memory_gib", "max_instances"),
    [
        ("A30", "1g.6gb", 14, 14, 5.81, 4),
        ("A30", "2g.12gb", 5, 28, 11.69, 2),
        ("A100-40GB", "1g.5gb", 19, 14, 4.75, 7),
        ("A100-40GB", "7g.40gb", 0, 98, 39.25, 1),
        ("A100-80GB", "1g.10gb+me", 20, 14, 9.5, 1),
        ("A100-80GB", "4g.40gb", 5, 56, 39.25, 1),
        ("H100-80GB", "1g.10gb", 19, 16, 9.75, 7),
        ("H100-80GB", "1g.20gb", 15, 26, 19.62, 4),
        ("H100-80GB", "3g.40gb", 9, 60, 39.5, 2),
        ("H200-141GB", "1g.18gb", 19, 16, 16.0, 7),
        ("H200-141GB", "7g.141gb", 0, 132, 139.75, 1),
        ("B200", "1g.23gb", 19, 18, 20.5, 7),
        ("B200", "2g.45gb", 14, 36, 44.25, 3),
    ],
)
def test_profiles_are_as_nvidia_smi_lists_them(
    model, profile, profile_id, sm_count, memory_gib, max_instances
):
    found = MODELS[model].profile(profile)
    assert (found.profile_id, found.sm_count, found.max_instances) == (
        profile_id,
        sm_count,
        max_instances,
    )
    assert found.memory_bytes / GIBIBYTE == pytest.approx(memory_gib, abs=0.006)


@pytest.mark.parametrize("model", MIG_MODELS, ids=lambda model: model.name)
def test_profiles_fit_into_their_gpu(model):
    for profile in model.mig_profiles:
        assert profile.sm_count <= model.sm_count
        assert profile.memory_bytes <= model.memory_bytes
        assert profile.compute_slices <= model.compute_slices
        assert profile.name.startswith(f"{profile.compute_slices}g.")
        for placement in profile.placements:
            assert placement.size == profile.memory_slices
            assert placement.start + placement.size <= model.memory_slices


@pytest.mark.parametrize("model", MIG_MODELS, ids=lambda model: model.name)
def test_as_many_of_a_profile_as_are_listed_fit_beside_each_other(model):
    for profile in model.mig_profiles:
        number = profile.max_instances
        assert number * profile.sm_count <= model.sm_count
        assert number * profile.memory_slices <= model.memory_slices
        assert number * profile.compute_slices <= model.compute_slices


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_figures_of_a_model_do_not_contradict_each_other(model):
    assert 0 < model.idle_power_watts < model.max_power_watts
    assert 0 < model.idle_sm_clock_mhz < model.max_sm_clock_mhz
    assert 0 < model.reserved_bytes < model.memory_bytes / 10
    assert (model.compute_slices > 0) == (model.memory_slices > 0) == model.supports_mig


def test_an_unknown_model_is_refused_with_the_nearest_one():
    with pytest.raises(HardwareError, match=r"'H100-80G'; did you mean H100-80GB"):
        model_named("H100-80G")


def test_a_model_without_mig_has_no_profiles():
    with pytest.raises(HardwareError, match="T4 has no MIG"):
        MODELS["T4"].profile("1g.5gb")


@pytest.mark.parametrize(
    ("nvml_name", "slices"),
    [
        ("NVIDIA A30", 4),
        ("NVIDIA A100-PCIE-40GB", 8),
        ("NVIDIA A100 80GB PCIe", 8),
        ("NVIDIA H100 NVL", 8),
        ("NVIDIA L40S", None),
        ("NVIDIA A1000", None),
    ],
)
def test_every_board_of_a_chip_has_its_memory_slices(nvml_name, slices):
    assert memory_slices(nvml_name) == slices
