"""Pages: the wanted series of both formats, against prometheus-client's own parsers."""

import math
import string
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from adapter.sources.workloads.declaration import Type, WorkloadMetric
from adapter.sources.workloads.page import MOST_SERIES, PageReader

FORMATS = [generate_latest, generate_openmetrics]


def metric(series, kind=Type.GAUGE, **labels):
    return WorkloadMetric(name="m", series=series, type=kind, labels=tuple(sorted(labels.items())))


def read(page, *metrics):
    page = page.encode() if isinstance(page, str) else page
    return PageReader(metrics).read(page)


def one(page, series="wanted", kind=Type.GAUGE, **labels):
    return read(page, metric(series, kind, **labels)).readings[0]


@pytest.mark.parametrize(
    ("line", "labels", "value"),
    [
        ("wanted 1", (), 1.0),
        ("  \twanted\t 1.5e3 \t", (), 1500.0),
        ("wanted{} -.5", (), -0.5),
        ('wanted{a="x"} 2 1700000000000', (("a", "x"),), 2.0),
        ('wanted { a = "x" , b="y", } 2', (("a", "x"), ("b", "y")), 2.0),
        ('wanted{a="}, b=\\"#"} 3 # {trace="1"} 0.5 17.5', (("a", '}, b="#'),), 3.0),
        ('wanted{a="\\\\n\\n"} 4', (("a", "\\n\n"),), 4.0),
        ('wanted{"a.b"="x"} 5', (("a.b", "x"),), 5.0),
        ("wanted 6\r", (), 6.0),
    ],
)
def test_a_sample_is_read_as_it_is_written(line, labels, value):
    page = f"# HELP wanted # wanted 9\nother 8\nwanted_too 7\n{line}\n"
    reading = one(page)
    assert (reading.fault, reading.series) == ("", {labels: {"": value}})


@pytest.mark.parametrize("line", ["# wanted 1", "not_wanted 1", "wanted:x 1", "wantedx 1", ""])
def test_a_line_about_something_else_is_not_read(line):
    reading = one(line)
    assert (reading.series, reading.fault, reading.announced) == ({}, "", False)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("wanted", "not a sample"),
        ("wanted{a=x} 1", "its labels cannot be read"),
        ('wanted{a="x" 1', "not a sample"),
        ("wanted 1_000", "the value is not a number"),
        ("wanted one", "the value is not a number"),
        ("wanted +Inf", "the value is inf"),
        ("wanted 1 2 3", "not a sample"),
        ('wanted{a="' + "x" * 5000 + '"} 1', "longer than 4096 bytes"),
    ],
)
def test_a_line_that_cannot_be_used_costs_its_metric_and_no_other(line, why):
    """prometheus-adapter #394: an infinite value is not a number to scale by."""
    readings = read(f"other 1\n{line}\n", metric("wanted"), metric("other")).readings
    assert readings[0].fault.startswith("line 2 cannot be used: ")
    assert why in readings[0].fault
    assert readings[1].series == {(): {"": 1.0}}


def test_not_a_number_is_no_value_of_a_family_that_is_there():
    """prometheus-adapter #280, KEDA #7475: NaN is neither 0 nor a number."""
    reading = one("wanted NaN\n")
    assert (reading.series, reading.announced, reading.fault) == ({}, True, "")


def test_only_series_with_the_declared_labels_count():
    page = 'wanted{m="a",e="0"} 1\nwanted{m="a",e="1"} 2\nwanted{m="b",e="0"} 4\n'
    reading = one(page, m="a")
    assert [parts[""] for parts in reading.series.values()] == [1.0, 2.0]


def test_a_family_is_there_even_if_it_has_no_samples():
    assert one("# TYPE wanted gauge\n").announced
    assert one("# TYPE n counter\n", series="n_total").announced
    assert not one("# TYPE wanted_too gauge\n").announced


def test_the_names_of_a_page_are_kept_only_if_something_is_missing_in_it():
    page = "wanted 1\nother{} 2\n# TYPE x gauge\n"
    assert read(page, metric("wanted")).names == frozenset()
    assert read(page, metric("wanted"), metric("lost")).names == {"wanted", "other"}


def test_an_endless_number_of_series_is_refused():
    page = "".join(f'wanted{{a="{n}"}} 1\n' for n in range(MOST_SERIES + 1))
    assert f"more than {MOST_SERIES} series; choose some by labels" in one(page).fault


def test_names_with_colons_are_names():
    reading = one('vllm:num_requests_waiting{engine="0"} 3\n', "vllm:num_requests_waiting")
    assert list(reading.series.values()) == [{"": 3.0}]


@pytest.mark.parametrize("generate", FORMATS)
def test_a_page_of_prometheus_client_is_read_in_both_formats(generate):
    registry = CollectorRegistry()
    Gauge("wanted", "A gauge.", ["a"], registry=registry).labels('q"\\\n').set(2.5)
    Counter("n", "A counter.", registry=registry).inc(3)
    took = Histogram("took_seconds", "A time.", ["m"], buckets=(1, 2.5), registry=registry)
    for seconds in (0.5, 2, 9):
        took.labels("x").observe(seconds, {"trace": "abc"} if generate is FORMATS[1] else None)
    readings = read(
        generate(registry),
        metric("wanted"),
        metric("n_total", Type.RATE),
        metric("took_seconds", Type.AVERAGE),
        metric("took_seconds", Type.QUANTILE),
    ).readings
    assert [reading.series for reading in readings] == [
        {(("a", 'q"\\\n'),): {"": 2.5}},
        {(): {"": 3.0}},
        {(("m", "x"),): {"sum": 11.5, "count": 3.0}},
        {(("m", "x"),): {"1.0": 1.0, "2.5": 2.0, "inf": 3.0}},
    ]


names = st.text(string.ascii_lowercase, min_size=1, max_size=3)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.floats(allow_infinity=False, allow_nan=False)
samples = st.lists(
    st.tuples(
        st.sampled_from(["wanted", "wanted_too", "other"]),
        st.dictionaries(names, texts, max_size=3),
        values,
        st.sampled_from(["", " 1700000000000"]),
    ),
    max_size=8,
    unique_by=lambda s: (s[0], frozenset(s[1].items())),
)


def written(name, labels, value, end):
    escaped = {
        k: v.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
        for k, v in labels.items()
    }
    inner = ",".join(f'{key}="{text}"' for key, text in escaped.items())
    return f"{name}{{{inner}}} {value!r}{end}\n"


@given(samples)
def test_whatever_is_written_is_read_as_prometheus_client_reads_it(given_samples):
    # Its parser also ends lines where Python's does, which no format says.
    assume(not any(len(t.splitlines()) > 1 for s in given_samples for t in s[1].values()))
    page = "".join(written(*sample) for sample in given_samples)
    expected = {
        tuple(sorted(sample.labels.items())): {"": sample.value}
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == "wanted"
    }
    reading = one(page)
    assert (reading.fault, reading.series) == ("", expected)


@given(st.binary(max_size=200))
def test_no_page_breaks_the_reader(rest):
    reading = one(b"wanted" + rest)
    assert all(math.isfinite(v) for parts in reading.series.values() for v in parts.values())


@given(st.text('{}",=\\ \n#wanted1', max_size=80))
def test_nothing_that_looks_like_a_page_breaks_the_reader(text):
    one(text)


def test_a_page_of_the_largest_size_is_read_at_once_even_if_it_is_made_to_be_hard():
    hard = b"wanted" + b'{a="' * 260_000
    began = time.perf_counter()
    assert one(hard).fault
    assert time.perf_counter() - began < 1.0
