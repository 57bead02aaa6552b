"""Lines of a stream: the same however the sender cuts it, at a cost that grows with its length."""

import asyncio
import time
from collections.abc import Iterable

import pytest
from aiohttp import StreamReader
from aiohttp.base_protocol import BaseProtocol
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.service.lines import lines

MIB = 1 << 20


async def read(pieces: Iterable[bytes], longest: int = MIB) -> list[bytes]:
    """Return the lines of a stream that arrives in these pieces."""
    reader = StreamReader(BaseProtocol(asyncio.get_running_loop()), limit=MIB)
    for piece in pieces:
        reader.feed_data(piece)
    reader.feed_eof()
    return [line async for line in lines(reader, longest)]


@given(st.lists(st.text("ab\n\r{", max_size=6).map(str.encode)))
def test_lines_are_the_same_however_they_are_cut(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    assert asyncio.run(read(pieces)) == whole.split(b"\n")[:-1]


@pytest.mark.parametrize("piece", [b"x", b"x\n", b"x" * 100_000, b"\n"])
def test_a_line_has_its_limit(piece: bytes) -> None:
    long = [b"ok\n", piece, *[b"y" * 100] * 10, b"\n"]
    with pytest.raises(ValueError, match="more than 900 bytes"):
        asyncio.run(read(long, longest=900))


def test_a_megabyte_in_pieces_of_one_byte_holds_up_nobody() -> None:
    """An exporter that sent so stopped the adapter for eleven seconds."""
    began = time.process_time()
    assert asyncio.run(read([*[b"x"] * MIB, b"\n"])) == [b"x" * MIB]
    assert time.process_time() - began < 5.0  # 0.5 s on an idle machine
