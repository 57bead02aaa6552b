"""Selectors of series: of one metric or of several, and which labels the series must have."""

import pytest

from slicewatch.promrules.faults import RuleError
from slicewatch.promrules.series import series_selector


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("up", "up"),
        ('gpu{pod!=""}', "gpu"),
        ('{__name__="gpu",pod!=""}', "gpu"),
        ('{pod!="", __name__=~"^gpu$"}', "gpu"),
        ('{__name__=~"gpu_.*"}', None),
        ("vllm:num_requests_waiting{}", "vllm:num_requests_waiting"),
        ('{"gpu.util", pod!=""}', "gpu.util"),
        ('{__name__!="gpu"}', None),
        ("{__name__='gpu',}", "gpu"),
    ],
)
def test_a_selector_tells_whether_it_is_of_one_metric(text, name):
    assert series_selector(text).name == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sum(up)",
        'up{pod!=""}[5m]',
        "up{pod}",
        "up{pod>1}",
        'up{pod=~"("}',
        "up{pod!=x}",
        "up{",
    ],
)
def test_what_selects_no_series_is_refused(text):
    with pytest.raises(RuleError, match=r"does not select series|regular expression"):
        series_selector(text)


@pytest.mark.parametrize(
    ("text", "demands"),
    [
        ('up{pod!=""}', True),
        ('up{pod="a"}', True),
        ('up{pod=~".+"}', True),
        ('up{pod!~"^$"}', True),
        ('up{pod=~".*"}', False),
        ('up{pod=""}', False),
        ('up{pod!="a"}', False),
        ("up", False),
    ],
)
def test_a_selector_tells_which_labels_its_series_must_have(text, demands):
    assert series_selector(text).demands("pod") == demands
