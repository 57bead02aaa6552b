"""Unix sockets for callers on the node.

A socket and no port: who may open it is decided by the node's file system, and nobody outside of
the node reaches it.
"""

import contextlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from aiohttp import web

MODE: Final = 0o660
# It gets its name when it is complete, so that nobody finds one that may not be opened yet.
UNFINISHED: Final = ".new"


@asynccontextmanager
async def listening(
    app: web.Application, path: Path, *, setting: str, group: int | None = None
) -> AsyncIterator[None]:
    """Serve ``app`` on a Unix socket while the body runs.

    A socket that an exporter left behind is replaced, and so is that of one that still runs, as
    the old one does for a while when the DaemonSet is updated.

    Args:
        app: what is served.
        path: in a folder that is there.
        setting: which one names the path, for error messages.
        group: number of the group that may open it beside the owner; None for our own.

    Raises:
        OSError: the folder is missing or may not be written to, or there is something else.
    """
    _check(path, setting)
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=2)
    await runner.setup()
    inode = None
    try:
        inode = await _bind(runner, path, group)
        yield
    finally:
        await runner.cleanup()
        _remove(path, inode)


def _check(path: Path, setting: str) -> None:
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"{setting}: there is no folder {path.parent}; mount one there, or leave the"
            " setting empty for no socket"
        )
    if path.exists() and not path.is_socket():
        raise FileExistsError(
            f"{setting}: {path} is no socket; choose another path, or remove what is there"
        )


async def _bind(runner: web.AppRunner, path: Path, group: int | None) -> int:
    """Listen at the path; return the inode of the socket."""
    unfinished = path.with_name(path.name + UNFINISHED)
    await web.UnixSite(runner, os.fspath(unfinished)).start()
    if group is not None:
        os.chown(unfinished, -1, group)
    unfinished.chmod(MODE)
    inode = unfinished.stat().st_ino
    unfinished.rename(path)
    return inode


def _remove(path: Path, inode: int | None) -> None:
    """Remove our socket, unless another exporter's has taken its place."""
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_ino == inode:
            path.unlink()
