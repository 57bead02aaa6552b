"""The section ``tls_server_config`` of the web configuration, and what in it is impossible."""

from typing import Final

import msgspec

from slicewatch.service.tls import CURVES, SUITES_12, SUITES_13, VERSIONS, ClientAuth, ServerTls
from slicewatch.service.web.reading import Reading

UNVERIFIED: Final = ("RequireAnyClientCert", "RequireClientCert")


class TlsSection(msgspec.Struct, frozen=True, kw_only=True):
    """The section as it is written; an empty text is what was not given."""

    cert: str = ""
    key: str = ""
    client_ca: str = ""
    cert_file: str = ""
    key_file: str = ""
    client_ca_file: str = ""
    client_auth_type: str = ""
    client_allowed_sans: tuple[str, ...] | None = None
    min_version: str = "TLS12"
    max_version: str = "TLS13"
    cipher_suites: tuple[str, ...] = ()
    prefer_server_cipher_suites: bool = True
    curve_preferences: tuple[str, ...] = ()

    @property
    def enabled(self) -> bool:
        """Tell whether TLS is asked for, completely or not."""
        return any(
            (self.cert, self.key, self.client_ca, self.cert_file, self.key_file,
             self.client_ca_file, self.client_auth_type)
        )  # fmt: skip


def server_tls(reading: Reading, given: TlsSection) -> ServerTls | None:
    """Return what the section asks for; None where it cannot be had, and the faults are noted."""
    before = len(reading.faults)
    client_auth = _client_auth(reading, given.client_auth_type)
    authority = reading.pem(
        "client_ca", given.client_ca, given.client_ca_file,
        needed=client_auth.value if client_auth.verifies else "",
    )  # fmt: skip
    if authority and not client_auth.verifies:
        reading.faults.append(
            f"client_ca: client_auth_type {client_auth.value} verifies no client;"
            " set RequireAndVerifyClientCert or remove the CA"
        )
    made = ServerTls(
        certificate_pem=reading.pem("cert", given.cert, given.cert_file, needed="TLS"),
        key_pem=reading.pem("key", given.key, given.key_file, needed="TLS"),
        client_auth=client_auth,
        client_ca_pem=authority,
        min_version=given.min_version,
        max_version=given.max_version,
        suites=_suites(reading, given),
        prefer_server_suites=given.prefer_server_cipher_suites,
        curve=_curve(reading, given.curve_preferences),
    )
    _check_versions(reading, given)
    return made if len(reading.faults) == before else None


def _client_auth(reading: Reading, name: str) -> ClientAuth:
    choices = {choice.value: choice for choice in ClientAuth}
    if name in UNVERIFIED:
        reading.faults.append(
            f"client_auth_type: {name} lets in any certificate without verifying it, and is not"
            " offered; use RequireAndVerifyClientCert with client_ca_file"
        )
    elif name and reading.chosen("client_auth_type", name, choices):
        return choices[name]
    return ClientAuth.NONE


def _check_versions(reading: Reading, given: TlsSection) -> None:
    lowest = reading.chosen("min_version", given.min_version, VERSIONS)
    highest = reading.chosen("max_version", given.max_version, VERSIONS)
    if lowest and highest and VERSIONS[given.min_version] > VERSIONS[given.max_version]:
        reading.faults.append(
            f"min_version: {given.min_version} is above max_version {given.max_version}"
        )


def _suites(reading: Reading, given: TlsSection) -> tuple[str, ...]:
    known = dict.fromkeys([*SUITES_12, *SUITES_13])
    names = [n for n in given.cipher_suites if reading.chosen("cipher_suites", n, known)]
    chosen = tuple(name for name in names if name in SUITES_12)
    if names and not chosen and given.min_version != "TLS13":
        reading.faults.append(
            "cipher_suites: names suites of TLS 1.3 only, which cannot be chosen;"
            " set min_version to TLS13 instead"
        )
    return chosen


def _curve(reading: Reading, names: tuple[str, ...]) -> str:
    known = all(reading.chosen("curve_preferences", name, CURVES) for name in names)
    if known and len(names) > 1:
        reading.faults.append(
            "curve_preferences: one curve at most can be chosen here; keep the first, or remove"
            " the key for the TLS library's own order"
        )
    return names[0] if names and known else ""


def allowed_sans(reading: Reading, given: TlsSection) -> frozenset[str] | None:
    """Return of which names a client's certificate must have one; None where any will do."""
    if given.client_allowed_sans is None:
        return None
    if given.client_auth_type != ClientAuth.REQUIRE.value:
        reading.faults.append(
            "client_allowed_sans: every client has to show a certificate for that;"
            " set client_auth_type to RequireAndVerifyClientCert"
        )
    return frozenset(given.client_allowed_sans)
