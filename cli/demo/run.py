"""Wires up exporters, kubelets, API server and adapter, and runs them until Ctrl-C."""

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from adapter.app import Adapter, Listening
from adapter.settings import AdapterSettings
from cli.demo import certificates, cluster, guide
from exporter.app import exporting
from exporter.nvml.protocol import DriverUnavailableError, Nvml
from exporter.nvml.real import RealNvml
from exporter.nvml.simulated import SimulatedNvml
from exporter.settings import ExporterSettings
from exporter.tenants.kubelet import DEFAULT_SOCKET, Kubelet
from exporter.tenants.owners import Processes
from exporter.tenants.processes import HostProcesses
from exporter.tenants.simulated import SimulatedProcesses
from simulator.clock import RealTimeClock
from simulator.fleet import Fleet
from slicewatch.kube.fake import FakeKube
from slicewatch.service.server import Address

LOOPBACK = "127.0.0.1"
ADAPTER_API_OFFSET = 43
ADAPTER_PLAIN_OFFSET = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A node to export: driver, processes, and the socket of its kubelet if it has one."""

    name: str
    nvml: Nvml
    processes: Processes
    kubelet_socket: Path | None


async def run_demo(scenario: str, port: int, *, simulated: bool) -> None:
    """Run until cancelled.

    Raises:
        ScenarioError: the scenario cannot be used.
        OSError: one of the ports is taken.
    """
    with tempfile.TemporaryDirectory(prefix="slicewatch-demo-") as temporary:
        folder = Path(temporary)
        async with AsyncExitStack() as stack:
            real = None if simulated else await asyncio.to_thread(_real_driver)
            if real is not None:
                await _show(stack, folder, port, [_this_machine(real)], FakeKube(), None)
                return
            fleet = Fleet.named(scenario, clock=RealTimeClock())
            machines = [await stack.enter_async_context(_machine(fleet, n.name, folder))
                        for n in fleet.nodes]  # fmt: skip
            namespaces = [w.namespace for w in fleet.scenario.workloads]
            kube = await cluster.api_server(fleet)
            await _show(stack, folder, port, machines, kube, next(iter(namespaces), None))


async def _show(
    stack: AsyncExitStack,
    folder: Path,
    port: int,
    machines: list[Machine],
    kube: FakeKube,
    namespace: str | None,
) -> None:
    exporters = [
        guide.Exporter(
            node=machine.name,
            address=await stack.enter_async_context(_exporter(machine, port + index)),
        )
        for index, machine in enumerate(machines)
    ]
    proxy = certificates.front_proxy(folder)
    settings = AdapterSettings(
        listen=Address(LOOPBACK, port + ADAPTER_API_OFFSET),
        plain_listen=Address(LOOPBACK, port + ADAPTER_PLAIN_OFFSET),
        exporters=tuple(f"http://{e.address}" for e in exporters),
        requestheader_client_ca_file=str(proxy.authority),
        requestheader_allowed_names=(certificates.NAME,),
        cert_dir=str(folder / "serving"),
        service_namespace=cluster.ADAPTER_NAMESPACE,
    )
    await cluster.register(kube, settings.service_name)

    def started(where: Listening) -> None:
        print(
            guide.text(
                exporters=exporters, api=where.api, plain=where.plain, client=str(proxy.client),
                namespace=namespace, simulated=not isinstance(machines[0].nvml, RealNvml),
            ),
            flush=True,
        )  # fmt: skip

    await Adapter(settings, kube).run(started)


@asynccontextmanager
async def _exporter(machine: Machine, port: int) -> AsyncIterator[Address]:
    settings = ExporterSettings(listen=Address(LOOPBACK, port), node_name=machine.name)
    async with AsyncExitStack() as stack:
        kubelet = None
        if machine.kubelet_socket:
            kubelet = await stack.enter_async_context(Kubelet(machine.kubelet_socket))
        yield await stack.enter_async_context(
            exporting(settings, machine.nvml, kubelet, machine.processes)
        )


@asynccontextmanager
async def _machine(fleet: Fleet, node: str, folder: Path) -> AsyncIterator[Machine]:
    async with cluster.kubelet(fleet, node, folder) as kubelet:
        nvml = SimulatedNvml(fleet.node(node))
        processes = SimulatedProcesses(nvml.node)
        yield Machine(name=node, nvml=nvml, processes=processes, kubelet_socket=kubelet.socket)


def _real_driver() -> RealNvml | None:
    """Return NVML, or None where it cannot be started."""
    nvml = RealNvml()
    try:
        nvml.start()
    except DriverUnavailableError:
        return None
    nvml.stop()
    return nvml


def _this_machine(nvml: RealNvml) -> Machine:
    there = DEFAULT_SOCKET if DEFAULT_SOCKET.exists() else None
    return Machine(
        name=socket.gethostname(), nvml=nvml, processes=HostProcesses(), kubelet_socket=there
    )
