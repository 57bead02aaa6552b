"""dcgm-exporter's names: its meaning, its units, and reasons for what has no answer."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

import pytest

from adapter.aliases import unanswered
from adapter.query import SERVED
from slicewatch.catalog.dcgm import ALIASES, UNANSWERED, Alias
from slicewatch.catalog.model import Kind
from slicewatch.wire.layout import Device, Tenant
from slicewatch.wire.snapshot import Column, Snapshot
from testbed import fleet
from testbed.front_proxy import ROOT, Asker

PODS = f"{ROOT}/namespaces/ml/pods"
MIB = 2.0**20


def arrive(
    ask: Asker,
    devices: Sequence[Device],
    tenants: Sequence[Tenant],
    columns: Mapping[str, Column],
    *,
    momentary: Mapping[str, Column] | None = None,
    support: Mapping[str, tuple[str | None, ...]] | None = None,
) -> None:
    """Let a node n1 report; ``momentary`` are values that are no means."""
    layout = fleet.layout(devices, tenants, number=9, support=support)
    shot = fleet.snapshot(layout, columns)
    known = Snapshot(
        run=layout.run, layout=9, sequence=1, up=shot.up, ages=shot.ages,
        values={**shot.means, **(momentary or {})}, means=shot.means,
    )  # fmt: skip
    ask.port.receive(fleet.frame(layout, known))


async def value(ask: Asker, name: str, pod: str = "a") -> str:
    return (await ask.values(f"{PODS}/{pod}/{name}"))[pod]


async def test_each_pod_has_the_values_of_its_devices_in_the_units_of_dcgm(ask: Asker) -> None:
    """As dcgm-exporter #42 and #379 wanted it: the pod is the workload's, not the exporter's."""
    arrive(
        ask,
        [fleet.gpu(0), fleet.gpu(1)],
        [fleet.tenant(f"GPU-n1-{index}", "a") for index in (0, 1)],
        {
            "gpu_utilization": [20.0, 60.0],
            "gpu_memory_used_bytes": [2048 * MIB, 4096 * MIB],
            "gpu_power_usage_watts": [100.0, 300.0],
            "gpu_memory_interface_utilization": [10.0, 20.0],
            "gpu_gpm_graphics_ratio": [0.25, 0.75],
        },
        momentary={
            "gpu_memory_free_bytes": [1024 * MIB, 1024 * MIB],
            "gpu_temperature_celsius": [50.0, 60.0],
            'gpu_gpm_pipe_ratio{kind="fp64"}': [0.1, 0.2],
        },
    )
    assert {name: await value(ask, name) for name in (
        "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE",
        "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_PROF_PIPE_FP64_ACTIVE",
    )} == {
        "DCGM_FI_DEV_GPU_UTIL": "40",
        "DCGM_FI_DEV_FB_USED": "3072",
        "DCGM_FI_DEV_FB_FREE": "1024",
        "DCGM_FI_DEV_POWER_USAGE": "200",
        "DCGM_FI_DEV_MEM_COPY_UTIL": "15",
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "500m",
        "DCGM_FI_DEV_GPU_TEMP": "55",
        "DCGM_FI_PROF_PIPE_FP64_ACTIVE": "150m",
    }  # fmt: skip


async def test_on_a_shared_device_each_pod_has_the_value_of_the_device(ask: Asker) -> None:
    """As dcgm-exporter repeats it, see dcgm-exporter #582; an average of these is the device's."""
    ask.port.add(fleet.web("c", "n1"))
    held = [fleet.tenant("GPU-n1-0", name) for name in ("a", "c")]
    arrive(ask, [fleet.gpu(0)], held, {"gpu_utilization": [66.0]})
    got = await ask.values(f"{PODS}/*/DCGM_FI_DEV_GPU_UTIL?metricLabelSelector=Hostname%3Dn1")
    assert got == {"a": "66", "c": "66"}


def of_mig(utilization: float | None) -> tuple[list[Device], list[Tenant], dict[str, Column]]:
    columns: dict[str, Column] = {
        "gpu_utilization": [utilization, utilization],
        "gpu_gpm_graphics_ratio": [None, 0.5],
        "gpu_power_usage_watts": [400.0, None],
        "gpu_memory_used_bytes": [8 * MIB, 4 * MIB],
    }
    devices = [fleet.gpu(0, mig_enabled=True), fleet.mig(0, 3)]
    return devices, [fleet.tenant("MIG-n1-0-3", "a")], columns


async def test_a_mig_device_has_what_dcgm_exporter_shows_of_it(ask: Asker) -> None:
    """Percent and ratios are never mixed: dcgm-exporter #272 and #430."""
    arrive(ask, *of_mig(50.0))
    refused = await ask.refusal(f"{PODS}/a/DCGM_FI_DEV_GPU_UTIL", 404)
    assert "dcgm-exporter has it of whole GPUs only" in refused
    assert await value(ask, "DCGM_FI_PROF_GR_ENGINE_ACTIVE") == "500m"
    assert await value(ask, "gpu_utilization") == "50"
    assert await value(ask, "DCGM_FI_DEV_POWER_USAGE") == "400"
    assert await value(ask, "DCGM_FI_DEV_FB_USED") == "4"


