"""When this process may get requests: once it can say something about every pod.

Never depends on an exporter being up. If it did, an outage of the exporters would take all
replicas out of the Service, and while the API is unavailable no namespace in the cluster can be
deleted.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from adapter.api.authentication import Gate
from adapter.registration import Registration
from adapter.sources.source import SnapshotSource
from slicewatch.kube.cache import Cache
from slicewatch.kube.objects import EndpointSlice, Pod
from slicewatch.service.server import Check

GRACE_SECONDS = 10.0


@dataclass(slots=True, kw_only=True)
class Readiness:
    """The checks behind ``/readyz``. Each returns what is still awaited, or None.

    Attributes:
        slices: the exporters' endpoints; None if the exporters are listed in the settings.
        registration: of our authorities; None if we have none of our own.
        grace_seconds: longest time to wait for exporters and for a certificate.
        draining: the process is about to end.
    """

    gate: Gate
    pods: Cache[Pod]
    source: SnapshotSource
    slices: Cache[EndpointSlice] | None = None
    registration: Registration | None = None
    grace_seconds: float = GRACE_SECONDS
    began_at: float = field(default_factory=time.monotonic)
    draining: bool = False
    _round_done: bool = False

    def checks(self) -> Mapping[str, Check]:
        """Return the checks by name."""
        return {
            "shutdown": self.shutdown,
            "front-proxy": self.front_proxy,
            "certificate": self.certificate_issued,
            "pods": self.pods_listed,
            "exporters": self.exporters_tried,
        }

    def drain(self) -> None:
        """Become unready, and end each connection with its next answer.

        Requests go on being answered: those who send them learn only later that we end.
        """
        self.draining = self.gate.closing = True

    def shutdown(self) -> str | None:
        """Tell the kubelet, and so the Service, that this process is about to end."""
        return "the process is shutting down" if self.draining else None

    def front_proxy(self) -> str | None:
        """Wait for the request-header authority, without which nobody is admitted."""
        return None if self.gate.proxy else "the request-header authority is not known yet"

    def certificate_issued(self) -> str | None:
        """Wait for a certificate that kube-apiserver can verify, up to the grace period.

        It may not verify any: then whoever may not read Secrets serves a self-signed one.
        """
        registration = self.registration
        if registration is None or registration.bundled or self._waited():
            return None
        return "the serving certificate is not issued yet"

    def pods_listed(self) -> str | None:
        """Wait for the first complete list of pods."""
        return None if self.pods.synced else f"the pods are not listed yet: {self.pods.fault}"

    def exporters_tried(self) -> str | None:
        """Wait until each exporter has answered or failed once, up to the grace period."""
        if self._round_done:
            return None
        waiting = self._untried()
        if waiting is None or self._waited():
            self._round_done = True
            return None
        return waiting

    def _waited(self) -> bool:
        return time.monotonic() - self.began_at > self.grace_seconds

    def _untried(self) -> str | None:
        if self.slices is not None and not self.slices.synced:
            return "the exporters' endpoints are not listed yet"
        streams = self.source.streams
        untried = [t for t, s in streams.items() if not s.tried]
        return f"{len(untried)} exporters have not been tried yet" if untried else None
