"""Exporters that lie about how much they have, or come and go: nobody else waits, and no log fills."""

import asyncio
from typing import Any

import pytest

from adapter.sources import stream
from slicewatch.wire.layout import Layout
from slicewatch.wire.snapshot import MOST_DEVICES, MOST_TENANTS, WireError, decode, encode
from testbed import fleet
from tests.unit.adapter.test_streams import Fleet, sends, until


def line(layout: Layout) -> bytes:
    return encode(fleet.frame(layout))


def test_a_layout_larger_than_any_node_is_no_layout() -> None:
    """Values of a node, and who holds what, are found by walks over these rows."""
    devices = [fleet.gpu(number, mig_enabled=True) for number in range(MOST_DEVICES + 1)]
    tenants = [fleet.tenant("GPU-n1-0", f"p{number}") for number in range(MOST_TENANTS + 1)]
    assert decode(line(fleet.layout(devices[:-1], tenants[:-1]))).layout is not None
    with pytest.raises(WireError, match=f"{MOST_DEVICES + 1} devices; the most are"):
        decode(line(fleet.layout(devices)))
    with pytest.raises(WireError, match=f"{MOST_TENANTS + 1} tenants; the most are"):
        decode(line(fleet.layout(devices[:1], tenants)))


async def waits_of(made: Fleet, monkeypatch: pytest.MonkeyPatch, count: int) -> list[float]:
    """Return the first waits between the streams of a fleet, without waiting for them."""
    waits: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float, *_: Any) -> None:
        if seconds > 0.4:
            waits.append(seconds)
        await sleep(0 if seconds > 0.4 else seconds)

    monkeypatch.setattr(asyncio, "sleep", noted)
    async with made.running():
        await until(lambda: len(waits) >= count, "the waits")
    return waits[:count]


def flapping() -> Fleet:
    """Return a fleet of one whose streams end after their first line."""
    made = Fleet()
    made.hang_up.set()
    made.behaviours = {"n1": sends(line(fleet.layout([fleet.gpu(0)])))}
    return made


async def test_an_exporter_that_hangs_up_after_each_line_is_asked_less_and_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two lines of the log for each stream would fill it, if a stream came every second."""
    waits = await waits_of(flapping(), monkeypatch, 8)
    assert waits[0] <= 1.0
    assert min(waits[5:]) >= 7.0


async def test_a_stream_that_lasted_is_reopened_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "STEADY_SECONDS", 0.0)
    assert max(await waits_of(flapping(), monkeypatch, 8)) <= 1.0
