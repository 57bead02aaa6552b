"""How a process runs: one root coroutine on uvloop, stopped by SIGTERM or SIGINT.

All tasks live in ``asyncio.TaskGroup``s below that coroutine, so that one that fails ends the
process with its error instead of leaving a half-alive one behind.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any

import uvloop

from slicewatch.service import logs

Main = Callable[[], Coroutine[Any, Any, None]]

log = logs.logger(__name__)


def run(
    main: Main,
    *,
    name: str = "slicewatch",
    user_errors: tuple[type[Exception], ...] = (),
) -> int:
    """Run ``main`` until it returns, fails or a signal asks to stop; return the exit status.

    Args:
        main: the root of all tasks.
        name: what error messages begin with.
        user_errors: errors that whoever started the process can fix, such as a taken port:
            reported in one line, status 2. Any other is logged with its traceback, status 1.
    """
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_until_signal(main))
    except Exception as error:
        leaves = _leaves(error)
        if of_user := [leaf for leaf in leaves if isinstance(leaf, user_errors)]:
            return refuse(name, of_user)
        log.exception("stopped by an error", errors=[repr(e) for e in leaves])
        return 1
    return 0


def refuse(name: str, faults: Iterable[object]) -> int:
    """Write one line per fault to standard error; return the exit status 2."""
    sys.stderr.writelines(f"{name}: {_said(fault)}\n" for fault in faults)
    return 2


def _said(fault: object) -> str:
    """Return a fault in words; the system's own about a file begin with it, as all others do."""
    if isinstance(fault, OSError) and fault.filename and fault.strerror:
        return f"{fault.filename}: {fault.strerror}"
    return str(fault)


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]


async def _until_signal(main: Main) -> None:
    loop = asyncio.get_running_loop()
    task = loop.create_task(main(), name=getattr(main, "__name__", "main"))
    stopped_by: list[str] = []

    def stop(name: str) -> None:
        stopped_by.append(name)
        task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number.name)
    try:
        await task
    except asyncio.CancelledError:
        if not stopped_by:
            raise
        log.info("stopped", signal=stopped_by[0])


@asynccontextmanager
async def background(
    *tasks: tuple[str, Coroutine[Any, Any, None]],
) -> AsyncIterator[asyncio.TaskGroup]:
    """Run named tasks alongside the body, and cancel them when it ends; no failure goes unseen."""
    async with asyncio.TaskGroup() as group:
        started = [group.create_task(coroutine, name=name) for name, coroutine in tasks]
        try:
            yield group
        finally:
            for task in started:
                task.cancel()
