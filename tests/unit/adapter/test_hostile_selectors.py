"""Selectors of whoever may ask: however they are written, nobody else waits for them.

Time is compared with what the same code takes for a tenth of the input, so that a slow machine
fails nothing: what grows with the square is a hundred times slower, and not ten.
"""

import time
from collections.abc import Callable

import pytest

from adapter import offering
from adapter.api import label_selectors, paths
from adapter.api.label_selectors import LONGEST, MOST_REQUIREMENTS, SelectorError, parse
from adapter.api.paths import CUSTOM, MetricPath
from adapter.cluster.pods import Pods
from testbed import fleet
from testbed.front_proxy import WEB, Asker

SMALL, LARGE = 3_200, 32_000


def seconds(work: Callable[[], object]) -> float:
    """Return the shortest of some runs, which is the one that others disturbed least."""

    def once() -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    return min(once() for _ in range(5))


def tried(text: str) -> str:
    """Return what is said against a selector, which must be refused without repeating it all."""
    with pytest.raises(SelectorError) as caught:
        label_selectors._parsed(text)
    return str(caught.value)


@pytest.mark.parametrize(
    "form",
    ["a{ }!", "a={ }!", "{ }(", "!{ }(", "a in{ }x", "a in (b){ }!", "a in ({b}", "{b}/x", "{é}"],
)
def test_a_selector_of_any_length_is_refused_in_a_time_that_grows_with_it(form: str) -> None:
    before, rest = form.split("{")
    letter, after = rest.split("}")
    small, large = (f"{before}{letter * length}{after}" for length in (SMALL, LARGE))
    assert len(tried(large)) < 1_000
    assert seconds(lambda: tried(large)) < 40 * seconds(lambda: tried(small)) + 0.002


def test_thousands_of_values_cost_a_pod_no_more_than_one() -> None:
    one = parse("app in (web)")
    many = parse(f"app in (web,{','.join(f'v{number}' for number in range(4_000))})")
    assert len(many.text) > 20_000
    assert many.matches({"app": "v3999"})
    assert not many.matches({"app": "v4000"})
    labels = [{"app": f"x{number}"} for number in range(1_000)]
    cost = seconds(lambda: [many.matches(one) for one in labels])
    assert cost < 10 * seconds(lambda: [one.matches(each) for each in labels]) + 0.002


def test_the_longest_requirements_that_kubernetes_takes_fit() -> None:
    # A prefix of 253 and a name of 63 characters, with a value of 63.
    prefix = ".".join(["p" * 63] * 3 + ["p" * 58])
    written = [f"{prefix}/{number:02}{'k' * 61}={'v' * 63}" for number in range(MOST_REQUIREMENTS)]
    assert len(",".join(written)) <= LONGEST
    assert len(parse(",".join(written)).requirements) == MOST_REQUIREMENTS


def test_what_a_long_selector_chooses_is_not_kept() -> None:
    pods = Pods()
    pods.changed(None, fleet.web("a", "n1"))
    for number in range(3):
        assert len(pods.select("ml", parse(f"app in (web,{'v,' * 10_000}w{number})"))) == 1
    assert not pods._selections
    pods.select("ml", parse("app=web"))
    assert len(pods._selections) == 1


def test_numbers_of_any_length_are_compared_or_refused() -> None:
    assert parse(f"x>{'0' * 20_000}7").matches({"x": "8"})
    with pytest.raises(SelectorError, match="expected an integer"):
        parse(f"x>{'9' * 20_000}")


def test_long_selectors_and_paths_are_not_kept() -> None:
    kept = label_selectors._kept.cache_info().currsize, paths._kept.cache_info().currsize
    for number in range(3):
        parse(f"a in ({'v,' * 10_000}w{number})")
        metric = f"{'m' * 50_000}{number}"
        found = paths.parse(f"/apis/{CUSTOM}/v1beta2/namespaces/ml/pods/*/{metric}")
        assert isinstance(found, MetricPath)
        assert found.metric == metric
    now = label_selectors._kept.cache_info().currsize, paths._kept.cache_info().currsize
    assert now == kept


async def test_the_name_of_a_metric_is_compared_and_kept_only_if_it_could_be_one(
    ask: Asker,
) -> None:
    kept = offering._compared.cache_info().currsize
    for number in range(3):
        path = WEB.partition("?")[0] + "m" * 50_000 + str(number)
        assert "did you mean" not in await ask.refusal(path, 404)
    assert offering._compared.cache_info().currsize == kept
    assert "did you mean gpu_utilization" in await ask.refusal(f"{WEB.partition('?')[0]}x", 404)
