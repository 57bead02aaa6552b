"""Collects the facts: everything is asked at once, and nothing is waited for longer than allowed."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from exporter.doctor import machine, neighbours
from exporter.doctor.devices import Clock, ask
from exporter.doctor.facts import Facts, NoAnswer
from exporter.doctor.question import Question
from exporter.nvml.protocol import Nvml
from exporter.settings import ExporterSettings

T = TypeVar("T")

# The first start of NVML takes a second and more where no persistence daemon runs.
PATIENCE_SECONDS: Final = 6.0


def collect(
    settings: ExporterSettings,
    nvml: Nvml,
    *,
    now_us: Clock,
    settings_faults: Sequence[str] = (),
    root: Path = Path("/"),
    patience_seconds: float = PATIENCE_SECONDS,
) -> Facts:
    """Return the facts about this node.

    Args:
        settings: of the exporter.
        nvml: not started.
        now_us: the clock that the driver should have.
        settings_faults: what kept other settings from being used.
        root: where ``proc``, ``sys`` and ``dev`` of the machine lie.
        patience_seconds: how long it takes at most.
    """
    until = time.monotonic() + patience_seconds
    services, real = _services(settings), not settings.simulate
    library = Question(machine.library) if real else None
    kernel = Question(lambda: machine.look(root)) if real else None
    allocations = _kubelet(settings, neighbours.ask_allocations)
    offers = _kubelet(settings, neighbours.ask_offers)
    port = services["port"].answer(time.monotonic() + neighbours.DEADLINE_SECONDS)
    # Drivers were seen to crash under two samplers of GPM (DataDog #54458), and an exporter is one.
    counters = not real or port == neighbours.FREE
    driver, gpus = ask(nvml, now_us, counters=counters, until=until)
    faults = [*settings_faults, *neighbours.file_faults(settings)]
    answers = {name: question.answer(until) for name, question in services.items()}
    answers["settings"] = NoAnswer("; ".join(faults)) if faults else "valid"
    return Facts(
        library=library.answer(until) if library else None,
        machine=kernel.answer(until) if kernel else None,
        driver=driver,
        gpus=gpus,
        allocations=allocations.answer(until) if allocations else None,
        offers=offers.answer(until) if offers else None,
        services=answers,
        dcgm=bool(settings.dcgm_url),
    )


def _services(settings: ExporterSettings) -> dict[str, Question[str | NoAnswer]]:
    """Ask those that the settings name, each under the id of its check."""
    asked: dict[str, Callable[[], str | NoAnswer]] = {
        "port": partial(neighbours.ask_port, settings)
    }
    if not settings.simulate:
        asked["processes"] = partial(neighbours.ask_processes, settings)
        asked["container-links"] = partial(neighbours.ask_links, settings)
    if settings.dcgm_url:
        asked["dcgm"] = lambda: asyncio.run(neighbours.ask_dcgm(settings))
    if settings.asks_cluster:
        asked["api-server"] = lambda: asyncio.run(neighbours.ask_api_server(settings))
    return {name: Question(ask) for name, ask in asked.items()}


def _kubelet(
    settings: ExporterSettings, ask: Callable[[str], Coroutine[None, None, T]]
) -> Question[T] | None:
    path = settings.kubelet_socket
    # A laptop that simulates GPUs has no kubelet, and nobody misses it.
    if not path or (settings.simulate and not Path(path).exists()):
        return None
    return Question(lambda: asyncio.run(ask(path)))
