"""What several test files of the adapter start from."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from testbed import fleet
from testbed.front_proxy import ApiPort, Asker


@pytest.fixture
async def ask(tmp_path: Path) -> AsyncIterator[Asker]:
    port = ApiPort(tmp_path)
    port.add(fleet.web("a", "n1"), fleet.web("b", "n2"))
    port.receive(fleet.node_frame("n1", "a", 20.0))
    port.receive(fleet.node_frame("n2", "b", 60.0))
    async with port.serving(), port.client(port.front_proxy()) as client:
        yield Asker(port, client)
