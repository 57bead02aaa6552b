"""Keeps the API port's trust current: the front proxy's authority and our own certificate."""

import asyncio
import ssl
from pathlib import Path
from typing import Final

import structlog

from adapter.api.authentication import FrontProxy, Gate, TrustError
from adapter.api.certificate import CertificateError, ServingCertificate, self_made
from adapter.settings import AdapterSettings
from slicewatch.kube.objects import ConfigMap, Selection

log = structlog.get_logger(__name__)

PUBLISHED: Final = Selection(namespace="kube-system", name="extension-apiserver-authentication")
"""Where a cluster says who its front proxy is."""
FILES_SECONDS: Final = 10.0


def certificate(settings: AdapterSettings) -> ServingCertificate:
    """Return the certificate that the settings name, or one made by ourselves.

    Raises:
        CertificateError: it cannot be made.
    """
    if settings.tls_cert_file:
        return ServingCertificate(Path(settings.tls_cert_file), Path(settings.tls_key_file))
    return self_made(settings.tls_names, settings.cert_dir)


class Trust:
    """Feeds a gate from the cluster's published configuration, and from files."""

    def __init__(
        self, gate: Gate, certificate: ServingCertificate, settings: AdapterSettings
    ) -> None:
        self._gate = gate
        self._certificate = certificate
        self._file = settings.requestheader_client_ca_file
        self._names = settings.requestheader_allowed_names

    @property
    def from_cluster(self) -> bool:
        """Tell whether the cluster's published configuration is needed."""
        return not self._file

    def published(self, _: ConfigMap | None, new: ConfigMap | None) -> None:
        """Take in a change of the published configuration; a faulty one leaves the former."""
        if new is None:
            log.warning("front proxy configuration is gone, the last one stays trusted")
            return
        try:
            self._trust(FrontProxy.of_data(new.data))
        except TrustError as error:
            log.warning("front proxy configuration cannot be used", error=str(error))

    def read_files(self) -> None:
        """Look at the files once, and take in what changed."""
        if self._file:
            try:
                authorities = Path(self._file).read_text(encoding="utf-8")
                self._trust(FrontProxy(authorities=authorities, allowed_names=()))
            except (OSError, UnicodeDecodeError, TrustError) as error:
                log.warning("authorities cannot be used", file=self._file, error=str(error))
        if self._certificate.changed():
            try:
                self._gate.renew()
                log.info("serving certificate renewed", file=str(self._certificate.certificate))
            except (CertificateError, ssl.SSLError) as error:
                log.warning("serving certificate cannot be used", error=str(error))

    async def run(self) -> None:
        """Look at the files again and again; Kubernetes replaces mounted ones at any time."""
        while True:
            self.read_files()
            await asyncio.sleep(FILES_SECONDS)

    def _trust(self, proxy: FrontProxy) -> None:
        named = FrontProxy(
            authorities=proxy.authorities, allowed_names=self._names or proxy.allowed_names
        )
        if self._gate.trust(named):
            log.info("front proxy is trusted", allowed_names=named.allowed_names)
