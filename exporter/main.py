"""Start of the exporter process, and the choice between the real driver and a simulated one."""

import asyncio
import gc
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from exporter.nvml.protocol import Nvml
from exporter.settings import ExporterSettings
from exporter.tenants.owners import Processes
from slicewatch.service import process
from slicewatch.service.settings import SettingsError, load


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the exporter until a signal ends it; return the exit status (2: user error)."""

    def prepare(settings: ExporterSettings) -> process.Program:
        # Imported after the settings: a wrong flag is reported at once.
        from exporter.access import AccessError
        from slicewatch.service.web.config import WebConfigError

        nvml, processes = _machine(settings)
        return process.Program(
            lambda: _main(
                settings, nvml, processes, lambda: load(ExporterSettings, arguments, environment)
            ),
            user_errors=(OSError, WebConfigError, AccessError),
        )

    return process.run("exporter", ExporterSettings, prepare, arguments, environment)


async def _main(
    settings: ExporterSettings,
    nvml: Nvml,
    processes: Processes,
    reread: Callable[[], ExporterSettings],
) -> None:
    from exporter.app import exporting
    from exporter.tenants.kubelet import Kubelet

    hangup = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hangup.set)
    async with AsyncExitStack() as stack:
        kubelet = None
        if settings.kubelet_socket:
            kubelet = await stack.enter_async_context(Kubelet(Path(settings.kubelet_socket)))
        await stack.enter_async_context(
            exporting(settings, nvml, kubelet, processes, reread=reread, at_once=hangup)
        )
        # What exists now stays: the collector need not look through it again and again.
        gc.freeze()
        await asyncio.Event().wait()


def _machine(settings: ExporterSettings) -> tuple[Nvml, Processes]:
    """Return the driver and the processes: of this machine, or of a simulated one."""
    if not settings.simulate:
        from exporter.nvml.real import RealNvml
        from exporter.tenants.processes import HostProcesses

        links = Path(settings.container_links)
        whole = settings.pid_namespace == "any"
        return RealNvml(), HostProcesses(
            containers=links, pid_namespace="any" if whole else "host"
        )
    from exporter.nvml.simulated import SimulatedNvml
    from exporter.tenants.simulated import SimulatedProcesses
    from simulator.errors import ScenarioError

    try:
        nvml = SimulatedNvml.of(settings.simulate, node=settings.simulate_node)
    except ScenarioError as error:
        raise SettingsError([f"simulate: {error}"]) from error
    except KeyError as error:
        raise SettingsError([f"simulate_node: {error.args[0]}"]) from error
    return nvml, SimulatedProcesses(nvml.node)
