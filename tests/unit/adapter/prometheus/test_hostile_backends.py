"""Backends that lie: in their times, their sizes and their words. No 5xx without a cause follows."""

import asyncio
import json
import time
import zlib

import pytest

from adapter.sources.prometheus.backend import (
    MOST_BYTES,
    MOST_SKEW_SECONDS,
    Backend,
    BackendConfig,
)
from adapter.sources.prometheus.fault import BackendError, FaultClass
from adapter.sources.prometheus.query_result import LONGEST_SAYING, MOST_SERIES, MOST_WARNINGS
from testbed.front_proxy import WALL
from testbed.scripted_prometheus import Said, success, vector
from tests.unit.adapter.prometheus.scene import EXTERNAL, POD_RULE, PODS, QUEUE_RULE

POD = {"pod": "a"}


def dated(times):
    """Return what gives one value and, asked for the time of its sample, this."""
    return lambda asked: vector((POD, times if "timestamp(" in asked.query else 30))


@pytest.mark.parametrize("times", ["NaN", "+Inf", "1e300"])
async def test_a_time_that_is_none_is_not_known(serve, prometheus, times):
    prometheus.say = dated(times)
    async with serve(POD_RULE) as served:
        assert await served.dcgm() == {"a": "30"}
        answer = await served.ask(f"{PODS}/*/dcgm_utilization")
        (item,) = json.loads(answer.body)["items"]
        assert item["timestamp"].startswith("2026-")


async def test_a_time_before_all_times_is_too_old(serve, prometheus):
    prometheus.say = dated("-1e300")
    async with serve(POD_RULE) as served:
        await served.ask.refusal(f"{PODS}/*/dcgm_utilization", 503)


async def test_warnings_of_any_length_fit_into_a_header(serve, prometheus):
    texts = tuple("w" * 1_000_000 for _ in range(4))
    prometheus.say = lambda asked: vector(
        (POD, WALL if "timestamp(" in asked.query else 30), warnings=texts
    )
    async with serve(POD_RULE) as served:
        answer = await served.ask(f"{PODS}/*/dcgm_utilization")
    assert answer.status == 200
    assert len(answer.headers["Warning"]) < (MOST_WARNINGS + 1) * LONGEST_SAYING


ANSWERS = {
    "a matrix": success({"resultType": "matrix", "result": []}),
    "half of it": Said(body=b'{"status":"success","data":{"resultType":"vec'),
    "an error with status 200": Said(body=b'{"status":"error","error":"no"}'),
    "no object": Said(body=b"[]"),
    "nothing": Said(body=b""),
    "a page": Said(body=b"<html>sign in</html>"),
    "deep": Said(body=b'{"status":"success","data":' + b"[" * 1_000_000),
    "a number that is none": vector((POD, "1_000")),
    "values without their text": success(
        {"resultType": "vector", "result": [{"metric": POD, "value": [0, 30]}]}
    ),
    "a label that is no text": success(
        {"resultType": "vector", "result": [{"metric": {"pod": 1}, "value": [0, "30"]}]}
    ),
    "no reason": Said(body=b"", status=500),
    "an unknown status": Said(body=b"", status=799),
    "nothing of this size": Said(body=b" " * (MOST_BYTES + 1)),
    "twice encoded": Said(body=b"30", headers={"Content-Encoding": "gzip"}),
}


@pytest.mark.parametrize("said", ANSWERS.values(), ids=ANSWERS)
async def test_whatever_is_no_answer_is_unavailable_with_the_backends_name(
    serve, prometheus, said
):
    prometheus.say = lambda _: said
    async with serve(POD_RULE, QUEUE_RULE) as served:
        for path in (f"{PODS}/*/dcgm_utilization", f"{EXTERNAL}/queue_depth"):
            message = await served.ask.refusal(path, 503)
            assert "default" in message
            assert len(message) < 1_500


@pytest.mark.parametrize("series", [b'{"metric":{},"value":[1,"1"]}', b"{}", b'{"a":{}}'])
async def test_more_series_than_anybody_asks_for_are_refused_before_they_are_read(
    backend, prometheus, series
):
    """560,000 empty series fit into the size of an answer, and took seconds in which all waited."""
    body = b'{"status":"success","data":{"resultType":"vector","result":[' + b",".join(
        [series] * (2 * MOST_SERIES + 1)
    )
    prometheus.say = lambda _: Said(body=body + b"]}}")
    client = backend()
    began = time.process_time()
    with pytest.raises(BackendError, match="series; aggregate") as caught:
        await client.query("up", 1.0)
    assert caught.value.fault is FaultClass.TOO_LARGE
    assert time.process_time() - began < 1.0


async def test_a_gzip_bomb_is_not_unpacked():
    """A gigabyte of brackets in a few megabytes: no more than the limit is ever in memory."""
    packed = zlib.compressobj(1, wbits=31)
    part = packed.compress(b"[" * (1 << 24))
    pieces = [part] + [packed.compress(b"[" * (1 << 24)) for _ in range(15)] + [packed.flush()]
    sent = b"".join(pieces)

    async def answer(_, writer):
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(sent)}\r\n\r\n"
        writer.write(head.encode() + sent)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        client = Backend(BackendConfig(name="bomb", url=url))
        with pytest.raises(BackendError) as caught:
            await client.query("up", 1.0)
        await client.close()
    assert caught.value.fault is FaultClass.TOO_LARGE


@pytest.mark.parametrize("jump_seconds", [-3600.0, 3600.0])
async def test_by_a_clock_that_jumps_a_backend_is_not_asked_for_another_hour(
    serve, prometheus, jump_seconds
):
    """By one that is behind, it would give samples of that hour, and they would look new."""
    prometheus.values((POD, 30), at=WALL)
    async with serve(POD_RULE) as served:
        assert await served.dcgm() == {"a": "30"}
        served.port.wall.at += jump_seconds
        prometheus.ahead_seconds = -jump_seconds
        assert await served.dcgm() == {"a": "30"}  # asked for before
        for _ in range(2):
            served.port.pass_seconds(10)
            message = await served.ask.refusal(f"{PODS}/*/dcgm_utilization", 503)
            assert f"it is {-jump_seconds:+.0f} s from ours; set the clocks of both" in message
        served.port.wall.at -= jump_seconds
        prometheus.ahead_seconds = 0.0
        served.port.pass_seconds(10)
        assert await served.dcgm() == {"a": "30"}


async def test_by_a_clock_that_stands_still_old_samples_are_not_served_for_ever(serve, prometheus):
    prometheus.values((POD, 30), at=WALL)
    async with serve(POD_RULE) as served:
        for seconds in range(0, int(MOST_SKEW_SECONDS) + 1, 10):
            prometheus.ahead_seconds = seconds
            assert await served.dcgm() == {"a": "30"}
            served.port.monotonic.at += 10
        prometheus.ahead_seconds = MOST_SKEW_SECONDS + 2
        await served.ask.refusal(f"{PODS}/*/dcgm_utilization", 503)


@pytest.mark.parametrize("date", ["", "yesterday", "Tue, 99 Foo 2026 00:00:00 GMT"])
async def test_a_backend_that_does_not_tell_its_time_is_believed(serve, prometheus, date):
    said = vector((POD, WALL)).body
    prometheus.say = lambda _: Said(body=said, headers={"Date": date})
    async with serve(POD_RULE) as served:
        assert list(await served.dcgm()) == ["a"]
