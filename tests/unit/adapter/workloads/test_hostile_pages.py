"""Pages of pods that belong to somebody else: what they hold costs their own metrics, and no time."""

import time

import pytest
from structlog.testing import capture_logs

from adapter.sources.workloads import page as module
from adapter.sources.workloads.declaration import Type, WorkloadMetric
from adapter.sources.workloads.fetching import MOST_LINES, FetchError, Reason, fetching
from adapter.sources.workloads.growth import MOST_SUMS, Counters
from adapter.sources.workloads.page import MOST_SAMPLES, PageReader

MIB = 1 << 20
ALL_ON_ONE = [WorkloadMetric(name=f"m{n}", series="x", type=Type.GAUGE) for n in range(200)]
EACH_ITS_OWN = [WorkloadMetric(name=f"m{n}", series=f"x{n}", type=Type.GAUGE) for n in range(200)]
PAGES = {
    "the same sample": b"x 1\n" * MOST_LINES,
    "many series": b"".join(b'x{a="%d"} 1\n' % number for number in range(MOST_LINES)),
    "no samples": b"x \n" * MOST_LINES,
    "empty lines": b"\n" * MOST_LINES,
    "indented": b"  x 1\n" * MOST_LINES,
    "families": b"# TYPE y gauge\n" * MOST_LINES,
    "one name": b"x" * MIB,
    "a long number": b"x " + b"1" * MIB,
    "an open label": b'x{a="' + b'\\"' * (MIB // 2),
    "open labels": b"x{" + b'a="b",' * (MIB // 6),
    "space": b"x" + b" " * MIB + b"!",
}


@pytest.mark.parametrize("metrics", [ALL_ON_ONE, EACH_ITS_OWN], ids=["one series", "many"])
@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_no_page_holds_up_the_others(page, metrics):
    """Before it was bounded, the first of these took two minutes, in which nobody was answered."""
    reader = PageReader(metrics)
    began = time.process_time()
    reader.read(page[:MIB])
    assert time.process_time() - began < 1.0  # 0.1 s on an idle machine


def test_a_page_of_too_many_samples_has_no_values_rather_than_some():
    metrics = [*ALL_ON_ONE[:2], WorkloadMetric(name="y", series="y", type=Type.GAUGE)]
    page = b"y 1\n" + b"x 1\n" * (MOST_SAMPLES // 2)
    readings = PageReader(metrics).read(page).readings
    assert {one.fault for one in readings} == {
        f"there are more than {MOST_SAMPLES} samples to read"
    }


def test_long_labels_are_read_and_not_kept():
    kept = module._kept.cache_info().currsize
    page = "".join(f'x{{a="{"v" * 1000}{number}"}} 1\n' for number in range(100))
    (reading,) = PageReader(ALL_ON_ONE[:1]).read(page.encode()).readings
    assert len(reading.series) == 100
    assert module._kept.cache_info().currsize == kept


async def test_a_page_of_a_million_lines_is_refused(serve_page):
    async with serve_page(b"\n" * (MOST_LINES + 1)) as url, fetching() as fetch:
        with pytest.raises(FetchError, match=f"more than {MOST_LINES} lines") as caught:
            await fetch(url, True)
    assert caught.value.reason is Reason.TOO_LARGE


async def test_what_a_pod_says_in_a_header_is_cut(serve_page):
    headers = {"Content-Encoding": "x" * 6_000}
    async with serve_page(b"x 1\n", headers=headers) as url, fetching() as fetch:
        with pytest.raises(FetchError) as caught:
            await fetch(url, True)
    assert len(str(caught.value)) <= 300


def test_a_histogram_with_new_buckets_on_each_page_is_not_remembered_for_ever():
    metric = WorkloadMetric(name="m", series="x", type=Type.QUANTILE)
    counters = Counters(metric)
    for number in range(100):
        buckets = {repr(float(number * 100 + one)): 1.0 for one in range(100)}
        counters.add(5.0 * number, {(): buckets | {"inf": 1.0}})
        assert len(counters._totals) <= MOST_SUMS + 101
        growth = counters.growth()
        assert growth is None or min(growth.amounts.values()) >= 0


async def test_a_pod_that_fails_every_other_time_does_not_fill_the_log(scene):
    scene.add("a", "vllm:num_requests_waiting 1\n")
    (address,) = scene.pages
    with capture_logs() as said:
        for number in range(60):
            scene.pages[address] = None if number % 2 else "vllm:num_requests_waiting 1\n"
            await scene.ask(scene.path("waiting"))
            await scene.scrape(12.0)
    changes = [one["event"] for one in said if one["event"].startswith("workload ")]
    assert changes[:2] == ["workload cannot be scraped", "workload scraped again"]
    assert len(changes) <= 10
