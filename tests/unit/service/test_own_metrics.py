"""Our own metrics: all that the catalog declares exist and are rendered in both formats."""

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_text

from slicewatch.catalog import CATALOG, own
from slicewatch.catalog.model import Kind, Own
from slicewatch.service.exposition import Format
from slicewatch.service.own_metrics import OwnMetrics

ORIGINS = list(dict.fromkeys(m.origin for m in CATALOG.of(Own)))


def declared(origin):
    return [m for m in CATALOG.of(Own) if m.origin is origin]


def touched(origin):
    """Return the metrics of a process of which each has one series."""
    metrics = OwnMetrics(origin)
    for metric in declared(origin):
        get = {
            Kind.COUNTER: metrics.counter,
            Kind.GAUGE: metrics.gauge,
            Kind.INFO: metrics.gauge,
            Kind.HISTOGRAM: metrics.histogram,
        }[metric.kind]
        held = get(metric)
        held = held.labels(*("x" for _ in metric.labels)) if metric.labels else held
        held.observe(0.002) if metric.kind is Kind.HISTOGRAM else held.inc(0.002)
    return metrics


def read(metrics, form):
    text = metrics.render(form).decode()
    found = read_open(text) if form is Format.OPEN_METRICS else read_text(text)
    return {family.name: family for family in found}


@pytest.fixture(params=ORIGINS, ids=lambda origin: origin.name)
def origin(request):
    return request.param


def test_the_exporter_and_the_adapter_speak_of_themselves():
    assert {own.EXPORTER, own.ADAPTER} <= set(ORIGINS)


@pytest.mark.parametrize("form", Format)
def test_every_declared_metric_is_rendered_as_declared(origin, form):
    families = read(touched(origin), form)
    for metric in declared(origin):
        family = families[metric.name.removesuffix("_total")]
        assert family.type == (Kind.GAUGE if metric.kind is Kind.INFO else metric.kind)
        assert family.documentation == metric.help
        assert len(family.samples) >= 1
        assert set(family.samples[0].labels) - {"le"} == set(metric.labels)


@pytest.mark.parametrize("form", Format)
def test_nothing_of_ours_is_rendered_that_is_not_declared(origin, form):
    names = {m.name.removesuffix("_total") for m in declared(origin)}
    families = read(touched(origin), form)
    assert {name for name in families if not name.startswith(("process_", "python_"))} == names


def test_open_metrics_ends_with_eof_and_text_has_none(origin):
    metrics = touched(origin)
    assert metrics.render(Format.OPEN_METRICS).endswith(b"\n# EOF\n")
    assert b"# EOF" not in metrics.render(Format.TEXT)


def test_the_interpreters_metrics_come_along(origin):
    families = read(OwnMetrics(origin), Format.TEXT)
    assert "process_resident_memory_bytes" in families
    assert "python_gc_collections" in families


def test_two_processes_in_one_interpreter_do_not_share_values():
    one, other = OwnMetrics(own.EXPORTER), OwnMetrics(own.EXPORTER)
    one.gauge(own.SNAPSHOT_AGE).set(5)
    name = own.SNAPSHOT_AGE.name
    assert one.registry.get_sample_value(name) == 5.0
    assert other.registry.get_sample_value(name) == 0.0


def test_a_histogram_has_the_declared_buckets():
    family = read(touched(own.EXPORTER), Format.OPEN_METRICS)[own.TICK_SECONDS.name]
    bounds = [float(s.labels["le"]) for s in family.samples if s.name.endswith("_bucket")]
    assert tuple(bounds[:-1]) == own.TICK_SECONDS.buckets
    assert bounds[-1] == float("inf")


def test_asking_for_another_kind_than_declared_is_an_error():
    metrics = OwnMetrics(own.EXPORTER)
    with pytest.raises(TypeError, match="slicewatch_tick_duration_seconds is a histogram"):
        metrics.gauge(own.TICK_SECONDS)


def test_asking_for_a_metric_of_another_process_is_an_error():
    with pytest.raises(KeyError, match="slicewatch_adapter_pods_synced"):
        OwnMetrics(own.EXPORTER).gauge(own.PODS_SYNCED)


def test_open_metrics_says_since_when_something_counts_and_text_does_not():
    metrics = touched(own.EXPORTER)
    for form in Format:
        text = metrics.render(form).decode()
        for name in ("slicewatch_rejected_readings_created", f"{own.TICK_SECONDS.name}_created"):
            assert (f"\n{name}" in text) is (form is Format.OPEN_METRICS)


def test_open_metrics_says_the_unit_that_a_name_ends_with(origin):
    text = touched(origin).render(Format.OPEN_METRICS).decode()
    for metric in declared(origin):
        family = metric.name.removesuffix("_total")
        says = f"# UNIT {family} {metric.unit}\n" in text
        assert says == bool(metric.unit and family.endswith(f"_{metric.unit}"))
