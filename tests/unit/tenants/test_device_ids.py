import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.tenants.device_ids import (
    DRA_DRIVER,
    DeviceIds,
    Match,
    PoolDevice,
    Published,
    concerns_gpus,
)
from slicewatch.wire.layout import Device

GPU = "nvidia.com/gpu"

WHOLE = Device(uuid="GPU-a", gpu=0, minor=2, model="H100")
PARTED = Device(uuid="GPU-b", gpu=1, minor=0, model="H100", mig_enabled=True)
SMALL = Device(
    uuid="MIG-1", gpu=1, parent="GPU-b", model="H100", gpu_instance=3, compute_instance=0,
    profile="1g.10gb", placement_start=4, placement_size=1,
)  # fmt: skip
MEDIA = Device(
    uuid="MIG-2", gpu=1, parent="GPU-b", model="H100", gpu_instance=9, compute_instance=0,
    profile="1g.10gb+me", placement_start=6, placement_size=2,
)  # fmt: skip
HALF = Device(
    uuid="MIG-3", gpu=1, parent="GPU-b", model="H100", gpu_instance=1, compute_instance=0,
    profile="1c.2g.20gb", placement_start=0, placement_size=2,
)  # fmt: skip
OTHER_HALF = Device(
    uuid="MIG-4", gpu=1, parent="GPU-b", model="H100", gpu_instance=1, compute_instance=1,
    profile="1c.2g.20gb", placement_start=0, placement_size=2,
)  # fmt: skip
NODE = (WHOLE, PARTED, SMALL, MEDIA, HALF, OTHER_HALF)


@pytest.mark.parametrize(
    ("resource", "device_id", "device", "replica"),
    [
        (GPU, "GPU-a", WHOLE, ""),
        (GPU, "GPU-a::0", WHOLE, "0"),
        ("nvidia.com/gpu.shared", "GPU-a::11", WHOLE, "11"),
        ("nvidia.com/mig-1g.10gb", "MIG-1", SMALL, ""),
        ("nvidia.com/mig-1g.10gb.shared", "MIG-1::3", SMALL, "3"),
        ("nvidia.com/mig-1g.10gb", "MIG-GPU-b/3/0", SMALL, ""),
        ("nvidia.com/mig-1g.10gb", "MIG-GPU-b/3/0::1", SMALL, "1"),
        ("nvidia.com/mig-1c.2g.20gb", "MIG-GPU-b/1/1", OTHER_HALF, ""),
        (GPU, "nvidia2", WHOLE, ""),
        (GPU, "nvidia0", PARTED, ""),
        (GPU, "nvidia2/vgpu3", WHOLE, "3"),
        (GPU, "nvidia0/gi3", SMALL, ""),
        (GPU, "nvidia0/gi3/vgpu0", SMALL, "0"),
        (GPU, "nvidia0/gi1", HALF, ""),
        (GPU, "0", WHOLE, ""),
        (GPU, "1", PARTED, ""),
        ("nvidia.com/gpu.shared", "0::7", WHOLE, "7"),
        (DRA_DRIVER, "gpu-2", WHOLE, ""),
        (DRA_DRIVER, "gpu-0-mig-1g10gb-19-4", SMALL, ""),
        (DRA_DRIVER, "gpu-0-mig-1g10gb-me-20-6", MEDIA, ""),
        (DRA_DRIVER, "gpu-0-mig-19-4-1", SMALL, ""),
    ],
)
def test_an_id_of_each_plugin_finds_its_device(resource, device_id, device, replica):
    """dcgm-exporter #349, #411, #477 and #188: no setting says which form the ids have."""
    assert DeviceIds(NODE).find(resource, device_id) == Match(device=device, replica=replica)


