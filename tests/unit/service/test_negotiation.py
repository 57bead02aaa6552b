"""Which format a scraper receives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.service.exposition import Format, negotiate

OPEN_METRICS = {
    "Prometheus 2.42": (
        "application/openmetrics-text;version=1.0.0,"
        "application/openmetrics-text;version=0.0.1;q=0.75,"
        "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    ),
    "Prometheus 2.26": (
        "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    ),
    "Prometheus 3": (
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
        "application/openmetrics-text;version=0.0.1;q=0.4,"
        "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
        "text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
    ),
    "Prometheus 3 with native histograms": (
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;"
        "encoding=delimited;q=0.6,"
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
        "application/openmetrics-text;version=0.0.1;q=0.4,"
        "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
        "text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
    ),
    "no version": "application/openmetrics-text",
    "equal to text": "text/plain;q=0.5,application/openmetrics-text;q=0.5",
    "capitals and blanks": " Application/OpenMetrics-Text ; Version=1.0.0 ; Q=0.9 , text/plain;q=0.1",
}
TEXT = {
    "nothing": "",
    "curl": "*/*",
    "a browser": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Prometheus 3 told to use text": (
        "text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1"
    ),
    "text of any kind first": "text/*,application/openmetrics-text;q=0.5",
    "anything first": "*/*,application/openmetrics-text;q=0.5",
    "a later version only": "application/openmetrics-text;version=2.0.0,*/*;q=0.1",
    "ruled out": "application/openmetrics-text;q=0",
    "protobuf only": "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily",
    "a weight that is none": "application/openmetrics-text;q=high,text/plain;q=0.1",
    "a weight that is no number": "application/openmetrics-text;q=nan,text/plain;q=0.1",
}


@pytest.mark.parametrize("accept", OPEN_METRICS.values(), ids=OPEN_METRICS)
def test_open_metrics_goes_to_those_who_rank_it_first(accept):
    assert negotiate(accept) is Format.OPEN_METRICS


@pytest.mark.parametrize("accept", TEXT.values(), ids=TEXT)
def test_text_goes_to_all_others(accept):
    assert negotiate(accept) is Format.TEXT


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_the_larger_weight_wins(open_metrics, text):
    accept = f"text/plain;q={text / 1000},application/openmetrics-text;q={open_metrics / 1000}"
    expected = Format.OPEN_METRICS if open_metrics >= text else Format.TEXT
    assert negotiate(accept) is expected


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
def test_any_header_is_answered(accept):
    assert negotiate(accept) in Format
