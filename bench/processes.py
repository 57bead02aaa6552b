"""Child processes of the benchmark: begun, asked, paused, and ended whatever happens."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar

from bench.errors import BenchError

T = TypeVar("T")

ROOT: Final = Path(__file__).parent.parent
END_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 10.0
_TAIL_LINES: Final = 12


class Child:
    """One running process, with pipes to its standard input and output."""

    def __init__(self, name: str, process: Process, log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def ask(self) -> bytes:
        """Send an empty line and return the line that it answers.

        Raises:
            BenchError: it ended, or does not answer.
        """
        asked, answers = self._process.stdin, self._process.stdout
        if asked is None or answers is None:
            raise TypeError(f"{self.name} was started without pipes")
        try:
            asked.write(b"\n")
            async with asyncio.timeout(ANSWER_SECONDS):
                line = await answers.readline()
        except (OSError, TimeoutError) as error:
            raise BenchError(f"{self.name} does not answer{self.tail()}") from error
        if not line:
            raise BenchError(f"{self.name} ended{self.tail()}")
        return line

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let it stand still while the body runs."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def require_alive(self) -> None:
        """Raise ``BenchError`` with the end of its log if it has ended."""
        if self._process.returncode is not None:
            raise BenchError(
                f"{self.name} ended with status {self._process.returncode}{self.tail()}"
            )

    def tail(self) -> str:
        """Return the last lines that it wrote to standard error, for an error's message."""
        lines = self.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
        return "; its log ends with:\n" + "\n".join(lines) if lines else "; its log is empty"

    async def end(self) -> None:
        """Ask it to end, and insist after a while."""
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._signal(signal.SIGKILL)
            await self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)


@asynccontextmanager
async def running(
    name: str,
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    *,
    python: Path = Path(sys.executable),
) -> AsyncIterator[Child]:
    """Run ``python -m`` with these arguments while the body runs.

    Args:
        name: of the process in messages, and of its log in ``folder``.
        arguments: module, flags.
        folder: where its log is written.
        environment: variables beside those of this process.
        python: the interpreter.
    """
    command = [str(python), "-m", *arguments]
    async with program(name, command, folder, environment) as child:
        yield child


@asynccontextmanager
async def program(
    name: str,
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[Child]:
    """Run any program while the body runs; as ``running``, but for the whole command."""
    log = folder / f"{name}.log"
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE, stdout=PIPE, stderr=errors, cwd=ROOT,
            env=os.environ | dict(environment or {}),
        )  # fmt: skip
    child = Child(name, process, log)
    try:
        yield child
        child.require_alive()
    finally:
        await asyncio.shield(child.end())


async def until(
    attempt: Callable[[], Awaitable[T | None]],
    *,
    what: str,
    seconds: float,
    child: Child,
    every_seconds: float = 0.05,
) -> T:
    """Repeat ``attempt`` until it returns something true, and return that.

    A refused connection counts as an attempt that returned nothing.

    Raises:
        BenchError: the child ended, or the time was over.
    """
    deadline = time.monotonic() + seconds
    while True:
        child.require_alive()
        with contextlib.suppress(OSError):
            if answer := await attempt():
                return answer
        if time.monotonic() > deadline:
            raise BenchError(f"waited {seconds:g} s in vain for {what}{child.tail()}")
        await asyncio.sleep(every_seconds)
