"""One device over time: what its readings make of its values, totals, windows and reasons."""

import pytest

from exporter.measure.row import METRICS, WINDOWED, Row, fillings
from exporter.measure.windows import Grid
from exporter.nvml.plan import Plan
from exporter.nvml.protocol import Failed, Unsupported, Value
from slicewatch.catalog.readings.memory import Memory
from slicewatch.catalog.readings.power import Energy, Power, Temperature
from slicewatch.catalog.readings.state import ComputeMode
from slicewatch.catalog.readings.utilization import Utilization

PLAN = Plan.of(()).gpu
PROBES = [probe.name for probe in PLAN.probes]
COLUMN = {metric.name: column for column, metric in enumerate(METRICS)}
SERIES = {metric.name: series for series, metric in enumerate(WINDOWED)}


class Bench:
    """A row, and one pass after the other."""

    def __init__(self, device):
        self.rejected = []
        self.grid = Grid(window_seconds=15, tick_seconds=1)
        self.row = Row(device, self.grid, self.rejected.append)
        self._fillings = fillings(PLAN)

    def read(self, at, **outcomes):
        """Take a pass that read these probes alone."""
        self.grid.advance(at)
        return self.row.update(self._fillings, [outcomes.get(name) for name in PROBES], at)

    def value(self, name):
        return self.row.values[COLUMN[name]]

    def mean(self, name):
        return self.row.window.means()[SERIES[name]]

    def reason(self, name):
        return self.row.reasons[COLUMN[name]]


@pytest.fixture
def bench(gpu):
    return Bench(gpu())


def busy(percent, *, begin=1, seconds=1):
    samples = ((round((begin + seconds) * 1e6), percent),)
    return Value(Utilization(samples=samples, since_us=round(begin * 1e6)))


def test_every_probe_of_the_catalog_fills_its_metrics(bench, readings):
    bench.read(1000.0, **{name: Value(reading) for name, reading in readings.items()})
    assert bench.value("gpu_memory_used_bytes") == 250
    assert bench.value("gpu_memory_total_bytes") == 1000
    assert bench.value("gpu_memory_utilization") == 25
    assert bench.value("gpu_power_usage_watts") == 300
    assert bench.value("gpu_energy_joules_total") == 5
    assert bench.value("gpu_temperature_celsius") == 44
    assert bench.value("gpu_sm_clock_mhz") == 1980
    assert bench.value("gpu_mem_clock_mhz") == 2619
    assert bench.value("gpu_busy_seconds_total") == pytest.approx(0.4)
    assert bench.mean("gpu_utilization") == 40


def test_a_utilization_reading_weighs_by_what_its_samples_cover(bench):
    bench.read(1000.0, utilization=busy(100, seconds=0.25))
    bench.read(1001.0, utilization=busy(0, seconds=0.75))
    assert bench.mean("gpu_utilization") == 25


def test_other_readings_weigh_by_the_time_since_the_one_before(bench):
    bench.read(1000.0, power=Value(Power(100_000)))
    bench.read(1001.5, power=Value(Power(200_000)))
    # The first one speaks of a tick.
    assert bench.mean("gpu_power_usage_watts") == pytest.approx((100 * 1 + 200 * 1.5) / 2.5)


def test_a_long_silence_counts_for_two_ticks_at_most(bench):
    bench.read(1000.0, power=Value(Power(100_000)))
    bench.read(1010.0, power=Value(Power(400_000)))
    assert bench.mean("gpu_power_usage_watts") == pytest.approx((100 * 1 + 400 * 2) / 3)


def test_a_total_adds_up_and_a_failed_read_does_not_set_it_back(bench):
    bench.read(1000.0, utilization=busy(50))
    bench.read(1001.0, utilization=Failed("UNKNOWN"))
    assert bench.value("gpu_busy_seconds_total") == 0.5
    bench.read(1002.0, utilization=busy(25))
    assert bench.value("gpu_busy_seconds_total") == 0.75


