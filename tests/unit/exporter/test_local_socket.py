"""The file of a Unix socket: who may open it, and what becomes of it."""

import asyncio
import os
import socket
import stat
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from exporter.local_socket import listening


@pytest.fixture
def path(tmp_path):
    return tmp_path / "exporter.sock"


@pytest.fixture
def application():
    app = web.Application()

    async def hello(_):
        return web.Response(text="hello")

    app.router.add_get("/", hello)
    return app


@asynccontextmanager
async def client(path):
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path))) as session:
        yield session


async def greeting(path):
    async with client(path) as session, session.get("http://node/") as response:
        response.raise_for_status()
        return await response.text()


async def test_it_is_for_its_owner_and_group_alone_and_goes_with_the_server(application, path):
    async with listening(application, path, setting="a_socket"):
        assert await greeting(path) == "hello"
        assert stat.filemode(path.stat().st_mode) == "srw-rw----"
    assert list(path.parent.iterdir()) == []


async def test_one_that_was_left_behind_is_replaced(application, path):
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_unix_connection(str(path))
    async with listening(application, path, setting="a_socket"):
        assert await greeting(path) == "hello"


async def test_one_that_was_left_unfinished_is_replaced(application, path):
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path) + ".new")
    async with listening(application, path, setting="a_socket"):
        assert await greeting(path) == "hello"


async def test_the_one_of_a_successor_is_left_alone(application, path):
    """While the DaemonSet is updated the old exporter may end after the new one began."""
    async with listening(application, path, setting="a_socket"), AsyncExitStack() as later:
        await later.enter_async_context(listening(web.Application(), path, setting="a_socket"))
        successor = later.pop_all()
    async with successor:
        with pytest.raises(aiohttp.ClientResponseError, match="404"):
            await greeting(path)
    assert not path.exists()


async def test_without_its_folder_the_error_says_what_to_do(application, tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"a_socket: there is no folder .*/missing; mount one there"
    ):
        async with listening(application, tmp_path / "missing" / "s", setting="a_socket"):
            pass


async def test_anything_else_in_its_place_stays(application, path):
    path.write_text("precious")
    with pytest.raises(FileExistsError, match=r"exporter\.sock is no socket"):
        async with listening(application, path, setting="a_socket"):
            pass
    assert path.read_text() == "precious"


async def test_another_group_may_open_it_if_there_is_one(application, path):
    if os.getuid():
        pytest.skip("only root gives files to another group")
    async with listening(application, path, setting="a_socket", group=4711):
        assert (path.stat().st_uid, path.stat().st_gid) == (os.getuid(), 4711)
        assert stat.filemode(path.stat().st_mode) == "srw-rw----"
