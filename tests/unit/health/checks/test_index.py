"""Every check, whatever it judges: declared soundly, and never wrong about what is not known."""

import re

import msgspec
import pytest

from health.checks.index import CHECKS
from health.checks.model import Action, Condition, Healthy, Subject, Unhealthy, Unknown
from slicewatch.catalog import CATALOG
from slicewatch.wire.evidence import Failed, Lost, Unsupported, Value
from testbed.evidence import case, evidence, gpu, since

GPU_CHECKS = [check for check in CHECKS if check.subject is Subject.GPU]
READING = [(check, probe) for check in GPU_CHECKS for probe in check.needs]
# What the kernel's log or NVML has told is true whatever the state of the driver; and that there
# is no driver is what one of the checks is about.
OF_THE_DRIVER = {"driver_not_ready", "driver_version_mismatch", "exporter_stalled"}
OF_EVENTS = {check.id for check in CHECKS if check.id.startswith("xid_")}


def of_the_present():
    return [check for check in CHECKS if check.id not in OF_THE_DRIVER | OF_EVENTS]


def test_ids_and_reasons_name_one_check_each():
    ids = [check.id for check in CHECKS]
    reasons = [reason for check in CHECKS for reason in (check.reason, *check.reasons)]
    assert len(set(ids)) == len(ids)
    assert len(set(reasons)) == len(reasons)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_declaration_has_the_form_that_kubernetes_and_prometheus_ask_for(check):
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", check.id)
    for reason in (check.reason, *check.reasons):
        assert re.fullmatch(r"[A-Z][A-Za-z]{1,40}", reason)
    assert check.title.endswith(".")
    assert len(check.title) <= 100
    assert 0 <= check.raise_seconds <= 900
    assert check.clear_seconds >= 300


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_what_says_only_that_nothing_is_known_never_cordons(check):
    if check.condition is Condition.UNMONITORED:
        assert check.action is Action.WARN


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_what_is_read_is_read_of_gpus_by_the_exporter(check):
    assert set(check.needs) <= set(CATALOG.probes())


@pytest.mark.parametrize("check", of_the_present(), ids=lambda check: check.id)
@pytest.mark.parametrize(
    "said",
    [
        {"down": "released"},
        {"down": "no_driver"},
        {"down": "version_mismatch"},
        {"tick_age_seconds": None},
        {"tick_age_seconds": 3600.0},
    ],
    ids=str,
)
def test_while_nothing_is_read_nothing_is_known_of_the_gpus(check, said):
    """Also of one that was lost before somebody let go of the driver to reset it."""
    seen = case(evidence([gpu(silent="gpu_is_lost")], **said), index=index_of(check))
    assert isinstance(check.judge(seen), Unknown)


@pytest.mark.parametrize("check", GPU_CHECKS, ids=lambda check: check.id)
def test_a_gpu_that_the_exporter_does_not_know_is_unknown_to_all(check):
    verdict = check.judge(case(evidence([]), raised=since()))
    assert isinstance(verdict, Healthy if check.id in OF_EVENTS_ONLY else Unknown)


# They end as soon as nothing is told any more.
OF_EVENTS_ONLY = {"xid_recorded", "xid_repeated", "xid_warning"}


@pytest.mark.parametrize("check", [c for c in GPU_CHECKS if c.needs], ids=lambda c: c.id)
@pytest.mark.parametrize(
    "answer",
    [
        Unsupported(reason="device"),
        Unsupported(reason="mig_enabled"),
        Failed(error="UNKNOWN", age_seconds=1),
        Lost(reason="gpu_is_lost", age_seconds=1),
        None,
    ],
    ids=str,
)
def test_a_read_that_gives_no_value_says_nothing(check, answer):
    readings = {} if answer is None else dict.fromkeys(check.needs, answer)
    seen = case(*3 * [gpu(readings=readings)], raised=since())
    assert isinstance(check.judge(seen), Unknown)


@pytest.mark.parametrize(
    ("check", "probe"), READING, ids=[f"{check.id}-{probe.name}" for check, probe in READING]
)
@pytest.mark.parametrize("body", [b'{"nonsense":[]}', b"17", b"{", b"null", b""], ids=str)
def test_a_malformed_reading_says_nothing(check, probe, body):
    broken = Value(reading=msgspec.Raw(body), age_seconds=0)
    assert isinstance(check.judge(case(*3 * [gpu(readings={probe: broken})])), Unknown)


@pytest.mark.parametrize("check", GPU_CHECKS, ids=lambda check: check.id)
def test_a_gpu_of_which_nothing_is_supported_is_not_ill(check):
    readings = {probe: Unsupported(reason="device") for probe in CATALOG.probes()}
    assert not isinstance(check.judge(case(*3 * [gpu(readings=readings)])), Unhealthy)


def index_of(check):
    return 0 if check.subject is Subject.GPU else None