def test_a_total_goes_on_after_a_time_in_which_mig_hid_it(bench):
    bench.read(1000.0, utilization=busy(50))
    bench.read(1001.0, utilization=Unsupported("mig_enabled"))
    assert bench.value("gpu_busy_seconds_total") is None
    bench.read(1002.0, utilization=busy(50))
    assert bench.value("gpu_busy_seconds_total") == 1.0


def test_a_total_is_absent_until_something_true_was_read(bench):
    bench.read(1000.0, utilization=Value(Utilization(((2_000_000, 10**18),), 1_000_000)))
    assert bench.value("gpu_busy_seconds_total") is None


def test_a_read_that_fails_leaves_no_value_behind(bench):
    bench.read(1000.0, power=Value(Power(100_000)))
    bench.read(1001.0, power=Failed("UNKNOWN"))
    assert bench.value("gpu_power_usage_watts") is None
    assert bench.mean("gpu_power_usage_watts") == 100


def test_a_probe_that_was_not_due_keeps_its_value(bench):
    bench.read(1000.0, power=Value(Power(100_000)))
    bench.read(1001.0, temperature=Value(Temperature(50)))
    assert bench.value("gpu_power_usage_watts") == 100


def test_what_becomes_unsupported_is_withdrawn_at_once_with_its_window(bench):
    bench.read(1000.0, utilization=busy(80), power=Value(Power(100_000)))
    changed = bench.read(1001.0, utilization=Unsupported("mig_enabled"))
    assert changed
    assert bench.mean("gpu_utilization") is None
    assert bench.reason("gpu_utilization") == "mig_enabled"
    assert bench.reason("gpu_busy_seconds_total") == "mig_enabled"
    assert bench.mean("gpu_power_usage_watts") == 100


def test_a_reason_is_said_to_change_once_and_goes_when_the_read_works(bench):
    no = Unsupported("device")
    assert bench.read(1000.0, energy=no)
    assert not bench.read(1001.0, energy=no)
    assert bench.read(1002.0, energy=Unsupported("permission"))
    assert bench.reason("gpu_energy_joules_total") == "permission"
    assert bench.read(1003.0, energy=Value(Energy(1000)))
    assert bench.reason("gpu_energy_joules_total") is None
    assert not bench.read(1004.0, energy=Value(Energy(2000)))


@pytest.mark.parametrize(
    ("probe", "reading", "rejected"),
    [
        ("temperature", Temperature(4_278_190_080), ["gpu_temperature_celsius"]),
        ("power", Power(2**32 - 1), ["gpu_power_usage_watts"]),
        (
            "memory",
            Memory(total_bytes=10, free_bytes=5, used_bytes=11, reserved_bytes=0),
            [
                "gpu_memory_used_bytes",
                "gpu_memory_total_bytes",
                "gpu_memory_utilization",
                "gpu_memory_free_bytes",
                "gpu_memory_reserved_bytes",
            ],
        ),
        (
            "utilization",
            Utilization(((2_000_000, 101),), 1_000_000),
            ["gpu_utilization", "gpu_busy_seconds_total"],
        ),
    ],
)
def test_nonsense_is_counted_once_for_each_metric_and_published_for_none(
    bench, probe, reading, rejected
):
    bench.read(1000.0, **{probe: Value(reading)})
    assert bench.rejected == rejected
    for name in rejected:
        assert bench.value(name) is None
        if name in SERIES:
            assert bench.mean(name) is None


def test_a_reading_that_says_nothing_is_no_nonsense(bench):
    """The first samples of a session describe no time."""
    bench.read(1000.0, utilization=Value(Utilization(((1_000_000, 50),), None)))
    assert bench.rejected == []
    assert bench.mean("gpu_utilization") is None
    assert bench.value("gpu_busy_seconds_total") == 0


def test_a_number_that_has_no_name_is_no_sample(bench):
    bench.read(1000.0, compute_mode=Value(ComputeMode(0)))
    assert bench.value("gpu_compute_mode_info") == {'{mode="default"}': 1}
    bench.read(1060.0, compute_mode=Value(ComputeMode(2**32 - 1)))
    assert bench.value("gpu_compute_mode_info") is None
