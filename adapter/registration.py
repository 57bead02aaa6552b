"""Lets kube-apiserver verify us: puts our authorities into the APIServices that point to us.

Other authorities stay for a while (``adapter.ca_bundle``): other replicas may still need them.
An APIService that points to another Service (KEDA, a running prometheus-adapter) is never touched,
and none is created: which APIs a cluster has is for those who install to decide. With an authority
goes ``insecureSkipTLSVerify``, which Kubernetes does not allow beside one.

Needs ``get`` and ``patch`` of the APIServices by their names; of Secrets, see ``adapter.issuance``.
"""

import asyncio
import base64
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum, StrEnum, auto
from pathlib import Path
from typing import Final

from adapter.api.certificate import CertificateError
from adapter.api.paths import CUSTOM, EXTERNAL, GROUPS
from adapter.ca_bundle import CaBundle, certificates
from slicewatch.kube.errors import ConflictError, ForbiddenError, KubeError, NotFoundError
from slicewatch.kube.objects import API_SERVICE, APIService, ServiceReference
from slicewatch.kube.protocol import Kube
from slicewatch.service import logs

log = logs.logger(__name__)

EVERY_SECONDS: Final = 60.0
ATTEMPTS: Final = 3

Bundle = Callable[[], Awaitable[bytes]]
"""Returns the authorities to be trusted as PEM; empty to leave APIServices as they are.

May raise ``KubeError``, ``OSError`` or ``ValueError``.
"""


class Standing(StrEnum):
    """How we stand with an APIService; the value is for people."""

    OURS = "sends requests to this adapter"
    ABSENT = "does not exist"
    OTHER = "sends requests to another service"
    FORBIDDEN = "may not be read or changed by us"
    UNKNOWN = "cannot be read or changed"


class Registered(Enum):
    """What one look at all APIServices came to."""

    DONE = auto()
    """Those that are ours trust our authorities."""
    NOTHING = auto()
    """There is nothing that we have to, or may, register."""
    FAILED = auto()
    """The next look may do better."""


def api_services(*, external: bool) -> tuple[str, ...]:
    """Return the names of the APIServices that are to be ours."""
    groups = (CUSTOM, EXTERNAL) if external else (CUSTOM,)
    return tuple(f"{version}.{group}" for group in groups for version in GROUPS[group])


def of_file(path: str) -> Bundle:
    """Return the authorities of a PEM file, read anew each time; none without a path."""

    async def bundle() -> bytes:
        if not path:
            return b""
        content = await asyncio.to_thread(Path(path).read_bytes)
        if not certificates(content):
            raise CertificateError(f"{path} holds no certificate (PEM)")
        return content

    return bundle


class Registration:
    """Keeps APIServices trusting us.

    Args:
        kube: where they are.
        service: our own.
        names: of the APIServices that are to be ours.
        bundle: asked at each pass, before any APIService is read: of two replicas, none puts back
            what the other has just replaced.
        monotonic: tells for how long the authorities of others have been there.

    Attributes:
        standings: of each APIService, once it is known.
        bundled: the authorities were known once, and every APIService has been looked at since.
    """

    def __init__(
        self,
        kube: Kube,
        *,
        service: ServiceReference,
        names: Sequence[str],
        bundle: Bundle,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kube = kube
        self._service = service
        self._names = tuple(names)
        self._bundle = bundle
        self._monotonic = monotonic
        self._bundles: defaultdict[str, CaBundle] = defaultdict(CaBundle)
        self._looking = asyncio.Lock()
        self._faults: dict[str, str] = {}
        self.standings: dict[str, Standing] = {}
        self.bundled = False

    async def run(self) -> None:
        """Look again and again, since people and their tools change APIServices."""
        while True:
            await self.settle()
            await asyncio.sleep(EVERY_SECONDS * random.uniform(0.8, 1.2))  # noqa: S311 - spreads load

    async def settle(self) -> Registered:
        """Look once, and mend what is ours to mend. Faults are logged when they begin."""
        async with self._looking:
            return await self._look()

    async def _look(self) -> Registered:
        try:
            bundle = await self._bundle()
        except (KubeError, OSError, ValueError) as error:
            self._say("authorities", str(error))
            return Registered.FAILED
        self._faults.pop("authorities", None)
        for name in self._names:
            self._stands(name, *await self._settled(name, bundle))
        self.bundled = True
        found = set(self.standings.values())
        if not bundle or found.isdisjoint({Standing.OURS, Standing.UNKNOWN}):
            return Registered.NOTHING
        return Registered.FAILED if Standing.UNKNOWN in found else Registered.DONE

    async def _settled(self, name: str, bundle: bytes) -> tuple[Standing, str]:
        """Return how we stand with an APIService, and what people should know of that."""
        fault = ""
        for _ in range(ATTEMPTS):
            try:
                found = await self._kube.get(API_SERVICE, name)
                if found.spec.service != self._service:
                    return Standing.OTHER, _other(found)
                await self._trust(found, bundle)
            except ConflictError as error:
                # kube-apiserver writes into its status, and other replicas what we would.
                fault = str(error)
            except NotFoundError:
                return Standing.ABSENT, "create it, or let the chart do so"
            except ForbiddenError as error:
                return Standing.FORBIDDEN, str(error)
            except KubeError as error:
                return Standing.UNKNOWN, str(error)
            else:
                return Standing.OURS, ""
        return Standing.UNKNOWN, fault

    async def _trust(self, found: APIService, ours: bytes) -> None:
        """Put the authorities in, and take out those whose time is over."""
        if not ours:
            return
        present = found.spec.ca_bundle
        due = self._bundles[found.metadata.name].due(present, ours, self._monotonic())
        if due == present and not found.spec.insecure_skip_tls_verify:
            return
        spec = {"caBundle": base64.b64encode(due).decode(), "insecureSkipTLSVerify": None}
        patch = {
            "metadata": {"resourceVersion": found.metadata.resource_version},
            "spec": spec,
        }
        await self._kube.patch(API_SERVICE, found.metadata.name, patch)
        log.info(
            "authorities registered",
            api_service=found.metadata.name,
            trusted=len(certificates(due)),
        )

    def _stands(self, name: str, standing: Standing, more: str) -> None:
        self.standings[name] = standing
        if standing is Standing.OURS:
            self._faults.pop(name, None)
        else:
            self._say(name, f"{standing}: {more}")

    def _say(self, what: str, fault: str) -> None:
        if self._faults.get(what) != fault:
            self._faults[what] = fault
            log.warning("not registered", what=what, fault=fault)


def _other(found: APIService) -> str:
    service = found.spec.service
    if service is None:
        return "kube-apiserver itself; left as it is"
    return f"{service.namespace}/{service.name}; left as it is"
