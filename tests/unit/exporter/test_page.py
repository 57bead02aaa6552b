"""The page of /metrics: golden text of a small layout, and what may never stand on it."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_text

from exporter.families import chosen
from exporter.page import columns_of, page_of
from slicewatch.catalog import CATALOG
from slicewatch.service.exposition import Format, by_family
from slicewatch.wire.layout import Device, Layout, Tenant
from slicewatch.wire.snapshot import Snapshot

GOLDEN = Path(__file__).parents[2] / "golden" / "exporter"
FILES = {Format.TEXT: "page.txt", Format.OPEN_METRICS: "page.openmetrics.txt"}

WHOLE = Device(
    uuid="GPU-aaaa", gpu=0, model="NVIDIA A100-SXM4-80GB", mig_enabled=True, minor=0,
    pci_bus_id="00000000:17:00.0", serial="1320220012345", board="900-21001", vbios="92.00.45",
)  # fmt: skip
PART = Device(
    uuid="MIG-bbbb", gpu=0, model="NVIDIA A100-SXM4-80GB", parent="GPU-aaaa", gpu_instance=1,
    compute_instance=0, profile="3g.40gb", placement_start=4, placement_size=4, sm_count=42,
)  # fmt: skip
PLAIN = Device(uuid="GPU-cccc", gpu=1, model="Tesla T4", pci_bus_id="00000000:65:00.0")
UNKNOWN = Device(uuid="", gpu=2, model="")
LAYOUT = Layout(
    run="r", number=3, node="node-1", driver="580.95.05", window_seconds=15,
    labels={"cluster": "production", "note": 'a "quoted" \\ and\nbroken'},
    devices=(WHOLE, PART, PLAIN, UNKNOWN),
    tenants=(
        Tenant(device="MIG-bbbb", namespace="research", pod="train-0", container="main",
               resource="nvidia.com/mig-3g.40gb"),
        Tenant(device="GPU-cccc", namespace="vision", pod="detect-0", container="server",
               resource="nvidia.com/gpu.shared", replica="3"),
        Tenant(device="GPU-gone", namespace="vision", pod="detect-1", container="server"),
    ),
    support={"gpu_utilization": ("mig_enabled", "mig_instance", None, None)},
)  # fmt: skip
SNAPSHOT = Snapshot(
    run="r", layout=3, sequence=7, up=[True, True, True, False], ages=[0.1, 0.1, 0.2, None],
    values={
        "gpu_utilization": [None, None, 62.5, None],
        "gpu_busy_seconds_total": [None, None, 1234.5, None],
        "gpu_sm_clock_mhz": [1410, None, 585, None],
        "gpu_mem_clock_mhz": [1593, None, 5000, None],
        "gpu_memory_used_bytes": [21474836480, 21474836480, 0, None],
        "gpu_memory_total_bytes": [85899345920, 42949672960, 16106127360, None],
        "gpu_memory_utilization": [25.0, 50.0, 0.0, None],
        "gpu_power_usage_watts": [311.25, None, 27.5, None],
        "gpu_energy_joules_total": [98765.432, None, 1e-05, None],
        "gpu_temperature_celsius": [51, None, -3, None],
    },
)  # fmt: skip


def rendered(form, metrics=CATALOG.metrics, layout=LAYOUT):
    return page_of(layout, metrics).render(by_family(columns_of(SNAPSHOT, 0.0)), form)


def parsed(form, text):
    families = read_open(text + "# EOF\n") if form is Format.OPEN_METRICS else read_text(text)
    return [sample for family in families for sample in family.samples]


@pytest.mark.parametrize("form", Format, ids=lambda form: form.name)
def test_the_page_is_the_golden_one(form, golden):
    """A difference is a change of the contract with everyone who scrapes."""
    golden(GOLDEN / FILES[form], rendered(form))


@pytest.mark.parametrize("form", Format, ids=lambda form: form.name)
def test_a_parser_reads_back_what_the_snapshot_says(form):
    samples = parsed(form, rendered(form))
    for name, column in SNAPSHOT.values.items():
        found = {s.labels.get("uuid", ""): s.value for s in samples if s.name == name}
        known = zip(LAYOUT.devices, column, strict=True)
        assert found == {d.uuid: value for d, value in known if value is not None}


@pytest.mark.parametrize("form", Format, ids=lambda form: form.name)
def test_no_series_comes_twice(form):
    samples = parsed(form, rendered(form))
    keys = [(s.name, tuple(sorted(s.labels.items()))) for s in samples]
    assert len(keys) == len(set(keys))


def test_static_labels_come_back_whatever_characters_they_hold():
    for sample in parsed(Format.TEXT, rendered(Format.TEXT)):
        assert sample.labels["note"] == 'a "quoted" \\ and\nbroken'
        assert sample.labels["cluster"] == "production"


def test_every_gpu_is_up_or_down_and_a_mig_device_is_neither():
    samples = parsed(Format.TEXT, rendered(Format.TEXT))
    up = {s.labels["gpu"]: s.value for s in samples if s.name == "gpu_up"}
    assert up == {"0": 1, "1": 1, "2": 0}


def test_a_device_value_is_not_multiplied_over_its_tenants():
    samples = parsed(Format.TEXT, rendered(Format.TEXT))
    used = [s for s in samples if s.name == "gpu_memory_used_bytes"]
    assert len(used) == 3
    assert not any("pod" in s.labels for s in used)
    tenants = [s for s in samples if s.name == "gpu_tenant_info"]
    assert {(s.labels["uuid"], s.labels["pod"]) for s in tenants} == {
        ("MIG-bbbb", "train-0"), ("GPU-cccc", "detect-0"),
    }  # fmt: skip


@given(st.text() | st.just("clocks_event_reasons_counters.sync_boost [us]"))
def test_the_driver_names_no_family(text):
    """nvidia_gpu_exporter #316, #339, #389: a field of a new driver was no valid name, and fatal."""
    odd = msgspec.structs.replace(WHOLE, model=text, serial=text, board=text, vbios=text)
    part = msgspec.structs.replace(PART, model=text, profile=text)
    layout = msgspec.structs.replace(LAYOUT, driver=text, devices=(odd, part, PLAIN, UNKNOWN))
    for form in Format:
        names = {s.name for s in parsed(form, rendered(form))}
        assert {s.name for s in parsed(form, rendered(form, layout=layout))} == names


