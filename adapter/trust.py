"""Keeps the API port's trust current: who the front proxy is, and what it is shown first.

Of a serving certificate that is replaced later, see ``adapter.handover``.
"""

import asyncio
import ssl
from collections import Counter
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from adapter.api.authentication import FrontProxy, Gate, TrustError
from adapter.api.certificate import ServingCertificate, self_signed
from adapter.settings import AdapterSettings
from slicewatch.kube.objects import ConfigMap, Selection
from slicewatch.service import logs

log = logs.logger(__name__)

PUBLISHED: Final = Selection(namespace="kube-system", name="extension-apiserver-authentication")
"""Where a cluster publishes who its front proxy is."""
FILES_SECONDS: Final = 10.0


class Refused(StrEnum):
    """Why a TLS handshake of the API port failed."""

    NO_CERTIFICATE = "no_certificate"
    UNTRUSTED = "untrusted_certificate"
    OTHER = "other"


def certificate(settings: AdapterSettings) -> ServingCertificate:
    """Return the certificate named in the settings, or a self-signed one.

    Raises:
        CertificateError: it cannot be made.
    """
    if settings.tls_cert_file:
        return ServingCertificate(
            Path(settings.tls_cert_file),
            Path(settings.tls_key_file),
            Path(settings.tls_ca_file) if settings.tls_ca_file else None,
        )
    return self_signed(settings.tls_names, settings.cert_dir)


class Trust:
    """Feeds a gate from the cluster's published configuration and from files.

    Whatever cannot be used is logged, and what was trusted before stays. Files are tried again at
    the next look: they may have been read while they were being replaced.

    Attributes:
        refused: TLS handshakes that failed, by reason. Many of untrusted certificates mean that
            kube-apiserver's own has been rotated and its authority not been published.
    """

    def __init__(self, gate: Gate, settings: AdapterSettings) -> None:
        self._gate = gate
        self._file = settings.requestheader_client_ca_file
        self._names = settings.requestheader_allowed_names
        self._wanted: FrontProxy | None = None
        self._faults: dict[str, str] = {}
        self._told = False
        self.refused: Counter[Refused] = Counter()

    @property
    def from_cluster(self) -> bool:
        """Tell whether the cluster's published configuration is needed."""
        return not self._file

    def published(self, _: ConfigMap | None, new: ConfigMap | None) -> None:
        """Apply a change of the published configuration."""
        if new is None:
            log.warning("front proxy configuration has been deleted; still trusting the last one")
            return
        faults = {}
        try:
            self._wanted = FrontProxy.of_data(new.data)
        except TrustError as error:
            faults["cannot use front proxy configuration"] = str(error)
        self._apply(faults)

    def read_files(self) -> None:
        """Look at the files once, and apply what has changed."""
        faults = {}
        if self._file:
            try:
                authorities = Path(self._file).read_text(encoding="utf-8")
                self._wanted = FrontProxy(authorities=authorities)
            except (OSError, ValueError) as error:
                faults[f"cannot use authorities in {self._file}"] = str(error)
        self._apply(faults)

    async def run(self) -> None:
        """Look at the files again and again; Kubernetes may replace mounted ones at any time."""
        while True:
            self.read_files()
            await asyncio.sleep(FILES_SECONDS)

    def refuse(self, error: Exception) -> None:
        """Count a handshake that failed. The first after each change of trust is logged."""
        reason = _reason(error)
        self.refused[reason] += 1
        if reason is Refused.UNTRUSTED and not self._told:
            self._told = True
            log.warning(
                "client certificate refused",
                error=str(error),
                hint="if kube-apiserver cannot reach us: its --proxy-client-cert-file has to be "
                "signed by its --requestheader-client-ca-file",
            )

    def _apply(self, faults: dict[str, str]) -> None:
        wanted = self._wanted
        if wanted is not None and self._names:
            wanted = replace(wanted, allowed_names=self._names)
        if self._gate.trust(wanted):
            self._told = False
            names = None if wanted is None else wanted.allowed_names
            log.info("trust updated", front_proxy_names=names)
        # Each fault once: files are looked at every few seconds.
        for event, reason in faults.items():
            if self._faults.get(event) != reason:
                log.warning(event, error=reason)
        self._faults = faults


def _reason(error: Exception) -> Refused:
    if isinstance(error, ssl.SSLCertVerificationError):
        return Refused.UNTRUSTED
    lacking = (
        isinstance(error, ssl.SSLError) and error.reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE"
    )
    return Refused.NO_CERTIFICATE if lacking else Refused.OTHER
