"""Certificates of the demonstration: the adapter talks to a front proxy only, so we become one."""

import datetime
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

NAME = "front-proxy-client"
LIFETIME = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passport:
    """An authority, and a client certificate of it with its key in one file, both PEM."""

    authority: Path
    client: Path


def issue(folder: Path) -> Passport:
    """Write a new passport into a folder."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _name("slicewatch demo front proxy CA")
    limits = x509.BasicConstraints(ca=True, path_length=0)
    signed = _builder(authority, authority, authority_key.public_key()).add_extension(
        limits, critical=True
    )
    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    client = _builder(_name(NAME), authority, key.public_key()).add_extension(
        usage, critical=False
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    passport = Passport(authority=folder / "ca.pem", client=folder / "front-proxy.pem")
    passport.authority.write_bytes(_pem(signed, authority_key))
    passport.client.touch(mode=0o600)
    passport.client.write_bytes(_pem(client, authority_key) + private)
    return passport


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + LIFETIME)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])


def _pem(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> bytes:
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
