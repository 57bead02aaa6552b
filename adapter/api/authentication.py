"""Who may ask: only the front proxy of kube-apiserver, known by its client certificate.

The API server has authenticated and authorised the user before it proxies a request, so nothing
else is needed, and nothing else may be trusted: ``X-Remote-*`` headers are never looked at. The
TLS context requires a certificate of the request-header authority and of no other; a request
then has to carry an allowed common name.
"""

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from adapter.api.certificate import ServingCertificate
from adapter.api.status import Reason, Refusal

CA_KEY: Final = "requestheader-client-ca-file"
NAMES_KEY: Final = "requestheader-allowed-names"


class TrustError(ValueError):
    """The request-header configuration cannot be used; says which part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontProxy:
    """What the front proxy's certificate has to be. No ``allowed_names`` means any name."""

    authorities: str
    allowed_names: tuple[str, ...] = ()

    @classmethod
    def of_data(cls, data: Mapping[str, str]) -> "FrontProxy":
        """Return what a cluster publishes in its ``extension-apiserver-authentication``.

        Raises:
            TrustError: a key is missing or malformed.
        """
        authorities = data.get(CA_KEY, "")
        if not authorities.strip():
            raise TrustError(
                f"{CA_KEY} is missing: kube-apiserver runs without --requestheader-client-ca-file"
            )
        try:
            names = json.loads(data.get(NAMES_KEY, "[]"))
        except json.JSONDecodeError as error:
            raise TrustError(f"{NAMES_KEY} is no JSON list: {error}") from error
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise TrustError(f"{NAMES_KEY} is no list of names: {names!r}")
        return cls(authorities=authorities, allowed_names=tuple(names))


class Gate:
    """TLS for the API port, and the check of each request's certificate.

    The context that is given to the server only ever hands a connection over to the present one,
    since an authority cannot be taken out of a context again. While no authority is known, every
    handshake fails.
    """

    def __init__(self, certificate: ServingCertificate) -> None:
        self._certificate = certificate
        self._proxy: FrontProxy | None = None
        self._present = self._context(None)
        self.context = self._context(None)
        self.context.sni_callback = self._hand_over

    @property
    def proxy(self) -> FrontProxy | None:
        """Who is let in now; None for nobody yet."""
        return self._proxy

    def trust(self, proxy: FrontProxy) -> bool:
        """Let in this front proxy and no other any more; tell whether that is a change.

        Raises:
            TrustError: the authorities are no certificates; the former ones stay trusted.
        """
        if proxy == self._proxy:
            return False
        self._present = self._context(proxy)
        self._proxy = proxy
        return True

    def renew(self) -> None:
        """Serve new connections with the certificate as its files are now."""
        self._present = self._context(self._proxy)

    def check(self, certificate: Mapping[str, Any] | None) -> None:
        """Let a request pass whose connection carries this certificate, as ``ssl`` decodes it.

        Raises:
            Refusal: 401; the certificate is not the front proxy's.
        """
        proxy = self._proxy
        names = _common_names(certificate or {})
        if proxy is None or not names:
            raise Refusal(
                Reason.Unauthorized, "no client certificate: ask through the Kubernetes API server"
            )
        if proxy.allowed_names and not any(name in proxy.allowed_names for name in names):
            raise Refusal(
                Reason.Unauthorized,
                f"the client certificate is for {names[0]!r}, not for a front proxy "
                f"({', '.join(proxy.allowed_names)}): ask through the Kubernetes API server",
            )

    def outdated(self, connection: ssl.SSLObject | None) -> bool:
        """Tell whether a connection was made under trust that has changed since."""
        return connection is not None and connection.context is not self._present

    def _hand_over(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _: ssl.SSLContext
    ) -> None:
        connection.context = self._present

    def _context(self, proxy: FrontProxy | None) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_REQUIRED
        # A resumed session would keep the trust of the day it began.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        self._certificate.load_into(context)
        if proxy is not None:
            try:
                context.load_verify_locations(cadata=proxy.authorities)
            except (ssl.SSLError, ValueError) as error:
                raise TrustError(f"{CA_KEY} holds no usable certificate: {error}") from error
        return context


def _common_names(certificate: Mapping[str, Any]) -> list[str]:
    return [
        value
        for relative in certificate.get("subject", ())
        for name, value in relative
        if name == "commonName"
    ]
