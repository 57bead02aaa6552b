"""When a replaced serving certificate is served: once kube-apiserver can verify it.

Files that are replaced together, certificate and authority, would otherwise fail every request
until the next look at the APIServices. Here the new authority is registered beside the old one
first, and the old certificate is served meanwhile. Replicas see new files at different moments;
``adapter.ca_bundle`` keeps what the others serve.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from adapter.api.authentication import Gate
from adapter.api.certificate import CertificateError
from adapter.registration import Registered
from slicewatch.service import logs
from slicewatch.service.stamp import Stamp

log = logs.logger(__name__)

LOOK_SECONDS: Final = 10.0
# From a change of an APIService until every kube-apiserver verifies by it.
SPREAD_SECONDS: Final = 5.0
# Longer than Kubernetes is away when it is upgraded. Certificates are renewed days before they
# end, but one that was replaced by hand may have been replaced for a reason.
PATIENCE_SECONDS: Final = 600.0

Register = Callable[[], Awaitable[Registered]]
"""Registers the authorities as they are now."""


@dataclass(slots=True, kw_only=True)
class _Waiting:
    """Files that are not served yet, since when, and since when they may be verified."""

    since: float
    stamp: Stamp = ()
    registered_at: float | None = None


class Handover:
    """Hands the API port over from one serving certificate to the next.

    Args:
        gate: that serves them.
        provisional: nobody can verify the first certificate, so its successor is served at once.
        monotonic, wall: clocks; the wall clock tells when a certificate ends.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        provisional: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._gate = gate
        self._provisional = provisional
        self._monotonic, self._wall = monotonic, wall
        self._waiting: _Waiting | None = None
        self._said: set[str] = set()
        self._woken = asyncio.Event()

    def replaced(self) -> None:
        """Look at the files now rather than soon: we have replaced them ourselves."""
        if self._provisional:
            self._serve()
        self._woken.set()

    async def run(self, register: Register) -> None:
        """Look at the files again and again; Kubernetes may replace mounted ones at any time."""
        while True:
            await self.look(register)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), LOOK_SECONDS)
            self._woken.clear()

    async def look(self, register: Register) -> None:
        """Look at the files once, and serve what they say if its time has come."""
        if not self._gate.certificate.replaced:
            self._settled()
        elif await self._may_be_verified(register):
            self._serve()

    async def _may_be_verified(self, register: Register) -> bool:
        """Tell whether waiting longer would do no good."""
        waiting = self._waiting = self._waiting or _Waiting(since=self._monotonic())
        if (stamp := self._gate.certificate.stamp()) != waiting.stamp:
            waiting.stamp, waiting.registered_at = stamp, None
        if waiting.registered_at is None:
            outcome = await register()
            if outcome is Registered.NOTHING:
                return True
            if outcome is Registered.FAILED:
                return self._waited_enough(waiting)
            waiting.registered_at = self._monotonic()
        return self._monotonic() - waiting.registered_at >= SPREAD_SECONDS

    def _waited_enough(self, waiting: _Waiting) -> bool:
        """Tell whether to serve a certificate whose authority could not be registered."""
        left = waiting.since + PATIENCE_SECONDS - self._monotonic()
        end = self._gate.certificate.ends_at()
        if left > 0 and (end is None or self._wall() < end):
            self._say(
                "a new serving certificate waits: its authority cannot be registered",
                longest_seconds=PATIENCE_SECONDS,
            )
            return False
        self._say(
            "served although its authority could not be registered: kube-apiserver may refuse it",
            hint="put the authority into the caBundle of the APIServices, or let the adapter do so",
        )
        return True

    def _serve(self) -> None:
        try:
            self._gate.renew()
        except CertificateError as error:
            # They may have been read while they were being replaced: the next look tells.
            self._say("cannot use serving certificate", error=str(error))
            return
        self._provisional = False
        self._settled()
        log.info("serving certificate replaced")

    def _settled(self) -> None:
        self._waiting = None
        self._said.clear()

    def _say(self, event: str, **about: object) -> None:
        """Log a fault once per certificate: files are looked at every few seconds."""
        fault = f"{event} {about}"
        if fault not in self._said:
            self._said.add(fault)
            log.warning(event, **about)
