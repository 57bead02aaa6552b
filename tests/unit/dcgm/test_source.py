"""Whose value it is, how old it is, and why there is none."""

import re
from pathlib import Path

import pytest

from exporter.dcgm.page import read
from exporter.dcgm.source import DEADLINE_SECONDS, INTERVALS_UNTIL_STALE, DcgmSource, Reason
from slicewatch.wire.layout import Device

INTERVAL = 5.0
STALE = INTERVALS_UNTIL_STALE * INTERVAL + DEADLINE_SECONDS


@pytest.fixture
def rejected():
    return []


@pytest.fixture
def source(rejected):
    return DcgmSource(interval_seconds=INTERVAL, reject=rejected.append)


@pytest.fixture
def fed(source, recorded):
    source.take(read(recorded("2.6-a100-40gb")), 100.0)
    return source


def test_utilization_is_in_percent_and_as_old_as_its_page(fed, instance):
    percent, age = fed.utilization(instance(), 103.0)
    assert percent == pytest.approx(99.5687)
    assert age == 3
    assert fed.reason(instance(), 103.0) is None
    assert fed.fault is None


def test_an_idle_instance_is_0_and_not_absent(source, instance, recorded):
    source.take(read(recorded("3.2-a800-80gb")), 0.0)
    parent = "GPU-1f027ee8-6e1e-2b8c-0108-3d370e5f0418"
    idle = instance(parent=parent, gpu_instance=5, profile="2g.20gb")
    assert source.utilization(idle, 1.0) == (0, 1)


def test_before_the_first_page_there_is_no_value_and_the_reason_says_so(source, instance):
    assert source.utilization(instance(), 0.0) is None
    assert source.reason(instance(), 0.0) is Reason.NOT_READ
    assert source.fault is Reason.NOT_READ


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"profile": "3g.20gb"}, Reason.OTHER_PROFILE),
        ({"profile": "1g.10gb"}, Reason.OTHER_PROFILE),
        ({"profile": ""}, Reason.OTHER_PROFILE),
        ({"gpu_instance": 7}, Reason.NO_INSTANCE),
        ({"parent": "GPU-of-another-node"}, Reason.NO_INSTANCE),
    ],
)
def test_the_view_of_another_layout_is_not_taken(fed, instance, given, reason):
    """gpu-monitoring-tools #142, instaslice #288: DCGM knows the layout that it started with."""
    assert fed.utilization(instance(**given), 100.0) is None
    assert fed.reason(instance(**given), 100.0) is reason


def test_an_instance_is_not_given_up_for_a_gigabyte_in_its_name(source, instance, recorded):
    """dcgm-exporter #713, gpu-operator #687: 7g.79gb for 7g.80gb."""
    source.take(read(recorded("3.3-a100-80gb-one-instance")), 0.0)
    whole = instance(
        parent="GPU-06357e72-c3ee-614b-775f-a89e18e8cc08", gpu_instance=0, profile="7g.80gb"
    )
    assert source.utilization(whole, 0.0) == (50, 0)


def test_a_profile_that_dcgm_does_not_know_proves_nothing(source, instance, recorded):
    """gpu-monitoring-tools #193."""
    source.take(read(recorded("2.4-a100-null-profile")), 0.0)
    of_page = instance(
        parent="GPU-fc6d497e-d08c-374e-218c-7e44b065d764", gpu_instance=6, profile="2g.10gb"
    )
    assert source.utilization(of_page, 0.0) is None
    assert source.reason(of_page, 0.0) is Reason.OTHER_PROFILE


def test_compute_instances_do_not_get_what_their_gpu_instance_does_together(fed, instance):
    """DCGM #138: a slice at work in an instance of three is a third of that instance."""
    part = instance(profile="1c.1g.5gb")
    assert fed.utilization(part, 100.0) is None
    assert fed.reason(part, 100.0) is Reason.PART_OF_INSTANCE


def test_a_whole_gpu_has_no_value_here(fed):
    whole = Device(uuid="GPU-34319582-d595-d1c7-d1d2-179bcfa61660", gpu=0, model="A100")
    assert fed.utilization(whole, 100.0) is None


def test_instances_that_dcgm_leaves_out_are_absent_and_the_others_are_not(
    source, instance, recorded
):
    """dcgm-exporter #507: 13 of 16 instances have a value."""
    text = recorded("3.2-a800-80gb")
    source.take(read("\n".join(x for x in text.split("\n") if 'GPU_I_ID="5"' not in x)), 0.0)
    parent = "GPU-1f027ee8-6e1e-2b8c-0108-3d370e5f0418"
    found = [
        source.utilization(instance(parent=parent, gpu_instance=n, profile="2g.20gb"), 0.0)
        for n in (3, 5, 6)
    ]
    assert found == [(0, 0), None, (0, 0)]


def test_a_lost_page_withdraws_nothing_until_the_last_one_is_stale(fed, instance):
    fed.fail(Reason.UNREACHABLE)
    assert fed.fault is Reason.UNREACHABLE
    assert fed.utilization(instance(), 100.0 + STALE) == (pytest.approx(99.5687), STALE)
    assert fed.utilization(instance(), 100.1 + STALE) is None
    assert fed.reason(instance(), 100.1 + STALE) is Reason.UNREACHABLE


def test_a_value_that_does_not_change_stays_fresh_while_pages_come(fed, instance, recorded):
    for at in range(100, 1000, 5):
        fed.take(read(recorded("2.6-a100-40gb")), float(at))
    assert fed.utilization(instance(), 996.0) == (pytest.approx(99.5687), 1)


def test_a_poll_that_hangs_withdraws_the_values_too(fed, instance):
    assert fed.reason(instance(), 100.1 + STALE) is Reason.NOT_READ


def test_a_page_without_profiling_replaces_the_one_that_had_it(fed, instance, recorded):
    """dcgm-exporter #22, #571, #459, #475: profiling fields are gone after a restart."""
    fed.take(read(recorded("4.8-a30-no-profiling")), 105.0)
    assert fed.utilization(instance(), 105.0) is None
    assert fed.reason(instance(), 105.0) is Reason.NO_PROFILING


def test_the_page_of_another_program_is_a_fault(source, instance):
    source.take(read("# TYPE up gauge\nup 1\n"), 0.0)
    assert source.fault is Reason.OTHER_PAGE
    assert source.reason(instance(), 0.0) is Reason.OTHER_PAGE


def test_rejected_values_are_counted_and_the_reason_is_no_value(
    source, rejected, instance, recorded
):
    """gpu-monitoring-tools #152."""
    source.take(read(recorded("2.6-a100-40gb").replace("0.995687", "9223372036854775794")), 0.0)
    assert rejected == ["DCGM_FI_PROF_GR_ENGINE_ACTIVE"]
    assert source.reason(instance(), 0.0) is Reason.NO_VALUE


def test_the_guide_says_what_to_do_about_every_reason():
    guide = Path(__file__).parents[3] / "docs" / "guides" / "from-dcgm-exporter.md"
    listed = re.findall(r"^\| `(dcgm_\w+)` \| \w", guide.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(listed) == set(Reason)