def test_a_device_has_the_same_series_whoever_holds_it():
    """dcgm-exporter #428: each pod that came or went ended a series and began another."""

    def series(layout):
        samples = parsed(Format.TEXT, rendered(Format.TEXT, layout=layout))
        return {
            (s.name, *sorted(s.labels.items())) for s in samples if s.name != "gpu_tenant_info"
        }

    alone = msgspec.structs.replace(LAYOUT, tenants=())
    assert series(alone) == series(LAYOUT) != set()


def test_families_that_were_not_chosen_are_missing_and_the_core_is_not():
    metrics = chosen(CATALOG.metrics, ("gpu_temperature_celsius",))
    names = {s.name for s in parsed(Format.TEXT, rendered(Format.TEXT, metrics))}
    assert names == {
        "gpu_temperature_celsius", "gpu_up", "gpu_info", "gpu_mig_info", "gpu_metric_supported",
        "gpu_tenant_info", "gpu_reading_age_seconds",
    }  # fmt: skip


def test_a_page_without_devices_is_empty():
    layout = Layout(run="r", number=1, node="n", window_seconds=15, devices=())
    snapshot = Snapshot(run="r", layout=1, sequence=1, up=[], ages=[], values={})
    page = page_of(layout, CATALOG.metrics)
    assert page.render(by_family(columns_of(snapshot, 0.0)), Format.TEXT) == ""