@pytest.mark.parametrize(
    ("resource", "device_id"),
    [
        pytest.param(GPU, "GPU-c", id="a GPU that is not here"),
        pytest.param(GPU, "GPU", id="the beginning of a uuid"),
        pytest.param(GPU, "gpu-a", id="a uuid in other letters"),
        pytest.param(GPU, "GPU-a::", id="a replica without a number"),
        pytest.param(GPU, "GPU-a::1::2", id="a replica of a replica"),
        pytest.param(GPU, "GPU-a-3", id="a split of HAMi, which does not name the device"),
        pytest.param(GPU, "nvidia7", id="a minor number that is not here"),
        pytest.param(GPU, "nvidia0/gi8", id="a GPU instance that is not here"),
        pytest.param(GPU, "nvidia2/gi3", id="a GPU instance of another GPU"),
        pytest.param(GPU, "MIG-GPU-a/3/0", id="an instance under another GPU"),
        pytest.param(GPU, "2", id="an index that is only a minor number"),
        pytest.param(GPU, "00", id="an index in other digits"),
        pytest.param(GPU, "", id="nothing"),
        pytest.param(GPU, "gpu-2", id="a claimed device's name from a plugin"),
        pytest.param("nvidia.com/GA102GL_A10", "1", id="an IOMMU group"),
        pytest.param("nvidia.com/hostdev", "0000:3b:00.0", id="a network card"),
        pytest.param("amd.com/gpu", "GPU-a", id="another vendor"),
        pytest.param("nvidia.community/gpu", "GPU-a", id="another domain"),
        pytest.param(DRA_DRIVER, "GPU-a", id="a plugin's id in a claim"),
        pytest.param(DRA_DRIVER, "gpu-0-mig-1g10gb-19-5", id="another placement"),
        pytest.param(DRA_DRIVER, "gpu-0-mig-1g20gb-15-4", id="another profile there"),
        pytest.param(DRA_DRIVER, "gpu-0-mig-2g20gb-14-0", id="an instance that was cut in two"),
        pytest.param(DRA_DRIVER, "gpu-0-mig-14-0-2", id="the same under its older name"),
    ],
)
def test_an_id_that_names_no_device_is_not_guessed(resource, device_id):
    assert DeviceIds(NODE).find(resource, device_id) is None


@pytest.mark.parametrize(
    ("name", "published", "device"),
    [
        pytest.param("gpu-2", Published(uuid="GPU-b"), PARTED, id="another GPU than by its name"),
        pytest.param("gpu-7", Published(uuid="GPU-a"), WHOLE, id="a name that says nothing here"),
        pytest.param("static", Published(uuid="MIG-2", parent="GPU-b"), MEDIA, id="static MIG"),
        pytest.param(
            "gpu-7-mig-1g10gb-19-4", Published(parent="GPU-b", profile="1g.10gb"), SMALL,
            id="dynamic MIG",
        ),
        pytest.param(
            "gpu-7-mig-1g10gb-me-20-6", Published(parent="GPU-b", profile="1g.10gb+me"), MEDIA,
            id="dynamic MIG with media engines",
        ),
        pytest.param("gpu-2", Published(), WHOLE, id="by its name where no attribute helps"),
        pytest.param("gpu-2", Published(uuid="GPU-gone"), None, id="a GPU that is not here"),
        pytest.param(
            "gpu-0-mig-1g10gb-19-4", Published(parent="GPU-a", profile="1g.10gb"), None,
            id="another parent",
        ),
        pytest.param(
            "gpu-0-mig-1g10gb-19-4", Published(parent="GPU-b", profile="2g.20gb"), None,
            id="another profile",
        ),
        pytest.param(
            "gpu-0-mig-1g10gb-19-5", Published(parent="GPU-b", profile="1g.10gb"), None,
            id="a place without a device",
        ),
        pytest.param("odd", Published(parent="GPU-b", profile="1g.10gb"), None, id="no place"),
    ],
)  # fmt: skip
def test_what_a_pool_has_published_counts_more_than_a_name(name, published, device):
    """dcgm-exporter #714: a dynamic MIG device has a parent and a profile, but no uuid."""
    ids = DeviceIds(NODE, {PoolDevice("node-1", name): published})
    expected = None if device is None else Match(device=device)

    assert ids.find(DRA_DRIVER, name, "node-1") == expected


