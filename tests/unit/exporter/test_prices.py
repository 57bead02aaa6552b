"""Prices of devices: the first pattern counts, slices add up, what is not known is absent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.measure.prices import Prices, check
from slicewatch.hardware import MODELS
from slicewatch.hardware.prices import DOLLARS_PER_HOUR
from slicewatch.wire.layout import Device

A100 = MODELS["A100-80GB"]
NAME = "gpu_price_dollars_per_hour"


def whole(model=A100.nvml_name, uuid="GPU-a"):
    return Device(uuid=uuid, gpu=0, model=model)


def part(number, size, *, start=0, compute=0, sms=14, model=A100.nvml_name):
    return Device(
        uuid=f"MIG-{number}-{compute}", gpu=0, model=model, parent="GPU-a", gpu_instance=number,
        compute_instance=compute, placement_start=start, placement_size=size, sm_count=sms,
    )  # fmt: skip


def prices(devices, dollars=DOLLARS_PER_HOUR):
    return Prices(dollars).columns(tuple(devices))[NAME]


def test_a_gpu_costs_what_its_model_costs():
    found = prices([whole(), whole("NVIDIA H200"), whole("NVIDIA GeForce RTX 4090"), whole("T4")])
    assert found == [3.5, 6.0, 0.8, None]


def test_the_first_pattern_that_fits_counts_in_any_case():
    assert prices([whole()], {"nvidia a100*": 2.0, "*": 1.0}) == [2.0]
    assert prices([whole("Tesla T4")], {"nvidia a100*": 2.0, "*": 1.0}) == [1.0]


def test_our_own_name_of_a_model_fits_as_well():
    assert prices([whole(), whole("Tesla T4")], {"A100-80GB": 2.0, "t4": 0.5}) == [2.0, 0.5]


@pytest.mark.parametrize(
    "model",
    [
        "NVIDIA GH200 480GB",
        "NVIDIA H100-80C",
        "NVIDIA H200-141C",
        "NVIDIA L40S-12Q",
        "GRID A100D-80C",
        "NVIDIA A100-SXM4-40GB",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
    ],
)
def test_what_only_has_the_name_of_a_model_in_its_own_has_no_price_by_default(model):
    assert prices([whole(model)]) == [None]


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("NVIDIA A100 80GB PCIe", 3.5),
        ("A100-SXM4-80GB", 3.5),
        ("NVIDIA H100 PCIe", 4.5),
        ("NVIDIA H100 NVL", 4.5),
        ("NVIDIA H200 NVL", 6.0),
    ],
)
def test_all_boards_of_a_model_have_its_price_and_their_mig_devices_a_part(model, price):
    assert prices([whole(model), part(1, 4, model=model)]) == [price, price / 2]


def test_a_mig_device_costs_its_memory_slices():
    assert prices([whole(), part(1, 4), part(2, 1, start=4)]) == [3.5, 1.75, 0.4375]
    assert prices([part(1, 1, model="NVIDIA A30")], {"*": 1.0}) == [0.25]


def test_compute_instances_share_their_instance_by_sms():
    found = prices([part(1, 4, compute=0, sms=14), part(1, 4, compute=1, sms=28)])
    assert found == pytest.approx([1.75 / 3, 2 * 1.75 / 3])


def test_where_a_share_is_not_known_there_is_no_price():
    assert prices([part(1, 4, model="NVIDIA Z900 80GB")], {"*": 2.0}) == [None]
    assert prices([part(1, 4, compute=0, sms=None), part(1, 4, compute=1)]) == [None, None]


def test_without_prices_there_is_no_column():
    assert Prices({}).columns((whole(),)) == {}


def test_columns_are_made_once_per_layout():
    known, devices = Prices(DOLLARS_PER_HOUR), (whole(),)
    assert known.columns(devices)[NAME] is known.columns(devices)[NAME]
    assert len(known.columns((whole(), whole(uuid="GPU-b")))[NAME]) == 2


@given(st.data())
def test_the_parts_of_a_gpu_never_cost_more_than_the_gpu(data):
    free, devices = set(range(A100.memory_slices)), []
    for number in range(7):
        profile = data.draw(st.sampled_from(A100.mig_profiles))
        fitting = [
            place
            for place in profile.placements
            if set(range(place.start, place.start + place.size)) <= free
        ]
        if fitting:
            place = data.draw(st.sampled_from(fitting))
            free -= set(range(place.start, place.start + place.size))
            devices.append(part(number, place.size, start=place.start))
    assert sum(prices(devices)) <= 3.5 + 1e-9


@pytest.mark.parametrize("price", [-1.0, float("nan"), float("inf"), 3500.0])
def test_what_is_no_price_of_an_hour_is_refused(price):
    with pytest.raises(ValueError, match=r"'\*A100\*': .* is no price of an hour, from 0 to 1000"):
        check({"*A100*": price})


@pytest.mark.parametrize("name", ["H100", "4090", ""])
def test_a_name_that_fits_no_model_is_refused(name):
    with pytest.raises(ValueError, match=r"is the name of no model; write '\*"):
        check({name: 1.0})


@pytest.mark.parametrize("name", ["L40S", "t4", "*", "*H100*", "NVIDIA L40", "A100-80GB"])
def test_names_and_patterns_of_models_are_taken(name):
    check({name: 0})
