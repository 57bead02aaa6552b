"""How a process runs: one root coroutine on uvloop, ended by SIGTERM or SIGINT.

All tasks live in ``asyncio.TaskGroup``s below that coroutine, so that one that fails ends the
process with its error instead of leaving a half-alive one behind.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import structlog
import uvloop

log = structlog.get_logger(__name__)


def run(
    main: Callable[[], Coroutine[Any, Any, None]],
    *,
    mendable: tuple[type[Exception], ...] = (),
) -> int:
    """Run ``main`` until it returns, fails or a signal asks to stop; return the exit status.

    Args:
        main: the root of all tasks.
        mendable: errors that whoever started the process can mend, such as a port that is taken:
            raised as they are, for the caller to say in a line. Others are logged with their
            trace.
    """
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_until_signal(main))
    except Exception as error:
        leaves = _leaves(error)
        for leaf in leaves:
            if isinstance(leaf, mendable):
                raise leaf from None
        log.exception("stopped by an error", errors=[repr(e) for e in leaves])
        return 1
    return 0


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]


async def _until_signal(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
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
    """Run named tasks beside the body; cancel them when it ends; let none fail unseen."""
    async with asyncio.TaskGroup() as group:
        started = [group.create_task(coroutine, name=name) for name, coroutine in tasks]
        try:
            yield group
        finally:
            for task in started:
                task.cancel()
