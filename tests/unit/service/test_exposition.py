"""Exposition: parsers of both formats read back exactly what was rendered."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_text

from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Kind, Own, Unit
from slicewatch.service.exposition import (
    Family,
    Format,
    Page,
    by_family,
    constant_text,
    header,
    labels_text,
)

DEVICE_METRICS = [m for m in CATALOG if not isinstance(m.origin, Own) and m.kind is not Kind.INFO]
GAUGE = CATALOG["gpu_temperature_celsius"]
COUNTER = CATALOG["gpu_energy_joules_total"]
INFO = CATALOG["gpu_info"]
ROWS = ['{gpu="0"}', '{gpu="1"}', '{gpu="2"}']


def values_of(metric):
    """Return what passes the range check, and the two ways to mark an unknown value."""
    true = st.floats(metric.limits.low, metric.limits.high)
    return true | true.map(round) | st.none() | st.just(math.nan)


label_values = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


def parsed(text, form):
    """Return ``{(series, labels): value}`` as a scraper of the format sees it."""
    families = read_text(text) if form is Format.TEXT else read_open(text + "# EOF\n")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def page_of(metrics, rows=ROWS):
    families = tuple(Family(metric, rows) for metric in metrics)
    return Page(families=families, constant=dict.fromkeys(Format, ""))


@pytest.mark.parametrize("form", Format)
@given(data=st.data())
def test_what_is_rendered_is_read_back_and_absent_rows_have_no_line(form, data):
    metrics = data.draw(st.lists(st.sampled_from(DEVICE_METRICS), unique=True, max_size=6))
    serials = data.draw(st.lists(label_values, min_size=1, max_size=4, unique=True))
    columns = {m.name: [data.draw(values_of(m)) for _ in serials] for m in metrics}

    page = page_of(metrics, [labels_text([("serial", serial)]) for serial in serials])
    text = page.render(by_family(columns), form)

    expected = {
        (name, (("serial", serial),)): float(value)
        for name, column in columns.items()
        for serial, value in zip(serials, column, strict=True)
        if value is not None and not math.isnan(value)
    }
    assert parsed(text, form) == expected


@pytest.mark.parametrize("form", Format)
@pytest.mark.parametrize("value", [None, math.nan, np.nan])
def test_a_value_that_is_unknown_has_no_line(form, value):
    text = page_of([GAUGE]).render(by_family({GAUGE.name: [value, 40.0, value]}), form)
    assert parsed(text, form) == {(GAUGE.name, (("gpu", "1"),)): 40.0}
    assert "nan" not in text.lower()


@pytest.mark.parametrize("form", Format)
def test_a_family_without_values_has_no_header_either(form):
    page = page_of([GAUGE, COUNTER])
    assert page.render(by_family({GAUGE.name: [None] * 3}), form) == ""


def test_zero_is_a_value():
    text = page_of([GAUGE]).render(by_family({GAUGE.name: [0.0, 0, None]}), Format.TEXT)
    assert set(parsed(text, Format.TEXT).values()) == {0.0}
    assert text.count("\n") == 4


def test_a_number_of_numpy_is_written_as_the_number():
    lines = Family(GAUGE, ['{gpu="0"}']).lines([np.float64(41.5)])
    assert lines == 'gpu_temperature_celsius{gpu="0"} 41.5\n'


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_digit_of_a_value_is_lost(value):
    lines = Family(GAUGE, ['{gpu="0"}']).lines([value])
    assert float(lines.split()[-1]) == value


def test_a_row_where_the_metric_does_not_apply_has_no_series():
    family = Family(GAUGE, ['{gpu="0"}', None])
    assert family.lines([40.0, 41.0]) == 'gpu_temperature_celsius{gpu="0"} 40.0\n'


@pytest.mark.parametrize("column", [[], [1.0, 2.0, 3.0, 4.0]])
def test_a_column_of_another_length_is_an_error(column):
    with pytest.raises(ValueError, match="zip"):
        Family(GAUGE, ROWS).lines(column)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ('say "no"', r"say \"no\""),
        ("C:\\temp", r"C:\\temp"),
        ("two\nlines", r"two\nlines"),
        ('\\"\n', r"\\\"\n"),
        ("München {a=b}, c", "München {a=b}, c"),
    ],
)
def test_quotes_backslashes_and_line_breaks_are_escaped(value, written):
    assert labels_text([("board", value)]) == f'{{board="{written}"}}'


@pytest.mark.parametrize("form", Format)
@given(board=label_values, serial=label_values)
def test_any_label_value_is_read_back_to_the_letter(form, board, serial):
    labels = (("board", board), ("serial", serial))
    text = page_of([GAUGE], [labels_text(labels)]).render(by_family({GAUGE.name: [1.0]}), form)
    assert parsed(text, form) == {(GAUGE.name, labels): 1.0}


@pytest.mark.parametrize("form", Format)
def test_an_empty_label_is_the_same_as_none(form):
    assert labels_text([("pod", ""), ("gpu", "0")]) == '{gpu="0"}'
    text = page_of([GAUGE], [labels_text([("pod", "")])]).render(
        by_family({GAUGE.name: [1.0]}), form
    )
    assert parsed(text, form) == {(GAUGE.name, ()): 1.0}


@pytest.mark.parametrize("metric", DEVICE_METRICS, ids=lambda m: m.name)
@pytest.mark.parametrize("form", Format)
def test_parsers_see_the_declared_type_help_and_unit(metric, form):
    text = header(metric, form) + Family(metric, ['{gpu="0"}']).lines([1.0])
    (family,) = read_text(text) if form is Format.TEXT else read_open(text + "# EOF\n")
    assert family.type == metric.kind
    assert family.documentation == metric.help
    if form is Format.OPEN_METRICS and metric.name.removesuffix("_total").endswith(
        f"_{metric.unit}"
    ):
        assert family.unit == (metric.unit or "")


def test_an_info_family_is_a_gauge_in_text_and_an_info_in_open_metrics():
    families = [(Family(INFO, ['{serial="7"}']), [1.0])]
    text = constant_text(families)
    assert "# TYPE gpu_info gauge\n" in text[Format.TEXT]
    assert "# TYPE gpu info\n" in text[Format.OPEN_METRICS]
    for form in Format:
        assert parsed(text[form], form) == {("gpu_info", (("serial", "7"),)): 1.0}


def test_a_user_name_that_does_not_end_in_its_unit_has_no_unit_line():
    """OpenMetrics requires the name to end in the unit; the users' names are older."""
    percent = CATALOG["gpu_utilization"]
    assert percent.unit is Unit.PERCENT
    assert "# UNIT" not in header(percent, Format.OPEN_METRICS)


def test_text_has_no_unit_lines():
    assert "# UNIT" not in header(GAUGE, Format.TEXT)


def test_constant_families_come_first_and_in_both_formats():
    constant = constant_text([(Family(INFO, ['{serial="7"}']), [1.0])])
    page = Page(families=(Family(GAUGE, ROWS),), constant=constant)
    for form in Format:
        text = page.render(by_family({GAUGE.name: [40.0, 41.0, 42.0]}), form)
        assert text.startswith(constant[form])
        assert len(parsed(text, form)) == 4


def test_a_constant_family_without_rows_is_left_out():
    assert constant_text([(Family(INFO, []), [])]) == dict.fromkeys(Format, "")
