"""Lines of a stream from another process, however the sender cuts it into pieces.

aiohttp's own iteration copies what it has of a line for every piece, so that two megabytes in
pieces of one byte would take seconds in which nothing else runs; and it gives out one line at a
time, so that a reader who is behind cannot see what is out of date.
"""

from collections.abc import AsyncIterator

from aiohttp import StreamReader


async def lines(content: StreamReader, longest: int) -> AsyncIterator[bytes]:
    """Yield complete lines without their ends; what follows the last of them is no line.

    Raises:
        ValueError: a line is longer than ``longest`` bytes.
    """
    async for batch in batches(content, longest):
        for line in batch:
            yield line


async def batches(content: StreamReader, longest: int) -> AsyncIterator[list[bytes]]:
    """Yield the lines that are complete at one moment, the latest last; never none.

    Raises:
        ValueError: a line is longer than ``longest`` bytes.
    """
    begun = bytearray()
    async for piece in content.iter_any():
        *ended, rest = piece.split(b"\n")
        if ended and begun:
            begun += ended[0]
            ended[0] = bytes(begun)
            begun.clear()
        begun += rest
        if max(map(len, ended), default=0) > longest:
            raise _too_long(longest)
        if ended:
            yield ended
        if len(begun) > longest:
            raise _too_long(longest)


def _too_long(longest: int) -> ValueError:
    return ValueError(f"a line has more than {longest} bytes")
