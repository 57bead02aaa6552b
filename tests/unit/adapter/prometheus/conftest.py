"""A Prometheus that says what it is told, and an API port whose rules ask it."""

from contextlib import asynccontextmanager

import pytest

from adapter.api.resources import Resources
from adapter.sources.prometheus.backend import Backend, BackendConfig
from adapter.sources.prometheus.configuration import configuration
from adapter.sources.prometheus.custom import CustomRules
from adapter.sources.prometheus.external import ExternalRules
from adapter.sources.prometheus.rules import Rules
from slicewatch.service.tasks import background
from testbed import fleet
from testbed.front_proxy import ApiPort, Asker
from testbed.scripted_prometheus import ScriptedPrometheus
from tests.unit.adapter.prometheus.scene import Served


def config(prometheus, **more):
    return BackendConfig(name="default", url=prometheus.url, **more)


@pytest.fixture
async def prometheus():
    async with ScriptedPrometheus().serving() as served:
        yield served


@pytest.fixture
async def backend(prometheus):
    """Return what makes a client of it."""
    made = []

    def make(**more):
        made.append(Backend(config(prometheus, **more)))
        return made[-1]

    yield make
    for one in made:
        await one.close()


@pytest.fixture
def serve(tmp_path, prometheus):
    """Return what serves rules, with the pods a and b of namespace ml (app=web)."""

    @asynccontextmanager
    async def serving(rules="", external="", *, server=None, **backend):
        port = ApiPort(tmp_path)
        port.add(fleet.web("a", "n1"), fleet.web("b", "n2"))
        resources = Resources()
        made = Rules(resources, port.metrics, server, monotonic=port.monotonic, wall=port.wall)
        text = (f"rules:{rules}\n" if rules else "") + (
            f"externalRules:{external}\n" if external else ""
        )
        made.apply(configuration([("rules.yaml", text)], config(prometheus, **backend)))
        port.offer(CustomRules(made, port.pods), external=[ExternalRules(made)])
        async with (
            background(("rules", made.run())),
            port.serving(),
            port.client(port.front_proxy()) as client,
        ):
            await made.readings.running.wait()
            yield Served(port=port, rules=made, prometheus=prometheus, ask=Asker(port, client))

    return serving
