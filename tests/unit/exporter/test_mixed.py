"""The node that shares its GPUs in every way: each line of a scrape against what really was.

Every family of the catalog has an entry in one of the tables under ``expected``. An entry says all
series of its family with their values, so that a series too many fails as one too few does.
"""

import shutil
import subprocess

import pytest

from slicewatch.catalog import CATALOG, licensing
from slicewatch.catalog.model import Derived, Probe, Scope
from slicewatch.wire.snapshot import decode
from testbed import binaries
from testbed.require import skip_or_fail
from tests.unit.exporter.expected import (
    activity,
    condition,
    cost,
    links,
    sensors,
    sharing,
    virtual,
)
from tests.unit.exporter.mixed import BEGAN, scrape

EXPECTED = {
    **activity.FAMILIES, **condition.FAMILIES, **cost.FAMILIES, **links.FAMILIES,
    **sensors.FAMILIES, **sharing.FAMILIES, **virtual.FAMILIES,
}  # fmt: skip
# Explained by the absence of the others, below.
SUPPORT = "gpu_metric_supported"
FAMILIES = [metric.name for metric in CATALOG.of(Probe, Derived) if metric.name != SUPPORT]
REASONS = {
    "mig_enabled", "mig_instance", "device", "mps", "vgpu_host",
}  # fmt: skip
# Whole minutes after the first look, when everything but what is read by the hour was just read:
# shortly after a container restarted and a third one came to the GPU with MPS, and after that left.
MOMENTS = (BEGAN + 60, BEGAN + 180)
# The first test of a moment runs the node up to it.
pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module", params=MOMENTS)
def scene(request):
    return scrape(request.param)


def test_every_family_of_the_catalog_is_explained():
    """A new family is a new entry in a table; a name that is gone is none."""
    assert set(FAMILIES) - EXPECTED.keys() == set()
    assert EXPECTED.keys() - set(FAMILIES) == set()


def test_no_family_is_scraped_that_the_catalog_does_not_have(scene):
    ours = {name for name in scene.said if name.startswith("gpu_")}
    assert ours - {*FAMILIES, SUPPORT} == set()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_series_is_what_really_was(scene, family):
    """dcgm-exporter #582: a board's power stands there once, and belongs to no pod.

    Also dcgm-exporter #587 (own shares), #107 (tenants against their device), #549 and #611 (idle
    devices are there), HAMi #445 (one process on two GPUs), gpu-monitoring-tools #152 and
    dcgm-exporter #216 (absent under MIG, and not 0 or a blank).
    """
    said = scene.said.get(family, {})
    expected = EXPECTED[family](scene)
    assert {_text(labels) for labels in said} == {_text(labels) for labels in expected}
    wrong = {
        _text(labels): (said[labels], within)
        for labels, within in expected.items()
        if not within.holds(said[labels])
    }
    assert wrong == {}


def test_what_a_device_does_not_report_is_explained(scene):
    """Of each read that is for such devices there is a series, or for each family a reason.

    dcgm-exporter #571, #608, #513, #459, #475: profiling was gone after an upgrade, without a word.
    """
    explained = {
        (dict(labels)["uuid"], dict(labels)["metric"]): dict(labels)["reason"]
        for labels in scene.said[SUPPORT]
    }
    for probe in CATALOG.probes():
        metrics = [metric for metric in CATALOG if metric.origin is probe]
        shown = {dict(of)["uuid"] for m in metrics for of in scene.said.get(m.name, ())}
        for place in scene.places:
            if (Scope.MIG if place.mig else Scope.GPU) not in probe.scopes:
                continue
            if not metrics or _is_of_another_machine(probe, place):
                continue
            reasons = {(place.uuid, metric.name) in explained for metric in metrics}
            assert True in reasons or place.uuid in shown, (probe.name, place)
            for metric in metrics:
                told = (place.uuid, metric.name) in explained
                here = place.uuid in {dict(of)["uuid"] for of in scene.said.get(metric.name, ())}
                # Of those with labels of their own, a reading may have none.
                assert told != here or (metric.labels and not told), (metric.name, place)
    assert set(scene.said[SUPPORT].values()) == {0.0}
    assert set(explained.values()) <= REASONS


def _is_of_another_machine(probe, place):
    """Tell what only a vGPU host, or only a guest, has: there nothing is missing."""
    if probe is licensing.GUEST_LICENSE:
        return place.gpu.license is None
    return probe.name.startswith("vgpu") and place.gpu.vgpu_host is None


def test_shares_that_cannot_be_known_are_explained(scene):
    """dcgm-exporter #474, #388: under MPS and MIG nobody knows whose time it was."""
    reasons = {
        dict(labels)["gpu"]: dict(labels)["reason"]
        for labels in scene.said[SUPPORT]
        if dict(labels)["metric"] == "gpu_contention_ratio" and "profile" not in dict(labels)
    }
    assert reasons == {"3": "mig_enabled", "4": "mig_enabled", "6": "mps", "7": "vgpu_host"}


def test_every_true_value_is_believed(scene):
    assert scene.rejected == []


def test_tenants_together_are_as_busy_as_their_device(scene):
    """dcgm-exporter #107: the parts are below the whole by what is cut off, and no further."""
    whole = scene.said["gpu_busy_seconds_total"]
    parts = {}
    for labels, seconds in scene.said["gpu_tenant_busy_seconds_total"].items():
        uuid = dict(labels)["uuid"]
        parts[uuid] = parts.get(uuid, 0) + seconds
    seconds = scene.now - scene.began
    for labels, busy in whole.items():
        if (uuid := dict(labels)["uuid"]) in parts:
            assert busy - 0.04 * seconds <= parts[uuid] <= busy + 1


def test_the_frame_for_an_adapter_says_the_same(scene):
    frame = decode(scene.frame)
    used = frame.snapshot.values["gpu_memory_used_bytes"]
    said = scene.said["gpu_memory_used_bytes"]
    assert sorted(used) == sorted(said.values())


def test_promtool_finds_nothing_to_complain_about(scene):
    # One that was built for other tests will do; to build one for this would take minutes.
    built = binaries.cache() / f"promtool-{binaries.PROGRAMS['promtool'].version}" / "promtool"
    promtool = shutil.which("promtool") or (built if built.exists() else None)
    if promtool is None:
        skip_or_fail("promtool is neither installed nor built")
    done = subprocess.run(
        [promtool, "check", "metrics"], input=scene.page.encode(), capture_output=True, check=False
    )
    assert (done.returncode, (done.stdout + done.stderr).decode()) == (0, "")


def _text(labels):
    return ",".join(f"{name}={value}" for name, value in sorted(labels))
