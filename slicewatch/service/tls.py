"""TLS of a server: from certificates as bytes to a context that Python's ssl module serves with.

Takes bytes and never paths, so that what was checked is what is served, even while files are
being replaced. Names of versions, suites and curves are Go's, which the web configuration uses.
"""

import contextlib
import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

VERSIONS: Final = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
CURVES: Final = {
    "CurveP256": "prime256v1",
    "CurveP384": "secp384r1",
    "CurveP521": "secp521r1",
    "X25519": "X25519",
}
# Suites of TLS 1.3 cannot be chosen, neither here nor in Go.
SUITES_13: Final = frozenset(
    {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
)
SUITES_12: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}


class ClientAuth(Enum):
    """Whether clients have to show a certificate; the value is Go's name."""

    NONE = "NoClientCert"
    # Asks, and takes any: to whom nothing follows from it, the same as not to ask.
    REQUEST = "RequestClientCert"
    VERIFY_IF_GIVEN = "VerifyClientCertIfGiven"
    REQUIRE = "RequireAndVerifyClientCert"

    @property
    def verifies(self) -> bool:
        """Tell whether a certificate that a client shows is verified."""
        return self in {ClientAuth.VERIFY_IF_GIVEN, ClientAuth.REQUIRE}


class TlsError(ValueError):
    """Certificates or choices that no server can use; says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """All that a server's TLS is made of. Equal ones serve the same.

    Attributes:
        client_ca_pem: authorities of clients; empty where none is verified.
        suites: Go's names of the suites of TLS 1.2; none for the library's own choice.
        curve: Go's name of the one curve; empty for the library's own choice.
    """

    certificate_pem: bytes
    key_pem: bytes = field(repr=False)
    client_auth: ClientAuth = ClientAuth.NONE
    client_ca_pem: bytes = b""
    min_version: str = "TLS12"
    max_version: str = "TLS13"
    suites: tuple[str, ...] = ()
    prefer_server_suites: bool = True
    curve: str = ""

    def context(self) -> ssl.SSLContext:
        """Return a new context.

        Raises:
            TlsError: a certificate is not PEM, key and certificate do not match, the key is
                encrypted.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        context.minimum_version = VERSIONS[self.min_version]
        context.maximum_version = VERSIONS[self.max_version]
        if not self.prefer_server_suites:
            context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
        if self.suites:
            context.set_ciphers(":".join(SUITES_12[name] for name in self.suites))
        if self.curve:
            context.set_ecdh_curve(CURVES[self.curve])
        load_chain(context, self.certificate_pem, self.key_pem)
        if self.client_auth.verifies:
            self._load_authorities(context)
        return context

    def _load_authorities(self, context: ssl.SSLContext) -> None:
        try:
            context.load_verify_locations(cadata=self.client_ca_pem.decode("ascii"))
        except (OSError, ValueError) as error:
            raise TlsError(
                f"the clients' CA is not a list of PEM certificates: {error}"
            ) from error
        required = self.client_auth is ClientAuth.REQUIRE
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL


def load_chain(context: ssl.SSLContext, certificate_pem: bytes, key_pem: bytes) -> None:
    """Make a context serve a certificate, with those between it and its authority.

    Raises:
        TlsError: one is not PEM, the two do not match, or the key is encrypted.
    """
    try:
        with _in_memory(certificate_pem) as certificate, _in_memory(key_pem) as key:
            context.load_cert_chain(certificate, key, password=no_password)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise TlsError(f"certificate and key cannot be used: {reason}") from error


def client_names(peer: dict[str, object] | None) -> tuple[str | None, frozenset[str]]:
    """Return common name and alternative names of a verified client, as ``getpeercert`` has them.

    Returns:
        None and no names for a client that showed no certificate.
    """
    if not peer:
        return None, frozenset()
    subject: tuple[tuple[tuple[str, str], ...], ...] = peer.get("subject", ())  # type: ignore[assignment]
    alternative: tuple[tuple[str, str], ...] = peer.get("subjectAltName", ())  # type: ignore[assignment]
    common = [value for part in subject for key, value in part if key == "commonName"]
    return (common[0] if common else None), frozenset(value for _, value in alternative)


def no_password() -> str:
    """Refuse the password of a key: without this, the library asks for one on the terminal.

    Raises:
        TlsError: always.
    """
    raise TlsError("the key is encrypted; write it without a password")


@contextlib.contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """Yield a path to the content, which is on no disk: the library takes keys from paths only."""
    descriptor = os.memfd_create("pem")
    with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor has no path
        file.write(content)
        file.flush()
        yield f"/proc/self/fd/{descriptor}"
