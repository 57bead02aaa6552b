"""What of a running exporter follows its files: settings, web configuration, tokens.

Settings that take effect are listed here; of any other a change is only reported.
"""

import asyncio
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from exporter.access import SNAPSHOT_PATH, AccessError, SnapshotAccess, read_tokens
from exporter.settings import ExporterSettings
from slicewatch.catalog import own
from slicewatch.service import logs
from slicewatch.service.own_metrics import OwnMetrics
from slicewatch.service.reload import Reload, Watched
from slicewatch.service.web.config import WebConfig, read
from slicewatch.service.web.gate import Gate

log = logs.logger(__name__)

Effect = Callable[[ExporterSettings], None]
Reread = Callable[[], ExporterSettings]


class Live:
    """The settings of the moment, the gate of the port, and who may read snapshots.

    Args:
        settings: at the start.
        metrics: where successes and failures are reported.
        effects: makes a changed setting take effect, by the setting's name.
        reread: reads the settings anew from all sources; None where they cannot change.
        at_once: set to have all files read now.

    Attributes:
        settings: with the changes that took effect.
    """

    def __init__(
        self,
        settings: ExporterSettings,
        metrics: OwnMetrics,
        effects: Mapping[str, Effect],
        *,
        reread: Reread | None = None,
        at_once: asyncio.Event | None = None,
    ) -> None:
        self.settings = settings
        self.gate = Gate(without_password=self._has_own_way_in)
        self.snapshot_access = SnapshotAccess(names=frozenset(settings.snapshot_client_names))
        self._started_with = settings
        self._effects = effects
        self._valid = metrics.gauge(own.CONFIG_VALID)
        self._valid_at = metrics.gauge(own.CONFIG_TIME)
        self._watched: list[Watched[Any]] = [*self._files()]
        if reread is not None:
            self._watched.append(Watched("settings", reread, self._take))
        self._reload = Reload(*self._watched, report=self._report, at_once=at_once)

    def start(self) -> None:
        """Read every file for the first time.

        Raises:
            OSError, WebConfigError, AccessError, SettingsError: one cannot be used.
        """
        for watched in self._watched:
            watched.start()
        if not self.snapshot_access.restricted:
            log.info(
                "whoever reaches the port can read /snapshot",
                restrict_by="snapshot_token_file or snapshot_client_names",
            )

    async def run(self) -> None:
        """Follow the files until cancelled."""
        await self._reload.run()

    def _files(self) -> Iterator[Watched[Any]]:
        if path := self.settings.web_config_file:
            yield Watched("web_config_file", self._web_reader(Path(path)), self.gate.apply)
        if path := self.settings.snapshot_token_file:
            tokens = Path(path)
            yield Watched("snapshot_token_file", lambda: read_tokens(tokens), self._admit)

    def _web_reader(self, path: Path) -> Callable[[], WebConfig]:
        def read_web() -> WebConfig:
            config = read(path)
            if self.snapshot_access.names and not config.verifies_clients:
                raise AccessError(
                    f"snapshot_client_names: clients show no certificate to a server like {path};"
                    " set client_auth_type and client_ca_file there"
                )
            return config

        return read_web

    def _admit(self, tokens: frozenset[bytes]) -> None:
        self.snapshot_access.tokens = tokens

    def _has_own_way_in(self, request: web.Request) -> bool:
        """A request has one Authorization header: where it is for a token, it has no password."""
        resource = request.match_info.route.resource
        is_snapshot = resource is not None and resource.canonical == SNAPSHOT_PATH
        return is_snapshot and self.snapshot_access.restricted

    def _take(self, loaded: ExporterSettings) -> None:
        changed = _differing(self.settings, loaded)
        effective = {name: getattr(loaded, name) for name in changed if name in self._effects}
        self.settings = dataclasses.replace(self.settings, **effective)
        for name in effective:
            self._effects[name](self.settings)
        if effective:
            log.info("settings took effect", names=sorted(effective))
        later = [n for n in _differing(self._started_with, loaded) if n not in self._effects]
        if later:
            log.warning("settings take effect after a restart", names=later)

    def _report(self, valid: bool) -> None:
        self._valid.set(int(valid))
        if valid:
            self._valid_at.set(time.time())


def _differing(one: ExporterSettings, other: ExporterSettings) -> list[str]:
    names = (field.name for field in dataclasses.fields(ExporterSettings))
    return [name for name in names if getattr(one, name) != getattr(other, name)]
