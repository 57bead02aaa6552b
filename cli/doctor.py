"""``slicewatch doctor``: says what is wrong with this node. Takes the exporter's settings."""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from exporter.doctor import report
from exporter.doctor.checks import judge
from exporter.doctor.collection import collect
from exporter.doctor.devices import real_driver
from exporter.nvml.protocol import Nvml
from exporter.settings import ExporterSettings
from slicewatch.service import logs, tasks
from slicewatch.service.settings import SettingsError, load, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorSettings(ExporterSettings):
    """Say what is wrong with this node and what to do; exit with 1 if anything failed."""

    json: bool = setting(False, help="Write the findings as JSON.")


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Examine the node and print the findings; return 0, 1 if one failed, 2 for wrong usage."""
    logs.configure("error")
    try:
        settings, faults = _settings(arguments, environment)
        nvml = _driver(settings)
    except SettingsError as error:
        return tasks.refuse("slicewatch doctor", error.faults)
    findings = judge(collect(settings, nvml, now_us=_now_us, settings_faults=faults))
    coloured = sys.stdout.isatty() and "NO_COLOR" not in environment
    text = (
        report.document(findings) if settings.json else report.table(findings, coloured=coloured)
    )
    sys.stdout.write(text)
    sys.stdout.flush()
    return report.status(findings)


def _settings(
    arguments: Sequence[str], environment: Mapping[str, str]
) -> tuple[DoctorSettings, tuple[str, ...]]:
    """Return the settings, or those of the flags alone and what is wrong with the other sources.

    Raises:
        SettingsError: the flags themselves are wrong.
    """
    try:
        return load(DoctorSettings, arguments, environment), ()
    except SettingsError as error:
        try:
            # The last file counts, and this one is empty.
            return load(DoctorSettings, [*arguments, f"--config={os.devnull}"], {}), error.faults
        except SettingsError:
            raise error from None


def _driver(settings: ExporterSettings) -> Nvml:
    if not settings.simulate:
        return real_driver(_now_us)
    from exporter.nvml.simulated import SimulatedNvml
    from simulator.errors import ScenarioError

    try:
        return SimulatedNvml.of(settings.simulate, node=settings.simulate_node)
    except ScenarioError as error:
        raise SettingsError([f"simulate: {error}"]) from error
    except KeyError as error:
        raise SettingsError([f"simulate_node: {error.args[0]}"]) from error


def _now_us() -> int:
    return time.time_ns() // 1000
