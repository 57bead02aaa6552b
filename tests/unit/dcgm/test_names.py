"""A page under dcgm-exporter's names: whose values, whose labels, and what is left out."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_text

from exporter.dcgm.names import NATIVE, AliasPage
from exporter.nvml.plan import Plan
from slicewatch.catalog import CATALOG
from slicewatch.catalog.dcgm import ALIASES, HostLabel
from slicewatch.service.exposition import Format, by_family
from slicewatch.wire.layout import Device, Layout, Tenant

MIB = 2**20
BOARD = Device(
    uuid="GPU-a", gpu=0, model="NVIDIA A100-SXM4-80GB", mig_enabled=True, minor=0,
    pci_bus_id="00000000:17:00.0",
)  # fmt: skip
WHOLE = Device(uuid="GPU-b", gpu=1, model="NVIDIA H100", minor=1, pci_bus_id="00000000:65:00.0")


def part(number, compute=0, profile="3g.40gb"):
    return Device(
        uuid=f"MIG-{number}-{compute}", gpu=0, model=BOARD.model, parent=BOARD.uuid,
        gpu_instance=number, compute_instance=compute, profile=profile,
    )  # fmt: skip


def holder(device, pod="p", **facts):
    return Tenant(device=device, namespace="ml", pod=pod, container="c", **facts)


def layout(*devices, **facts):
    return Layout(run="r", number=1, node="n", window_seconds=15, devices=devices, **facts)


def page(of, columns, form=Format.TEXT, **chosen):
    return AliasPage(of, **chosen).render(by_family(columns), form)


def series(text):
    """Return the samples of a page by name, each as its labels and its value."""
    found = {}
    for family in read_text(text):
        for sample in family.samples:
            # The parser adds it to the names of counters that lack it.
            name = sample.name.removesuffix("_total")
            found.setdefault(name, []).append((sample.labels, sample.value))
    return found


def labels_of(of, column):
    """Return the labels of each series of the memory in use."""
    text = page(of, {"gpu_memory_used_bytes": column})
    return [labels for labels, _ in series(text)["DCGM_FI_DEV_FB_USED"]]


def test_a_line_is_what_dcgm_exporter_would_write():
    of = layout(WHOLE, driver="580.95.05", tenants=(holder("GPU-b", "train-0"),))
    assert page(of, {"gpu_memory_used_bytes": [4845 * MIB]}) == (
        "# HELP DCGM_FI_DEV_FB_USED Allocated device memory in MiB, without what the driver"
        " reserves.\n"
        "# TYPE DCGM_FI_DEV_FB_USED gauge\n"
        'DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-b",pci_bus_id="00000000:65:00.0",'
        'device="nvidia1",modelName="NVIDIA H100",Hostname="n",'
        'DCGM_FI_DRIVER_VERSION="580.95.05",container="c",namespace="ml",pod="train-0"} 4845.0\n'
    )


def test_an_instance_shows_its_own_memory_its_gpus_power_and_no_utilization():
    """dcgm-exporter #216, #3 (no zeros), #512 (memory of instances is there)."""
    found = series(
        page(
            layout(BOARD, part(1), part(2), WHOLE),
            {
                "gpu_memory_used_bytes": [9 * MIB, 2 * MIB, 3 * MIB, 4 * MIB],
                "gpu_power_usage_watts": [300, None, None, 500],
                "gpu_utilization": [None, 10.0, 20.0, 70.0],
            },
        )
    )
    shown = {
        name: [(labels.get("GPU_I_ID"), value) for labels, value in some]
        for name, some in found.items()
    }
    assert shown == {
        "DCGM_FI_DEV_FB_USED": [("1", 2), ("2", 3), (None, 4)],
        "DCGM_FI_DEV_POWER_USAGE": [("1", 300), ("2", 300), (None, 500)],
        "DCGM_FI_DEV_GPU_UTIL": [(None, 70)],
    }


def test_a_name_selects_its_series_and_adds_up_over_the_labels_that_it_leaves_out():
    errors = "gpu_nvlink_errors_total"
    found = series(
        page(
            layout(WHOLE),
            {
                f'{errors}{{link="0",kind="replay"}}': [2],
                f'{errors}{{link="1",kind="replay"}}': [3],
                f'{errors}{{link="1",kind="recovery"}}': [50],
                'gpu_gpm_pipe_ratio{kind="fp16"}': [0.25],
            },
        )
    )
    assert {name: some[0][1] for name, some in found.items()} == {
        "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": 5,
        "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": 50,
        "DCGM_FI_PROF_PIPE_FP16_ACTIVE": 0.25,
    }


def test_a_label_whose_name_only_ends_alike_selects_nothing():
    columns = {'gpu_gpm_pipe_ratio{workload_kind="fp16"}': [0.25]}
    assert page(layout(WHOLE), columns) == ""


def test_what_is_not_known_has_no_series_and_a_family_without_any_no_header():
    """gpu-monitoring-tools #152, DCGM #303: neither blanks nor zeros stand in for what cannot be read."""
    columns = {
        "gpu_power_usage_watts": [None, 300],
        "gpu_temperature_celsius": [None, None],
        "gpu_sm_clock_mhz": [math.nan, math.nan],
    }
    text = page(layout(Device(uuid="GPU-c", gpu=2, model="m"), WHOLE), columns)
    assert text.count("#") == 2
    assert [labels["UUID"] for labels, _ in series(text)["DCGM_FI_DEV_POWER_USAGE"]] == ["GPU-b"]


def test_of_links_that_do_not_all_answer_those_that_do_are_added_up():
    """DCGM #149, dcgm-exporter #316: support differs from link to link."""
    columns = {
        'gpu_nvlink_errors_total{link="0",kind="replay"}': [None],
        'gpu_nvlink_errors_total{link="1",kind="replay"}': [3],
    }
    ((_, value),) = series(page(layout(WHOLE), columns))[
        "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"
    ]
    assert value == 3


