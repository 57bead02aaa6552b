"""Every metric of the catalog, checked against conventions and the users' configuration."""

import inspect

import pytest

from slicewatch.catalog import CATALOG, index, model
from slicewatch.catalog.index import reads_of
from slicewatch.catalog.model import (
    Kind,
    Label,
    Metric,
    Own,
    Probe,
    Publish,
    Scope,
    Stability,
    Unit,
)

# As the users wrote them in gpu-metrics.json, with the scale that their dashboards expect.
# Every custom metrics server has these, so that dashboards know them whoever serves.
NAMES_OF_THE_PROTOCOL = {"metrics_apiserver_metric_freshness_seconds"}
# Said by the health monitor, which is a process of ours, and of a GPU all the same.
VERDICTS_ON_GPUS = {"gpu_health_check_state"}
CONFIGURED_BY_USERS = {
    "gpu_utilization": Unit.PERCENT,
    "gpu_memory_utilization": Unit.PERCENT,
    "gpu_memory_used_bytes": Unit.BYTES,
    "gpu_memory_total_bytes": Unit.BYTES,
    "gpu_power_usage_watts": Unit.WATTS,
    "gpu_temperature_celsius": Unit.CELSIUS,
    "gpu_sm_clock_mhz": Unit.MEGAHERTZ,
    "gpu_mem_clock_mhz": Unit.MEGAHERTZ,
}
SUFFIXES = {
    "_bytes",
    "_watts",
    "_joules",
    "_celsius",
    "_seconds",
    "_ratio",
    "_mhz",
    "_bytes_per_second",
    "_hertz",
    "_dollars_per_hour",
}


@pytest.fixture(params=CATALOG.metrics, ids=lambda metric: metric.name)
def metric(request):
    return request.param


def test_a_unit_is_the_last_word_of_the_name(metric):
    stem = metric.name.removesuffix("_total")
    ending = {suffix for suffix in SUFFIXES if stem.endswith(suffix)}
    if metric.unit in {Unit.NONE, Unit.PERCENT}:
        assert not ending
    else:
        assert ending == {f"_{metric.unit}"}


def test_only_counters_end_in_total_and_only_info_families_in_info(metric):
    assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER)
    assert metric.name.endswith("_info") == (metric.kind is Kind.INFO)


def test_percent_is_kept_for_utilization_as_users_configured_it(metric):
    assert (metric.unit is Unit.PERCENT) == metric.name.endswith("_utilization")


def test_our_own_metrics_and_no_others_carry_our_name(metric):
    own = isinstance(metric.origin, Own) and metric.name not in VERDICTS_ON_GPUS
    ours = own and metric.name not in NAMES_OF_THE_PROTOCOL
    assert metric.name.startswith("slicewatch_") == ours
    assert metric.name.startswith("gpu_") != own


def test_the_help_is_one_sentence(metric):
    assert metric.help.endswith(".")
    assert metric.help[0].isupper() or metric.help[0].isdigit()
    assert ". " not in metric.help
    assert "\n" not in metric.help
    assert len(metric.help) <= 120


def test_labels_come_from_the_enum_and_repeat_none_that_the_device_has(metric):
    assert all(isinstance(label, Label) for label in metric.labels)
    identity = {Label.GPU, Label.UUID, Label.MODEL, Label.NODE}
    if not isinstance(metric.origin, Own | model.Cluster):
        assert not identity & set(metric.labels)


def test_a_metric_says_what_it_describes(metric):
    assert metric.scopes
    assert metric.scopes <= set(Scope)


def test_a_value_is_computed_by_us_unless_the_family_is_constant_or_held_elsewhere(metric):
    constant = metric.kind is Kind.INFO and not isinstance(metric.origin, Probe)
    held_elsewhere = constant or isinstance(metric.origin, Own)
    assert (metric.value is None) == held_elsewhere


def test_a_served_metric_has_a_mean_over_the_window(metric):
    assert metric.serve is None or metric.windowed


def test_a_sum_of_what_readings_add_is_a_counter(metric):
    assert metric.publish is not Publish.ACCUMULATED or metric.kind is Kind.COUNTER


def test_no_name_is_declared_twice():
    names = [metric.name for metric in CATALOG]
    assert len(names) == len(set(names))


def test_no_family_takes_the_series_name_of_another():
    """OpenMetrics drops ``_total`` and ``_info`` from the name of the family."""
    families = [
        m.name.removesuffix("_total") if m.kind is Kind.COUNTER else m.name.removesuffix("_info")
        for m in CATALOG
    ]
    assert len(families) == len(set(families))


@pytest.mark.parametrize(("name", "unit"), CONFIGURED_BY_USERS.items())
def test_what_users_configured_is_there_to_the_letter_and_stable(name, unit):
    metric = CATALOG[name]
    assert (metric.kind, metric.unit) == (Kind.GAUGE, unit)
    assert metric.stability is Stability.STABLE


def test_the_names_exempt_from_the_rules_are_those_of_the_users():
    assert set(CONFIGURED_BY_USERS) == index.NAMES_OF_THE_USERS


def test_lookup_is_by_name_and_iteration_in_the_order_of_declaration():
    first = next(iter(CATALOG))
    assert CATALOG[first.name] is first
    assert first.name in CATALOG
    assert "gpu_imagined" not in CATALOG
    with pytest.raises(KeyError, match="gpu_imagined"):
        CATALOG["gpu_imagined"]


def test_each_probe_is_listed_once_and_at_least_one_metric_needs_it():
    probes = CATALOG.probes()
    assert len({probe.name for probe in probes}) == len(probes)
    assert set(probes) == {probe for metric in CATALOG for probe in reads_of(metric)}
    assert {m.origin for m in CATALOG.of(Probe)} <= set(probes)


def test_metrics_are_found_by_the_class_of_their_origin():
    assert all(isinstance(m.origin, Own) for m in CATALOG.of(Own))
    assert set(CATALOG.of(Own)) | set(CATALOG.of(*_other_origins())) == set(CATALOG)


def test_served_metrics_are_those_with_a_way_to_serve():
    assert "gpu_utilization" in {m.name for m in CATALOG.served()}
    assert all(m.serve is not None for m in CATALOG.served())


def test_a_metric_is_made_by_methods_of_its_origin_only():
    """Type checkers rely on it: the constructor is called in model.py and nowhere else."""
    from slicewatch.catalog import cluster, devices, memory, own, power, tenants, utilization

    for domain in (cluster, devices, memory, own, power, tenants, utilization):
        assert f"{Metric.__name__}(" not in inspect.getsource(domain)


def _other_origins():
    return (model.Probe, model.Derived, model.Cluster)
