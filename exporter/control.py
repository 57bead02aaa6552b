"""How whoever works on the node's GPUs tells the exporter to let go of them: socket and signal.

Handlers wait for no driver but for one that is let go of.
"""

import asyncio
import signal
import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from aiohttp import web

from exporter.measure.board import Board
from exporter.nvml.supervisor import Supervisor
from exporter.publication import Publication
from exporter.release import REQUEST, SIGNAL, Release, ReleaseRefusedError
from slicewatch.service.settings import duration

UP: Final = "up"

_PARAMETERS: Final = ("seconds", "reason")


class GpuStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU. ``state`` is ``up``, or in one word why it does not answer."""

    gpu: int
    uuid: str
    model: str
    state: str


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """How the exporter stands with the driver.

    Attributes:
        released: NVML is stopped on request, and nothing of the driver is held.
        reason: what for, also while calls in progress are still waited for.
        seconds_left: how long it stays so if nobody asks again.
        driver: version that the last start found.
        driver_down: in one word why NVML is not started.
        tick_age_seconds: time since the last snapshot.
    """

    released: bool
    reason: str | None
    seconds_left: float | None
    driver: str | None
    driver_down: str | None
    gpus: tuple[GpuStatus, ...]
    tick_age_seconds: float | None


class Control:
    """The handlers of the socket."""

    def __init__(
        self,
        *,
        release: Release,
        supervisor: Supervisor,
        board: Board,
        publication: Publication,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._release = release
        self._supervisor = supervisor
        self._board = board
        self._publication = publication
        self._clock = clock

    def application(self) -> web.Application:
        """Return the application with all routes; others may add theirs."""
        app = web.Application()
        app.router.add_post("/release", self.release)
        app.router.add_post("/resume", self.resume)
        app.router.add_get("/status", self.status)
        app.on_shutdown.append(self._end_waiting)
        return app

    async def release(self, request: web.Request) -> web.Response:
        """Answer once NVML is stopped: 200, 409 where a call hangs, 400 for what cannot be."""
        try:
            await self._release.obtain(*_wish(request.query))
        except ValueError as error:
            return _refusal(400, str(error))
        except ReleaseRefusedError as error:
            return _refusal(409, str(error))
        return self._answer()

    async def resume(self, _: web.Request) -> web.Response:
        """End the release, if there is one; NVML is started with the next tick."""
        self._release.resume()
        return self._answer()

    async def status(self, _: web.Request) -> web.Response:
        """Say how the exporter stands with the driver."""
        return self._answer()

    async def _end_waiting(self, _: web.Application) -> None:
        """Whoever waits for a call that hangs would hold up the end of the process."""
        self._release.dismiss("the exporter ends")

    def _answer(self) -> web.Response:
        body = msgspec.json.encode(self._status(self._clock()))
        return web.Response(body=body, content_type="application/json")

    def _status(self, now: float) -> Status:
        silent = self._board.silent(now)
        wanted = self._release.seconds_left > 0
        published = self._publication.snapshot is not None
        return Status(
            released=self._release.granted,
            reason=self._release.reason if wanted else None,
            seconds_left=round(self._release.seconds_left, 1) if wanted else None,
            driver=self._board.driver or None,
            driver_down=self._supervisor.down_reason or None,
            gpus=tuple(
                GpuStatus(gpu=d.gpu, uuid=d.uuid, model=d.model, state=silent.get(d, UP))
                for d in self._board.devices
                if not d.is_mig
            ),
            tick_age_seconds=round(self._publication.age_seconds(), 3) if published else None,
        )


def release_on_signal(release: Release) -> None:
    """Let SIGUSR1 release the driver for the usual time, as long as the running loop does run."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, release.ask, SIGNAL)


def _wish(query: Mapping[str, str]) -> tuple[str, float | None]:
    """Return the reason and the time of a request; raise ``ValueError`` for what is none."""
    for name in query:
        if name not in _PARAMETERS:
            raise ValueError(f"no parameter {name!r}; there are {' and '.join(_PARAMETERS)}")
    seconds = query.get("seconds")
    return query.get("reason", REQUEST), None if seconds is None else duration(seconds)


def _refusal(status: int, why: str) -> web.Response:
    body = msgspec.json.encode({"error": why})
    return web.Response(status=status, body=body, content_type="application/json")
