"""Start of the exporter process, and the choice between the real driver and a simulated one."""

import asyncio
import gc
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from exporter.nvml.protocol import Nvml
from exporter.settings import ExporterSettings
from slicewatch.service import process
from slicewatch.service.settings import SettingsError


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the exporter until a signal ends it; return the exit status (2: user error)."""
    # numpy's linear algebra is not used here; its thread pool would only cost memory.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    return process.run("exporter", ExporterSettings, _prepare, arguments, environment)


def _prepare(settings: ExporterSettings) -> process.Program:
    nvml = _nvml(settings)
    return process.Program(lambda: _main(settings, nvml), user_errors=(OSError,))


async def _main(settings: ExporterSettings, nvml: Nvml) -> None:
    from exporter.app import exporting
    from exporter.tenants.kubelet import Kubelet

    async with AsyncExitStack() as stack:
        kubelet = None
        if settings.kubelet_socket:
            kubelet = await stack.enter_async_context(Kubelet(Path(settings.kubelet_socket)))
        await stack.enter_async_context(exporting(settings, nvml, kubelet))
        # What exists now stays: the collector need not look through it again and again.
        gc.freeze()
        await asyncio.Event().wait()


def _nvml(settings: ExporterSettings) -> Nvml:
    if not settings.simulate:
        from exporter.nvml.real import RealNvml

        return RealNvml()
    from exporter.nvml.simulated import SimulatedNvml
    from simulator.errors import ScenarioError

    try:
        return SimulatedNvml.of(settings.simulate, node=settings.simulate_node)
    except ScenarioError as error:
        raise SettingsError([f"simulate: {error}"]) from error
    except KeyError as error:
        raise SettingsError([f"simulate_node: {error.args[0]}"]) from error
