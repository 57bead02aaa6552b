"""When pods are scraped: spread over the interval, a few at once, hanging ones less often."""

import asyncio
from contextlib import asynccontextmanager
from itertools import pairwise

from adapter.sources.workloads.declaration import Configuration
from adapter.sources.workloads.fetching import FetchError, Reason


async def simulated(scene, seconds, step=0.5):
    """Scrape what is due every half second for some time; return the moments by host."""
    began = scene.port.monotonic()
    times = {}
    while scene.port.monotonic() < began + seconds:
        for pod in scene.port.pods.in_namespace("ml").values():
            scene.scraper.want(pod)
        for followed in list(scene.scraper.due()):
            moment = scene.port.monotonic() - began
            times.setdefault(followed.pod.metadata.name, []).append(moment)
            await scene.scraper.scrape(followed, scene.fetch)
        scene.port.pass_seconds(step)
    return times


async def test_a_pod_is_scraped_once_per_interval(scene):
    scene.add("a", "vllm:num_requests_waiting 3\n")
    times = (await simulated(scene, 60))["a"]
    gaps = [after - before for before, after in pairwise(times)]
    assert 2.5 <= gaps[0] <= 8
    assert set(gaps[1:]) <= {4.5, 5.0, 5.5}


async def test_pods_that_were_first_asked_about_together_are_spread_over_the_interval(scene):
    for number in range(100):
        scene.add(f"pod-{number}", "")
    times = await simulated(scene, 14)
    third = [moments[2] for moments in times.values()]
    most = max(third.count(moment) for moment in third)
    assert most <= 25
    assert max(third) - min(third) >= 4


async def test_a_pod_that_hangs_is_tried_less_and_less_often_and_is_soon_back(scene):
    scene.add("a", "")
    hanging = True
    answered = scene.fetch

    async def fetch(url, verify):
        if hanging:
            raise FetchError(Reason.TIMEOUT, "no complete answer in 2 s")
        return await answered(url, verify)

    scene.fetch = fetch
    times = (await simulated(scene, 300))["a"]
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps[0] < gaps[1] < gaps[2]
    assert 35 <= max(gaps) <= 45
    hanging = False
    times = (await simulated(scene, 60))["a"]
    assert len(times) >= 60 / 5 - 45 / 5


async def test_a_pod_that_refuses_connections_is_tried_as_often_as_any_other(scene):
    scene.add("a", None)
    assert len((await simulated(scene, 60))["a"]) >= 11


async def test_no_more_connections_are_open_than_there_may_be_and_all_pods_get_one(scene):
    for number in range(40):
        scene.add(f"pod-{number}", "")
    open_now = most = 0
    gate = asyncio.Event()

    async def fetch(url, verify):
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        if open_now == 7:
            gate.set()
        await gate.wait()
        open_now -= 1
        return b""

    @asynccontextmanager
    async def opened():
        yield fetch

    scraper = scene.scraper_of(opened=opened, most_connections=7)
    followed = [scraper.want(pod) for pod in scene.port.pods.in_namespace("ml").values()]
    async with asyncio.TaskGroup() as group:
        running = group.create_task(scraper.run())
        await scraper.tried(followed, 20)
        running.cancel()
    assert all(one.tried for one in followed)
    assert most == 7


async def test_what_is_under_way_when_the_configuration_changes_belongs_to_the_old_one(scene):
    pod = scene.add("a", "vllm:num_requests_waiting 3\n")
    before = scene.scraper.want(pod)

    async def fetch(url, verify):
        scene.scraper.configure(Configuration())
        return await scene.fetch(url, verify)

    await scene.scraper.scrape(before, fetch)
    after = scene.scraper.want(pod)
    assert after is not before
    assert after.latest is None
    assert before.fault == ""
