"""What counts as evidence: a reading that is fresh, whole and possible."""

import pytest

from health.checks.model import Healthy, Unknown
from health.checks.reading import NoEvidenceError, careful, read, read_if_any, rise_per_second
from slicewatch.catalog.errors import ECC, SRAM
from slicewatch.catalog.pcie import REPLAY
from slicewatch.catalog.power import POWER
from slicewatch.catalog.readings.errors import EccErrors, RecoveryAction
from slicewatch.catalog.readings.pcie import PcieReplays
from slicewatch.catalog.readings.power import Power
from slicewatch.wire.evidence import Failed, Lost, Unsupported
from testbed.evidence import case, evidence, gpu, poll, value


@pytest.mark.parametrize(("age_seconds", "is_read"), [(0, True), (50, True), (51, False)])
def test_a_reading_may_be_as_old_as_two_of_its_intervals_and_some_seconds(age_seconds, is_read):
    one = gpu(readings={ECC: value(EccErrors(), age_seconds=age_seconds)})
    assert (read_if_any(poll(evidence([one])), ECC) is not None) == is_read


def test_a_probe_that_is_read_every_minute_may_be_older_than_one_of_every_second():
    readings = {POWER: value(Power(1), age_seconds=31)}
    said = poll(evidence([gpu(readings=readings)]))
    assert read_if_any(said, POWER) is None
    assert SRAM.interval_seconds > ECC.interval_seconds > POWER.interval_seconds


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Unsupported(reason="mig_enabled"), "power is not supported: mig_enabled"),
        (Failed(error="TIMEOUT", age_seconds=1), "power failed: TIMEOUT"),
        (Lost(reason="gpu_is_lost", age_seconds=1), "power was not answered: gpu_is_lost"),
        (value(RecoveryAction(3)), "power: not what this probe reads"),
    ],
    ids=str,
)
def test_it_says_why_there_is_no_evidence(answer, why):
    said = poll(evidence([gpu(readings={POWER: answer})]))
    with pytest.raises(NoEvidenceError, match=why):
        read(said, POWER)


def test_a_judge_without_evidence_says_that_nothing_is_known():
    @careful
    def judge(case):
        read(case.newest, POWER)
        return Healthy()

    assert judge(case(gpu())) == Unknown(why="power is not read")
    assert judge(case(gpu(readings={POWER: Power(1)}))) == Healthy()


class TestRise:
    def rate(self, *polls):
        return rise_per_second(case(*polls), REPLAY, lambda r: r.count)

    def seen(self, count, *, age_seconds=0.0, **said):
        one = value(PcieReplays(count), age_seconds=age_seconds)
        return evidence([gpu(readings={REPLAY: one})], **said)

    def test_it_is_between_the_times_of_the_readings_not_of_the_polls(self):
        assert self.rate(self.seen(0), self.seen(60)) == 1
        assert self.rate(self.seen(0, age_seconds=10), self.seen(60)) == pytest.approx(60 / 70)

    def test_polls_without_a_reading_are_passed_over(self):
        assert self.rate(self.seen(0), evidence([gpu()]), self.seen(60)) == 0.5

    @pytest.mark.parametrize(
        "polls",
        [
            [(5, {})],
            [(5, {}), (4, {})],
            [(5, {}), (9, {"starts": 2})],
            [(5, {}), (9, {"run": "run-2"})],
            [(5, {}), (None, {})],
            [(5, {}), (-1, {})],
            [(5, {}), (2**60, {})],
        ],
        ids=str,
    )
    def test_there_is_none_across_a_reset_or_of_what_is_no_count(self, polls):
        seen = [
            evidence([gpu()]) if count is None else self.seen(count, **said)
            for count, said in polls
        ]
        with pytest.raises(NoEvidenceError):
            self.rate(*seen)
