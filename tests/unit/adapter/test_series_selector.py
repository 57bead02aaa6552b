"""What a metric selector says about how a value is made."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.api.label_selectors import SelectorError, parse
from adapter.api.request import parse as parse_request
from adapter.api.series_selector import COMBINES, WINDOWS_SECONDS, split
from adapter.api.status import Refusal
from slicewatch.catalog.model import Combine

PODS = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ml/pods/*/m"


@pytest.mark.parametrize(
    ("text", "combine", "window_seconds", "series"),
    [
        ("", None, None, ""),
        ("gpu=0", None, None, "gpu=0"),
        ("combine=avg", Combine.MEAN, None, ""),
        ("combine==sum,gpu=0", Combine.SUM, None, "gpu=0"),
        ("gpu=0,combine in (max)", Combine.MAX, None, "gpu=0"),
        ("window=15s", None, 15.0, ""),
        ("window=1m,combine=max,!profile", Combine.MAX, 60.0, "!profile"),
        ("window=1m,window in (1m)", None, 60.0, ""),
        ("app.example.com/window=5m,combines=x", None, None,
         "app.example.com/window=5m,combines=x"),
    ],
)  # fmt: skip
def test_reserved_keys_choose_how_and_the_others_which(
    text: str, combine: Combine | None, window_seconds: float | None, series: str
) -> None:
    found = split(parse(text))
    assert (found.combine, found.window_seconds) == (combine, window_seconds)
    assert found.series.requirements == parse(series).requirements
    assert found.series.text == text
    assert found.series.echo() == parse(text).echo()


@pytest.mark.parametrize(
    ("text", "possible"),
    [
        ("combine=median", "combine=avg or combine=sum or combine=max"),
        ("combine=mean", "combine=avg or combine=sum or combine=max"),
        ("combine=", "combine=avg"),
        ("combine", "combine=avg"),
        ("!combine", "combine=avg"),
        ("combine!=avg", "combine=avg"),
        ("combine notin (avg)", "combine=avg"),
        ("combine in (avg,max)", "combine=avg"),
        ("combine=avg,combine=max", "combine=avg"),
        ("combine=avg,combine!=max", "combine=avg"),
        ("window=5m", "window=15s or window=1m"),
        ("window=60s", "window=15s or window=1m"),
        ("window>15", "window=15s or window=1m"),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_can(text: str, possible: str) -> None:
    with pytest.raises(SelectorError, match=possible):
        split(parse(text))
    with pytest.raises(Refusal, match=possible) as caught:
        parse_request(f"{PODS}?metricLabelSelector={text.replace(' ', '+')}")
    assert (caught.value.code, caught.value.field) == (400, "metricLabelSelector")


@given(
    st.sampled_from(["", *COMBINES]),
    st.sampled_from(["", *WINDOWS_SECONDS]),
    st.dictionaries(
        st.from_regex(r"[a-v]([a-z]{0,4})", fullmatch=True).filter(lambda k: k != "combine"),
        st.from_regex(r"[a-z]{1,4}", fullmatch=True),
        max_size=3,
    ),
)
def test_taking_a_selector_apart_loses_nothing(
    combine: str, window: str, labels: dict[str, str]
) -> None:
    keys = labels | {k: v for k, v in (("combine", combine), ("window", window)) if v}
    found = split(parse(",".join(f"{key}={value}" for key, value in keys.items())))
    assert dict(found.series.equalities) == labels
    assert found.series.matches(labels)
    assert found.combine == COMBINES.get(combine)
    assert found.window_seconds == WINDOWS_SECONDS.get(window)
    assert found.series.echo() == ({"matchLabels": dict(sorted(keys.items()))} if keys else None)
