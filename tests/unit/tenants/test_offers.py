"""As how many devices each device is offered."""

import pytest

from exporter.tenants.offers import Offers
from exporter.tenants.protocol import Offer
from slicewatch.wire.layout import Device

GPU = Device(uuid="GPU-a", gpu=0, model="L40S", minor=0)
OTHER = Device(uuid="GPU-b", gpu=1, model="L40S", minor=1)
MIG = Device(uuid="MIG-1", gpu=1, model="A100", parent="GPU-b", profile="1g.5gb")


def offers(*ids, resource="nvidia.com/gpu"):
    return [Offer(resource, device_id) for device_id in ids]


def test_the_replicas_of_a_shared_gpu_are_counted():
    known = Offers()
    known.take(offers("GPU-a::0", "GPU-a::1", "GPU-a::2", "GPU-a::3", "GPU-b"))
    assert known.replicas((GPU, OTHER)) == {"GPU-a": 4, "GPU-b": 1}


def test_a_mig_device_is_offered_and_its_gpu_is_not():
    known = Offers()
    known.take(offers("MIG-1", resource="nvidia.com/mig-1g.5gb"))
    assert known.replicas((OTHER, MIG)) == {"MIG-1": 1}


@pytest.mark.parametrize(
    "offer", [Offer("intel.com/sriov", "GPU-a"), Offer("nvidia.com/gpu", "?")]
)
def test_what_is_no_device_of_ours_is_not_counted(offer):
    known = Offers()
    known.take([offer])
    assert known.replicas((GPU,)) == {}


def test_before_the_first_answer_nothing_is_known_of_any_device():
    assert Offers().replicas((GPU,)) == {}


def test_an_answer_replaces_the_one_before_and_devices_may_change():
    known = Offers()
    known.take(offers("GPU-a::0", "GPU-a::1"))
    assert known.replicas((GPU,)) == {"GPU-a": 2}
    known.take(offers("GPU-a"))
    assert known.replicas((GPU,)) == {"GPU-a": 1}
    assert known.replicas((OTHER,)) == {}