def test_an_instance_that_one_container_holds_has_its_labels():
    """dcgm-exporter #577, #272: labels are not only for GPUs without MIG."""
    of = layout(BOARD, part(1), part(2), tenants=(holder("MIG-2-0", "server-0"),))
    free, held = labels_of(of, [None, MIB, MIB])
    assert held["pod"] == "server-0"
    assert (held["namespace"], held["container"]) == ("ml", "c")
    assert free.keys().isdisjoint({"pod", "namespace", "container"})


@pytest.mark.parametrize(
    "tenants",
    [
        (holder("GPU-b", "p"), holder("GPU-b", "q")),
        (holder("GPU-b", "p", replica="0"), holder("GPU-b", "p", replica="1")),
        (holder("GPU-b", "p", replica="3"),),
        (holder("GPU-b", "p", allocated=False),),
    ],
    ids=["two pods", "two replicas of one pod", "the last one of a pool", "seen only"],
)
def test_a_device_that_can_be_shared_is_shown_once_and_as_nobodys(tenants):
    """dcgm-exporter #587, #582, #474: the value of a device on every pod that shares it."""
    (labels,) = labels_of(layout(WHOLE, tenants=tenants), [MIB])
    assert "pod" not in labels


def test_who_was_only_seen_on_a_device_takes_nothing_from_its_holder():
    tenants = (holder("GPU-b", "train-0"), holder("GPU-b", "", allocated=False))
    (labels,) = labels_of(layout(WHOLE, tenants=tenants), [MIB])
    assert labels["pod"] == "train-0"


def test_an_instance_whose_compute_instances_have_several_holders_is_nobodys():
    parts = part(1, 0, "1c.3g.40gb"), part(1, 1, "1c.3g.40gb")
    both = (holder("MIG-1-0", "p"), holder("MIG-1-1", "q"))
    (labels,) = labels_of(layout(BOARD, *parts, tenants=both), [None, MIB, MIB])
    assert "pod" not in labels
    (labels,) = labels_of(layout(BOARD, *parts, tenants=both[1:]), [None, MIB, MIB])
    assert labels["pod"] == "q"


def test_devices_that_nobody_holds_are_shown():
    """dcgm-exporter #549, #569: devices without a pod vanish."""
    assert [x["UUID"] for x in labels_of(layout(BOARD, WHOLE), [MIB, MIB])] == ["GPU-a", "GPU-b"]


@pytest.mark.parametrize("host", HostLabel)
def test_the_node_is_named_by_the_label_that_was_chosen(host):
    """dcgm-exporter #655."""
    text = page(layout(WHOLE), {"gpu_power_usage_watts": [300]}, host=host)
    ((labels, _),) = series(text)["DCGM_FI_DEV_POWER_USAGE"]
    assert [labels.get(str(known)) for known in HostLabel] == [
        "n" if known is host else None for known in HostLabel
    ]


def test_static_labels_are_added_and_replace_none_of_dcgm_exporters():
    of = layout(BOARD, WHOLE, labels={"cluster": "c", "UUID": "x", "device": "x"})
    shown = labels_of(of, [MIB, MIB])
    assert [(x["cluster"], x["UUID"], x["device"]) for x in shown] == [
        ("c", "GPU-a", "nvidia0"),
        ("c", "GPU-b", "nvidia1"),
    ]


@given(st.text(min_size=1), st.text(min_size=1), st.sampled_from(Format))
def test_labels_come_back_whatever_they_hold(node, static, form):
    """dcgm-exporter writes values as they are: a quote in one breaks the whole page."""
    of = Layout(
        run="r", number=1, node=node, window_seconds=15, devices=(WHOLE,), labels={"s": static}
    )
    text = page(of, {"gpu_power_usage_watts": [300]}, form)
    (family,) = read_text(text) if form is Format.TEXT else read_open(f"{text}# EOF\n")
    assert family.samples[0].labels.items() >= {"Hostname": node, "s": static}.items()


def everything():
    """Return a column of ones for each series that an alias selects, over two devices."""
    return {
        alias.metric
        + ("{" + ",".join(f'{n}="{v}"' for n, v in alias.where.items()) + "}")
        * bool(alias.where): [1, 1]
        for alias in ALIASES
    }


def test_in_text_each_name_has_the_type_that_dcgm_exporter_gives_it():
    text = page(layout(BOARD, WHOLE), everything())
    types = [line.split()[2:] for line in text.splitlines() if line.startswith("# TYPE ")]
    assert types == [[alias.name, str(alias.kind)] for alias in ALIASES]
    assert len(series(text)) == len(ALIASES)


def test_in_open_metrics_a_counter_without_its_suffix_is_of_no_known_type():
    text = page(layout(BOARD, WHOLE), everything(), Format.OPEN_METRICS)
    kinds = {family.name: family.type for family in read_open(f"{text}# EOF\n")}
    assert kinds == {
        alias.name: "unknown" if alias.kind == "counter" else str(alias.kind) for alias in ALIASES
    }


def test_whatever_answers_a_name_is_read_for_it():
    """dcgm-exporter #571, #608: profiling values that are missing without a word."""
    assert {metric.name for metric in NATIVE} == {alias.metric for alias in ALIASES}
    assert {alias.metric for alias in ALIASES} <= Plan.of(NATIVE).metrics
    wide = {metric for metric in NATIVE if metric.origin.optional}
    assert wide
    assert {m.name for m in wide}.isdisjoint(Plan.of(CATALOG.metrics[:1]).metrics)
