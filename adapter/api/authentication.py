"""Who may ask: only the front proxy of kube-apiserver, identified by its client certificate.

The API server has authenticated and authorised the user before it proxies a request, so nothing
else is needed and nothing else may be trusted: ``X-Remote-*`` headers are never looked at. TLS
requires a certificate issued by the request-header authority and by no other; each request is
then checked for an allowed common name.
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
    """What the front proxy's certificate has to be; without ``allowed_names``, any name will do.

    Raises:
        TrustError: when built with authorities that are not certificates.
    """

    authorities: str
    allowed_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))

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
        except (ValueError, RecursionError) as error:
            raise TrustError(f"{NAMES_KEY} is not valid JSON: {error}") from error
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise TrustError(f"{NAMES_KEY} is not a list of names: {names!r}")
        return cls(authorities=authorities, allowed_names=tuple(names))

    def load_into(self, context: ssl.SSLContext) -> None:
        """Make a context trust the authorities."""
        try:
            context.load_verify_locations(cadata=self.authorities)
        except (ssl.SSLError, ValueError) as error:
            raise TrustError(f"{CA_KEY} does not hold a usable certificate: {error}") from error


class _Context(ssl.SSLContext):
    """A context that remembers whose certificates it was made to verify."""

    authorities: str | None = None


class Gate:
    """TLS for the API port, and the check of each request's certificate.

    The context given to the server does nothing but hand each connection over to the current one,
    since an authority cannot be removed from a context. Until an authority is known, every
    handshake fails.

    Attributes:
        certificate: what is served.
        context: for the server.
        proxy: who is let in; None for nobody yet.
        closing: the process is about to end, so connections are to be made elsewhere.
    """

    def __init__(self, certificate: ServingCertificate) -> None:
        self.certificate = certificate
        self.proxy: FrontProxy | None = None
        self.closing = False
        self._current = self._context(None)
        self.context = self._context(None)
        self.context.sni_callback = self._hand_over

    def trust(self, proxy: FrontProxy | None) -> bool:
        """Admit this front proxy and no other; tell whether that is a change."""
        if proxy == self.proxy:
            return False
        self._current = self._context(proxy)
        self.proxy = proxy
        return True

    def renew(self) -> None:
        """Serve the certificate as it is on disk now.

        Raises:
            CertificateError: it cannot be used; nothing has changed.
        """
        self.certificate.renew()
        self._current = self._context(self.proxy)

    def check(self, certificate: Mapping[str, Any] | None) -> None:
        """Admit a request whose connection carries this certificate, as decoded by ``ssl``.

        Raises:
            Refusal: 401; the certificate is not the front proxy's.
        """
        proxy = self.proxy
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

    def distrusts(self, connection: ssl.SSLObject | None) -> bool:
        """Tell whether authorities that have been replaced since verified the connection."""
        context = None if connection is None else connection.context
        return (
            isinstance(context, _Context)
            and self.proxy is not None
            and context.authorities != self.proxy.authorities
        )

    def outdated(self, connection: ssl.SSLObject | None) -> bool:
        """Tell whether a connection has to end: we do, or trust has changed since it was made."""
        return self.closing or (connection is not None and connection.context is not self._current)

    def ends_at(self) -> Mapping[str, float]:
        """Return until when our certificate and the last of the authorities are valid.

        Returns:
            Seconds since the epoch by ``serving`` and ``front-proxy-ca``, as far as known.
        """
        authorities = self._current.get_ca_certs()
        ends = [ssl.cert_time_to_seconds(str(one["notAfter"])) for one in authorities]
        known = {"serving": self.certificate.ends_at(), "front-proxy-ca": max(ends, default=None)}
        return {name: float(end) for name, end in known.items() if end is not None}

    def _hand_over(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _: ssl.SSLContext
    ) -> None:
        connection.context = self._current

    def _context(self, proxy: FrontProxy | None) -> ssl.SSLContext:
        context = _Context(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED
        # A resumed session is not verified again, so it would outlive the trust it was made under.
        # TLS 1.2 can always resume by session id; TLS 1.3 only by tickets, and none are issued.
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.num_tickets = 0
        self.certificate.load_into(context)
        if proxy is not None:
            proxy.load_into(context)
            context.authorities = proxy.authorities
        return context


def _common_names(certificate: Mapping[str, Any]) -> list[str]:
    return [
        value
        for relative in certificate.get("subject", ())
        for name, value in relative
        if name == "commonName"
    ]
