"""Whatever an exporter says, however absurd: a check gives a verdict that keeps its declaration."""

import math
import types
import typing

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from health.case import Case, Thresholds
from health.checks.index import CHECKS
from health.checks.model import Healthy, Subject, Unhealthy, Unknown
from slicewatch.catalog import CATALOG
from slicewatch.catalog.clocks import CLOCK_EVENT_TIMES, CLOCK_EVENTS
from slicewatch.catalog.errors import RECOVERY
from slicewatch.catalog.nvlink import STATES
from slicewatch.catalog.power import ENERGY, POWER
from slicewatch.catalog.state import INFOROM_CHECK
from slicewatch.catalog.thermal import (
    MARGIN_THRESHOLDS,
    TEMPERATURE_MARGIN,
    TEMPERATURE_THRESHOLDS,
)
from slicewatch.wire.evidence import (
    Driver,
    Event,
    Evidence,
    Failed,
    Gpu,
    Happening,
    Lost,
    Source,
    Unidentified,
    Unsupported,
    Value,
)
from testbed.evidence import evidence, gpu, poll, since, uuid_of

# Beside what checks need, what some of them may use.
USED = {ENERGY, POWER, CLOCK_EVENTS, CLOCK_EVENT_TIMES, INFOROM_CHECK, RECOVERY, STATES} | {
    TEMPERATURE_MARGIN, MARGIN_THRESHOLDS, TEMPERATURE_THRESHOLDS,
}  # fmt: skip
BY_NAME = {probe.name: probe for probe in CATALOG.probes()}
NAMES = sorted(p.name for p in USED.union(*(check.needs for check in CHECKS)))
WORDS = [
    "", "gpu_is_lost", "reset_required", "gpu_not_found", "hang", "not_read", "no_driver",
    "released", "version_mismatch", "insufficient_power", "corrupted_inforom", "🙃" * 100,
]  # fmt: skip
TEXTS = [
    "", "Fatal", "Nonfatal Link 3", "Link 999999999", "fatal" * 100, "\x00",
    "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
    "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
    "GPU recovery action changed from",
]  # fmt: skip

words = st.sampled_from(WORDS) | st.text(max_size=20)
seconds = st.sampled_from([0.0, 1.0, 61.0, 301.0, 1e9]) | st.floats(-10, 1e15)
integers = (
    st.integers(0, 3)
    | st.integers(0, 100)
    | st.integers(0, 10**12)
    | st.sampled_from([2**31 - 1, 2**32 - 1, 2**64 - 1, 10**400])
    | st.integers()
)
scalars = st.none() | integers | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    scalars | st.text(max_size=5), lambda v: st.lists(v, max_size=4), max_leaves=6
)


def of_type(kind):
    """Return what a field of a reading may hold: often what is usual, sometimes anything."""
    parts = typing.get_args(kind)
    if isinstance(kind, types.UnionType):
        return st.one_of([of_type(part) for part in parts])
    if typing.get_origin(kind) is tuple:
        if parts[-1] is Ellipsis:
            return st.lists(of_type(parts[0]), max_size=20)
        return st.tuples(*(of_type(part) for part in parts))
    return {
        int: integers,
        bool: st.booleans(),
        float: st.floats(0, 1e9),
        str: st.text(max_size=5),
    }.get(kind, st.none())


def readings_of(probe):
    """Return what a read may give: a reading of the right form with anything in it."""
    fields = {field.name: of_type(field.type) for field in msgspec.structs.fields(probe.reading)}
    return st.fixed_dictionaries(fields).map(
        lambda drawn: Value(reading=msgspec.Raw(msgspec.json.encode(drawn)), age_seconds=0)
    )


def answers_of(probe):
    """Return what may be said of a read, in any form and of any age."""
    broken = st.binary(max_size=8) | values.map(msgspec.json.encode)
    return readings_of(probe) | st.builds(
        lambda body, age: Value(reading=msgspec.Raw(body), age_seconds=age), broken, seconds
    ) | st.sampled_from([
        Unsupported(reason="device"),
        Failed(error="UNKNOWN", age_seconds=1),
        Failed(error="CORRUPTED_INFOROM", age_seconds=1),
        Failed(error="INSUFFICIENT_POWER", age_seconds=1),
        Lost(reason="gpu_is_lost", age_seconds=1),
    ])  # fmt: skip