async def test_before_hopper_a_mig_device_has_no_utilization_and_the_reason_is_said(
    ask: Asker,
) -> None:
    devices, held, columns = of_mig(None)
    columns["gpu_gpm_graphics_ratio"] = [None, None]
    reasons = ("mig_enabled", "no_gpm")
    support = {"gpu_utilization": reasons, "gpu_gpm_graphics_ratio": reasons}
    arrive(ask, devices, held, columns, support=support)
    for name in ("gpu_utilization", "gpu_device_utilization", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"):
        assert "no_gpm" in await ask.refusal(f"{PODS}/a/{name}", 404)


async def test_what_the_exporter_does_not_read_is_not_found_and_named(ask: Asker) -> None:
    """gpu-operator #614: a field that nobody collects."""
    refused = await ask.refusal(f"{PODS}/a/DCGM_FI_PROF_PIPE_FP64_ACTIVE", 404)
    assert "its node's exporter does not read it" in refused
    assert "gpu_gpm_pipe_ratio" in refused


async def test_what_is_read_every_few_seconds_is_dated_so_and_served_for_as_long(
    ask: Asker,
) -> None:
    momentary: dict[str, Column] = {
        "gpu_temperature_celsius": [50.0], "gpu_memory_temperature_celsius": [70.0],
    }  # fmt: skip
    arrive(ask, [fleet.gpu(0)], [fleet.tenant("GPU-n1-0", "a")], {}, momentary=momentary)
    names = ("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_MEMORY_TEMP")

    async def read_at(name: str) -> datetime:
        (item,) = json.loads((await ask(f"{PODS}/a/{name}")).body)["items"]
        return datetime.fromisoformat(item["timestamp"])

    tick, slow = [await read_at(name) for name in names]
    assert (tick - slow).total_seconds() == 5
    # The device's last reading was 0.5 s old when it was sent; the limit is 15 s.
    ask.port.pass_seconds(14.4)
    assert [await value(ask, name) for name in names] == ["50", "70"]
    ask.port.pass_seconds(0.2)
    for name in names:
        assert "too old" in await ask.refusal(f"{PODS}/a/{name}", 503)


async def test_devices_are_chosen_by_the_labels_of_dcgm_exporter(ask: Asker) -> None:
    held = [fleet.tenant("MIG-n1-0-1", "a"), fleet.tenant("MIG-n1-0-2", "a")]
    devices = [fleet.gpu(0), fleet.mig(0, 1), fleet.mig(0, 2, profile="1c.2g.35gb")]
    used: Column = [9 * MIB, 1 * MIB, 2 * MIB]
    arrive(ask, devices, held, {"gpu_memory_used_bytes": used})
    path = f"{PODS}/a/DCGM_FI_DEV_FB_USED?metricLabelSelector="
    assert await ask.values(f"{path}GPU_I_ID%3D2") == {"a": "2"}
    assert await ask.values(f"{path}GPU_I_PROFILE%3D2g.35gb") == {"a": "2"}
    assert await ask.values(f"{path}UUID%3DGPU-n1-0%2CGPU_I_ID%3D1") == {"a": "1"}
    assert await ask.values(f"{path}gpu%3D7") == {}


async def test_they_are_listed_for_pods_from_the_start(ask: Asker) -> None:
    """pahud/amazon-eks-gpu-scale #1: nothing was listed until somebody wrote rules."""
    listed = json.loads((await ask(ROOT)).body)["resources"]
    names = {resource["name"] for resource in listed}
    assert {"pods/DCGM_FI_DEV_GPU_UTIL", "pods/DCGM_FI_PROF_GR_ENGINE_ACTIVE"} <= names
    assert {"pods/gpu_utilization", "nodes/gpu_contention_ratio"} <= names
    assert not any(n.startswith(("nodes/DCGM", "namespaces/DCGM")) for n in names)
    assert not {"pods/gpu_contention_ratio", "nodes/gpu_tenant_busy_ratio"} & names


def test_every_name_of_dcgm_exporter_is_served_or_has_a_reason() -> None:
    for name in (*(alias.name for alias in ALIASES), *(one.name for one in UNANSWERED)):
        assert (name in SERVED) != bool(unanswered(name)), name
    assert unanswered("gpu_utilization") == ""
    assert "gpu_xid_events_total" in unanswered("DCGM_FI_DEV_XID_ERRORS")


@pytest.mark.parametrize("alias", [a for a in ALIASES if a.kind is Kind.COUNTER][:3])
def test_a_count_is_no_load_and_the_reason_says_where_its_rate_is(alias: Alias) -> None:
    assert alias.metric in unanswered(alias.name)
