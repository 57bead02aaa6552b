"""The file of the kernel's log: followed, lost, opened anew."""

import asyncio
import errno
import os
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from exporter.kernel_log import reader
from exporter.kernel_log.reader import READS_AT_ONCE, KernelLog
from slicewatch.service.backoff import Backoff
from slicewatch.service.tasks import background
from tests.unit.exporter.desk import until

KMSG = Path("/dev/kmsg")


def xid_line(sequence, number, priority=4):
    return f"{priority},{sequence},{sequence}000000,-;NVRM: Xid (PCI:0000:01:00): {number}, x\n"


def other_line(sequence):
    return f"6,{sequence},{sequence}000000,-;veth0: entered disabled state\n K=v\n"


class Kernel:
    """Writes records into a pipe."""

    def __init__(self, path):
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def write(self, *lines):
        os.write(self._descriptor, "".join(lines).encode())

    def close(self):
        os.close(self._descriptor)


@contextmanager
def kernel_at(path):
    os.mkfifo(path)
    made = Kernel(path)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def kernel(tmp_path):
    with kernel_at(tmp_path / "kmsg") as made:
        yield made


@asynccontextmanager
async def following(path):
    """Follow a log with pauses of no length; yield it and the numbers that it took."""
    numbers = []
    followed = KernelLog(
        path,
        lambda xids: numbers.extend(xid.number for xid in xids),
        pause=Backoff(first_seconds=0.001, most_seconds=0.01),
    )
    async with background(("kernel log", followed.run())):
        yield followed, numbers


async def test_what_is_there_already_and_what_comes_is_taken_in_order(kernel):
    kernel.write(other_line(1), xid_line(2, 79))
    async with following(kernel.path) as (followed, numbers):
        await until(lambda: numbers == [79])
        kernel.write(xid_line(3, 31), other_line(4))
        kernel.write(xid_line(5, 43))
        await until(lambda: numbers == [79, 31, 43])
        assert (followed.reason, followed.lost) == ("", 0)


async def test_what_another_than_the_kernel_wrote_is_not_believed(kernel):
    """Whoever may write there could take a node out (NVSentinel #1426)."""
    async with following(kernel.path) as (_, numbers):
        kernel.write(xid_line(1, 79, priority=12), xid_line(2, 31))
        await until(lambda: numbers == [31])


async def test_a_gap_in_the_sequence_is_counted_and_the_beginning_is_none(kernel):
    kernel.write(xid_line(700, 1))
    async with following(kernel.path) as (followed, numbers):
        kernel.write(xid_line(704, 2), xid_line(705, 3))
        await until(lambda: numbers == [1, 2, 3])
        assert followed.lost == 3


async def test_lines_that_mean_nothing_cost_nothing_but_themselves(kernel):
    async with following(kernel.path) as (followed, numbers):
        kernel.write("rubbish\n", ";;;\n", "4,x,1,-;NVRM: Xid\n", xid_line(2, 48))
        await until(lambda: numbers == [48])
        assert followed.reason == ""


async def test_a_file_that_cannot_be_opened_is_said_and_tried_again(tmp_path):
    path = tmp_path / "kmsg"
    async with following(path) as (followed, numbers):
        await until(lambda: followed.reason == "no_file")
        with kernel_at(path) as kernel:
            kernel.write(xid_line(1, 62))
            await until(lambda: numbers == [62])
            assert followed.reason == ""


async def test_a_plain_file_is_no_log(tmp_path):
    path = tmp_path / "kern.log"
    path.write_text(xid_line(1, 79))
    async with following(path) as (followed, numbers):
        await until(lambda: followed.reason == "failed")
        assert numbers == []


async def test_a_file_that_is_opened_anew_tells_nothing_twice(kernel, monkeypatch):
    """Each opening of /dev/kmsg begins with the oldest record again."""
    fail = asyncio.Event()
    real = os.read

    def read(descriptor, size):
        if fail.is_set():
            fail.clear()
            raise OSError(errno.EIO, "told to fail")
        return real(descriptor, size)

    monkeypatch.setattr(reader.os, "read", read)
    async with following(kernel.path) as (followed, numbers):
        kernel.write(xid_line(1, 13), xid_line(2, 31))
        await until(lambda: numbers == [13, 31])
        fail.set()
        kernel.write(xid_line(1, 13), xid_line(2, 31), xid_line(3, 48))
        await until(lambda: numbers == [13, 31, 48])
        assert (followed.reason, followed.lost) == ("", 0)


async def test_records_that_were_overwritten_do_not_end_the_reading(kernel, monkeypatch):
    """The kernel answers EPIPE once, and goes on with the oldest record that it still has."""
    answers = iter([BrokenPipeError(errno.EPIPE, "overwritten"), None])
    real = os.read

    def read(descriptor, size):
        if isinstance(answer := next(answers, None), OSError):
            raise answer
        return real(descriptor, size)

    kernel.write(xid_line(1, 13))
    monkeypatch.setattr(reader.os, "read", read)
    async with following(kernel.path) as (followed, numbers):
        await until(lambda: numbers == [13])
        assert followed.reason == ""


async def test_a_full_log_leaves_the_loop_time_for_others(kernel, monkeypatch):
    """The rings of large machines hold tens of thousands of records."""
    lines = [xid_line(n, 13).encode() for n in range(1, 3 * READS_AT_ONCE + 1)]
    batches = []

    def read(descriptor, size):
        if not lines:
            raise BlockingIOError
        return lines.pop(0)

    monkeypatch.setattr(reader.os, "read", read)
    # The pipe only has to be readable.
    kernel.write(other_line(1))
    followed = KernelLog(kernel.path, lambda xids: batches.append(len(xids)))
    async with background(("kernel log", followed.run())):
        await until(lambda: not lines)
    assert batches == [READS_AT_ONCE] * 3


@pytest.mark.skipif(not os.access(KMSG, os.R_OK), reason="the kernel's log may not be read here")
async def test_the_log_of_this_kernel_can_be_followed():
    async with following(KMSG) as (followed, _):
        await until(lambda: followed._newest is not None)
        assert followed.reason == ""
