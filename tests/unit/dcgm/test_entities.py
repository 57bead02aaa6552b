"""Rows and labels as dcgm-exporter has them, held against its recorded pages."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.dcgm.entities import Entity, entities, labels
from slicewatch.catalog.dcgm import ALIASES, HostLabel
from slicewatch.wire.layout import Device

GPU = Device(
    uuid="GPU-a",
    gpu=0,
    model="NVIDIA A100",
    minor=0,
    pci_bus_id="00000000:65:00.0",
    mig_enabled=True,
)
OTHER = Device(uuid="GPU-b", gpu=1, model="NVIDIA A100", minor=1)
BY_NAME = {alias.name: alias for alias in ALIASES}
FB_USED, POWER, GPU_UTIL = (
    BY_NAME[f"DCGM_FI_DEV_{name}"] for name in ("FB_USED", "POWER_USAGE", "GPU_UTIL")
)


def mig(number, compute=0, parent="GPU-a", profile="1g.5gb"):
    return Device(
        uuid=f"MIG-{parent}-{number}-{compute}", gpu=0, model="NVIDIA A100", parent=parent,
        gpu_instance=number, compute_instance=compute, profile=profile,
    )  # fmt: skip


def test_a_partitioned_gpu_is_shown_as_its_instances_and_any_other_as_itself():
    assert list(entities([GPU, mig(1), mig(2), OTHER])) == [
        Entity(gpu=0, own=1),
        Entity(gpu=0, own=2),
        Entity(gpu=3, own=3),
    ]


def test_a_gpu_in_mig_mode_without_instances_is_shown_as_itself():
    assert list(entities([GPU])) == [Entity(gpu=0, own=0)]


def test_compute_instances_of_one_gpu_instance_are_one_row():
    found = list(entities([GPU, mig(1), mig(1, compute=1), mig(2)]))
    assert found == [Entity(gpu=0, own=1), Entity(gpu=0, own=3)]


def test_an_instance_shows_its_own_memory_its_gpus_power_and_no_utilization():
    """dcgm-exporter #216, #3: what has no value for an instance must not be zero."""
    (instance,) = entities([GPU, mig(1)])
    assert [instance.row(alias) for alias in (FB_USED, POWER, GPU_UTIL)] == [1, 0, None]


def test_a_whole_gpu_shows_all_of_its_own():
    (whole,) = entities([OTHER])
    assert [whole.row(alias) for alias in (FB_USED, POWER, GPU_UTIL)] == [0, 0, 0]


@given(
    st.lists(
        st.one_of(
            st.sampled_from([GPU, OTHER]),
            st.builds(
                mig,
                st.integers(0, 3),
                st.integers(0, 2),
                st.sampled_from(["GPU-a", "GPU-b", "GPU-c"]),
            ),
        ),
        unique_by=lambda device: device.uuid,
    )
)
def test_no_two_rows_have_the_same_labels(devices):
    """Prometheus refuses a page with the same series twice."""
    shown = [
        tuple(labels(devices[e.gpu], devices[e.own], node="n", driver="1").items())
        for e in entities(devices)
    ]
    assert len(set(shown)) == len(shown)


def _recorded_labels(text, metric):
    line = next(line for line in text.splitlines() if line.startswith(metric))
    return dict(re.findall(r'(\w+)="([^"]*)"', line))


def test_labels_and_their_order_are_those_of_4_1(recorded):
    theirs = _recorded_labels(recorded("4.1-h100-80gb"), "DCGM_FI_PROF_GR_ENGINE_ACTIVE")
    board = Device(
        uuid=theirs["UUID"],
        gpu=0,
        model="NVIDIA H100 80GB HBM3",
        minor=0,
        pci_bus_id="00000000:1A:00.0",
    )
    instance = mig(7, parent=board.uuid, profile="1g.10gb")
    ours = labels(board, instance, node="node-a", driver="535.129.03")
    assert list(ours.items()) == list(theirs.items())[: len(ours)]
    assert len(theirs) - len(ours) == len({"container", "namespace", "pod"})


def test_the_host_label_can_have_the_spelling_of_4_8(recorded):
    """dcgm-exporter #655."""
    theirs = _recorded_labels(recorded("4.8-a30-no-profiling"), "DCGM_FI_DEV_MEM_COPY_UTIL")
    board = Device(
        uuid=theirs["UUID"],
        gpu=1,
        model=theirs["modelName"],
        minor=1,
        pci_bus_id="00000000:B1:00.0",
    )
    ours = labels(board, board, node="node-a", driver="", host=HostLabel.LOWER_CASE)
    assert list(ours.items()) == list(theirs.items())


@pytest.mark.parametrize(("profile", "shown"), [("1c.3g.20gb", "3g.20gb"), ("1g.5gb", "1g.5gb")])
def test_the_profile_is_that_of_the_gpu_instance(profile, shown):
    assert labels(GPU, mig(1, profile=profile), node="n", driver="")["GPU_I_PROFILE"] == shown


def test_what_is_not_known_of_a_device_is_no_label():
    """gpu-monitoring-tools #193: no literal NULL in the profile."""
    bare = Device(uuid="GPU-b", gpu=1, model="")
    shown = labels(bare, mig(1, profile="", parent="GPU-b"), node="n", driver="")
    assert shown == {"gpu": "1", "UUID": "GPU-b", "GPU_I_ID": "1", "Hostname": "n"}