def test_the_same_name_in_another_pool_is_another_device():
    ids = DeviceIds(NODE, {PoolDevice("node-1", "gpu-2"): Published(uuid="GPU-b")})

    assert ids.find(DRA_DRIVER, "gpu-2", "node-1") == Match(device=PARTED)
    assert ids.find(DRA_DRIVER, "gpu-2", "node-2") == Match(device=WHOLE)


def test_a_dynamic_device_that_was_cut_in_two_is_neither_half():
    published = Published(parent="GPU-b", profile="1c.2g.20gb")
    ids = DeviceIds(NODE, {PoolDevice("n", "gpu-0-mig-2g20gb-14-0"): published})

    assert ids.find(DRA_DRIVER, "gpu-0-mig-2g20gb-14-0", "n") is None


def test_a_name_that_two_devices_share_belongs_to_neither():
    lost = Device(uuid="GPU-lost", gpu=0, minor=0, model="H100")
    successor = Device(uuid="GPU-new", gpu=0, minor=1, model="H100")
    ids = DeviceIds((lost, successor))

    assert ids.find(GPU, "0") is None
    assert ids.find(GPU, "nvidia1") == Match(device=successor)
    assert ids.find(GPU, "GPU-lost") == Match(device=lost)


def test_a_device_without_a_minor_number_is_found_by_its_uuid_alone():
    blind = Device(uuid="GPU-a", gpu=0, model="H100")

    assert DeviceIds((blind,)).find(GPU, "GPU-a") == Match(device=blind)
    assert DeviceIds((blind,)).find(GPU, "nvidiaNone") is None
    assert DeviceIds((blind,)).find(DRA_DRIVER, "gpu-None") is None


def test_the_minor_number_and_not_the_index_names_a_device_file():
    assert DeviceIds(NODE).find(GPU, "nvidia1") is None


@pytest.mark.parametrize(
    ("resource", "concerned"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/mig-3g.40gb.shared", True),
        ("gpu.nvidia.com", True),
        ("compute-domain.nvidia.com", False),
        ("nvidia.community/gpu", False),
        ("intel.com/sriov", False),
        ("", False),
    ],
)
def test_only_resources_of_nvidia_concern_gpus(resource, concerned):
    assert concerns_gpus(resource) is concerned


uuids = st.uuids().map(str)


@given(st.lists(uuids, unique=True, min_size=1, max_size=8), st.data())
def test_every_whole_gpu_is_found_by_each_of_its_names(found, data):
    minors = data.draw(st.permutations(range(len(found))))
    node = tuple(
        Device(uuid=f"GPU-{uuid}", gpu=index, minor=minors[index], model="H100")
        for index, uuid in enumerate(found)
    )
    ids = DeviceIds(node)
    replica = str(data.draw(st.integers(min_value=0, max_value=99)))

    for device in node:
        for name in (device.uuid, f"nvidia{device.minor}", str(device.gpu)):
            assert ids.find(GPU, name) == Match(device=device)
            assert ids.find(GPU, f"{name}::{replica}") == Match(device=device, replica=replica)
            assert ids.find(GPU, f"{name}/vgpu{replica}") == Match(device=device, replica=replica)


additions = st.text(alphabet=string.ascii_letters + string.digits + "-:/.@", min_size=1)


@given(st.sampled_from(["GPU-a", "MIG-GPU-b/3/0", "nvidia2", "nvidia0/gi3"]), additions)
def test_a_name_with_anything_but_a_replica_added_is_no_name(name, addition):
    ids = DeviceIds(NODE)
    extended = ids.find(GPU, name + addition)

    assert ids.find(GPU, addition + name) is None
    assert (extended is not None) == (re.fullmatch(r"(::|/vgpu)\d+", addition) is not None)