def answers(names):
    return st.fixed_dictionaries({name: answers_of(BY_NAME[name]) for name in names})


events = st.builds(
    Event,
    number=st.integers(1, 100),
    kind=st.sampled_from(Happening),
    age_seconds=seconds,
    gpu=st.sampled_from([uuid_of(0), ""]),
    data=st.sampled_from([13, 31, 48, 63, 74, 79, 145, 149, 154, 162, 163, 171]) | integers,
    source=st.sampled_from(Source),
    pci_bus_id=words,
    gpu_instance=st.none() | st.integers(),
    compute_instance=st.none() | st.integers(),
    text=st.sampled_from(TEXTS) | st.text(max_size=40),
)
gpus = st.builds(
    Gpu,
    device=st.just(gpu().device),
    silent=words,
    silent_seconds=seconds,
    call=words,
    call_seconds=seconds,
    readings=st.dictionaries(st.sampled_from(NAMES), st.none()).flatmap(answers),
)
said = st.builds(
    Evidence,
    node=st.just("n"),
    run=st.sampled_from(["a", "b"]),
    boot_id=st.sampled_from(["", "x"]),
    uptime_seconds=seconds,
    tick_age_seconds=st.none() | seconds,
    driver=st.builds(Driver, down=st.just("") | words, seconds=seconds, starts=st.integers(0, 3)),
    gpus=st.lists(gpus, max_size=1).map(tuple),
    unidentified=st.lists(
        st.builds(Unidentified, index=st.integers(), reason=words), max_size=6
    ).map(tuple),
    events=st.lists(events, max_size=6).map(tuple),
    missed=st.integers(0, 2),
    listening=st.sampled_from(["", "no_events"]),
    kernel_log=st.sampled_from(["", "off"]),
)


def case_of(data, course, index):
    """Draw the rest of a case of some evidence, a minute apart."""
    return Case(
        polls=[poll(one, at=60.0 * n, index=index) for n, one in enumerate(course)],
        thresholds=Thresholds(
            memory_errors=data.draw(st.integers(1, 20)),
            hot_cordons=data.draw(st.booleans()),
            expected_gpus=data.draw(st.none() | st.integers(0, 8)),
        ),
        baseline=data.draw(
            st.dictionaries(
                st.sampled_from(["gpus", "links", "uncorrected"]), st.floats(0, 100), max_size=3
            )
        ),
        raised=data.draw(st.none() | st.just(since(boot_id="x"))),
    )


def keeps_its_declaration(check, case):
    verdict = check.judge(case)
    assert verdict == check.judge(case)
    if isinstance(verdict, Unknown):
        assert verdict.why
        return
    assert isinstance(verdict, Healthy | Unhealthy)
    assert all(math.isfinite(value) for value in verdict.baseline.values())
    if isinstance(verdict, Unhealthy):
        assert 0 < len(verdict.message) < 900
        assert verdict.reason in {"", check.reason, *check.reasons}
        assert verdict.action is None or verdict.action <= check.action


@pytest.mark.parametrize("subject", Subject)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_whatever_is_said_a_verdict_keeps_what_its_check_declares(subject, data):
    course = data.draw(st.lists(said, min_size=1, max_size=3))
    case = case_of(data, course, 0 if subject is Subject.GPU else None)
    for check in CHECKS:
        if check.subject is subject:
            keeps_its_declaration(check, case)


@pytest.mark.parametrize(
    "check", [check for check in CHECKS if check.subject is Subject.GPU], ids=lambda c: c.id
)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_whatever_is_read_a_verdict_keeps_what_its_check_declares(check, data):
    """Of a GPU that answers, all that this check needs or may use, with anything in it."""
    used = (*check.needs, *data.draw(st.sets(st.sampled_from(sorted(USED, key=str)), max_size=4)))
    drawn = st.fixed_dictionaries({probe: readings_of(probe) for probe in used})
    course = [
        evidence([gpu(readings=data.draw(drawn))], events=data.draw(st.lists(events, max_size=2)))
        for _ in range(3)
    ]
    keeps_its_declaration(check, case_of(data, course, 0))
