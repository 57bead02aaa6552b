"""Which families are shown, which reads they need, and names that nobody knows."""

import pytest

from exporter.families import check_names, chosen
from exporter.nvml.plan import Plan
from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Probe, Scope


def names(metrics):
    return {metric.name for metric in metrics}


def test_every_probe_is_read_where_it_can_be_asked():
    plan = Plan.of(())
    unasked = [probe for probe in CATALOG.probes() if not probe.optional]
    assert set(plan.gpu.probes) == {p for p in unasked if Scope.GPU in p.scopes}
    assert set(plan.mig.probes) == {p for p in unasked if Scope.MIG in p.scopes}


def test_an_optional_probe_is_read_only_for_those_who_asked():
    optional = {probe for probe in CATALOG.probes() if probe.optional}
    assert optional
    assert not optional & set(Plan.of(()).gpu.probes)
    everything = Plan.of(CATALOG.metrics)
    assert optional <= {*everything.gpu.probes, *everything.mig.probes}


def test_every_metric_of_a_probe_is_filled_by_it():
    plan = Plan.of(CATALOG.metrics)
    for part, scope in ((plan.gpu, Scope.GPU), (plan.mig, Scope.MIG)):
        filled = {m.name for metrics in part.metrics for m in metrics}
        assert filled == {m.name for m in CATALOG.of(Probe) if scope in m.scopes}


def test_a_device_gets_the_plan_of_its_kind(gpu, mig):
    plan = Plan.of(())
    assert plan.of_device(gpu()) is plan.gpu
    assert plan.of_device(mig(gpu(), 0)) is plan.mig


def test_no_names_choose_every_family_that_is_not_optional():
    assert chosen(CATALOG.metrics, ()) == tuple(m for m in CATALOG if not m.optional)


def test_names_choose_families_and_the_core_is_always_there():
    core = {metric.name for metric in CATALOG if metric.core}
    found = names(chosen(CATALOG.metrics, ("gpu_power_usage_watts", "gpu_memory_*_bytes")))
    assert found - core == {
        "gpu_power_usage_watts", "gpu_memory_used_bytes", "gpu_memory_total_bytes",
        "gpu_memory_free_bytes", "gpu_memory_reserved_bytes",
    }  # fmt: skip
    assert core <= found


def test_an_unknown_name_is_refused_with_the_nearest_one():
    with pytest.raises(ValueError, match="'gpu_utilisation'; did you mean gpu_utilization"):
        check_names(["gpu_utilisation"])


def test_a_pattern_that_matches_nothing_is_refused():
    with pytest.raises(ValueError, match=r"docs/reference/metrics\.md"):
        check_names(["zzz_*"])


def test_known_names_and_patterns_are_accepted():
    check_names(["gpu_utilization", "gpu_memory_*", "*"])
