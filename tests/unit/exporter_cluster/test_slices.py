"""What the ResourceSlices of a node say about its devices."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.cluster.slices import SliceFeed, published
from exporter.tenants.device_ids import PoolDevice, Published
from exporter.tenants.protocol import Versioned
from slicewatch.kube.objects import RESOURCE_SLICE

GPU = {"name": "gpu-0", "attributes": {"uuid": {"string": "GPU-a"}, "type": {"string": "gpu"}}}
DYNAMIC = {
    "name": "gpu-0-mig-1g10gb-19-4",
    "attributes": {"parentUUID": {"string": "GPU-a"}, "profile": {"string": "1g.10gb"}},
}


def part(name, *devices, pool="node-1", generation=1, driver="gpu.nvidia.com"):
    """Return a slice as it is read from the API server's JSON."""
    body = {
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "nodeName": "node-1",
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": 1},
            "devices": list(devices),
        },
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=RESOURCE_SLICE.type)


def named(*names):
    return [{"name": name, "attributes": {"uuid": {"string": name}}} for name in names]


def test_a_device_is_described_by_the_attributes_that_it_has():
    assert published([part("s", GPU, DYNAMIC)]) == {
        PoolDevice("node-1", "gpu-0"): Published(uuid="GPU-a"),
        PoolDevice("node-1", "gpu-0-mig-1g10gb-19-4"): Published(
            parent="GPU-a", profile="1g.10gb"
        ),
    }


@pytest.mark.parametrize(
    ("attributes", "uuid"),
    [
        ({"gpu.nvidia.com/uuid": {"string": "GPU-a"}}, "GPU-a"),
        ({"other.example/uuid": {"string": "GPU-a"}}, ""),
        ({"uuid": {"int": 7}}, ""),
        ({}, ""),
    ],
)
def test_an_attribute_is_the_drivers_own_text_or_unknown(attributes, uuid):
    (found,) = published([part("s", {"name": "gpu-0", "attributes": attributes})]).values()

    assert found.uuid == uuid


def test_a_pool_is_made_of_all_slices_of_its_newest_generation():
    found = published(
        [
            part("old", *named("gone", "gpu-0"), generation=1),
            part("first", *named("gpu-0"), generation=2),
            part("second", *named("gpu-1"), generation=2),
            part("elsewhere", *named("gpu-9"), pool="other", generation=1),
        ]
    )

    assert {name.name for name in found} == {"gpu-0", "gpu-1", "gpu-9"}


def test_slices_of_other_drivers_are_none_of_ours():
    assert published([part("s", GPU, driver="gpu.example.com")]) == {}


def test_a_slice_without_devices_is_read():
    body = b'{"metadata":{"name":"s"},"spec":{"driver":"d","pool":{"name":"p","generation":1}}}'

    assert msgspec.json.decode(body, type=RESOURCE_SLICE.type).spec.devices == ()


def test_a_device_that_is_removed_from_its_slice_is_gone():
    """The second of the removals is of the slice itself."""
    known = Versioned()
    feed = SliceFeed(known)
    both, one = part("s", GPU, DYNAMIC), part("s", GPU, generation=2)
    feed.changed(None, both)
    assert len(known.current) == 2

    feed.changed(both, one)
    assert set(known.current) == {PoolDevice("node-1", "gpu-0")}

    feed.changed(one, None)
    assert known.current == {}
    assert known.version == 3


def test_a_slice_that_says_the_same_again_is_no_new_version():
    known = Versioned()
    feed = SliceFeed(known)
    feed.changed(None, part("s", GPU))

    feed.changed(part("s", GPU), part("s", GPU, generation=2))

    assert known.version == 1


slices = st.lists(
    st.builds(
        part,
        st.uuids().map(str),
        pool=st.sampled_from(["p", "q"]),
        generation=st.integers(min_value=0, max_value=3),
    ),
    max_size=6,
)


@given(slices, st.data())
def test_neither_order_nor_way_of_arrival_matter(given_slices, data):
    filled = [part(s.metadata.name, *named(f"gpu-{n}"), pool=s.spec.pool.name,
                   generation=s.spec.pool.generation) for n, s in enumerate(given_slices)]  # fmt: skip
    known = Versioned()
    feed = SliceFeed(known)
    for one in data.draw(st.permutations(filled)):
        feed.changed(None, one)

    assert known.current == published(filled)
    newest = {p: max(s.spec.pool.generation for s in filled if s.spec.pool.name == p)
              for p in {s.spec.pool.name for s in filled}}  # fmt: skip
    kept = sum(s.spec.pool.generation == newest[s.spec.pool.name] for s in filled)
    assert len(known.current) == kept
