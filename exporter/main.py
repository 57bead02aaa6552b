"""Start of the exporter process: settings, logs, and the choice between real and simulated."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from exporter.nvml.protocol import Nvml
from exporter.settings import ExporterSettings
from slicewatch.service import logs, tasks
from slicewatch.service.settings import SettingsError, load


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the exporter until a signal ends it; return the exit status (2: bad settings)."""
    # numpy's linear algebra is not used here; its thread pool would only cost memory.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        settings = load(ExporterSettings, arguments, environment)
        nvml = _nvml(settings)
    except SettingsError as error:
        sys.stderr.writelines(f"slicewatch exporter: {fault}\n" for fault in error.faults)
        return 2
    logs.configure(settings.log_level)
    return tasks.run(lambda: _main(settings, nvml))


async def _main(settings: ExporterSettings, nvml: Nvml) -> None:
    from exporter.app import exporting

    kubelet = None
    if settings.kubelet_socket:
        from exporter.tenants.kubelet import Kubelet

        kubelet = Kubelet(Path(settings.kubelet_socket))
    async with exporting(settings, nvml, kubelet):
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
