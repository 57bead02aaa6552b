"""A key with a password is refused wherever the adapter reads one: nobody is there to ask for it."""

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from adapter.api.certificate import ServingCertificate
from adapter.sources.credentials import CredentialFiles
from adapter.sources.credentials import Credentials as OfExporters
from adapter.sources.prometheus.credentials import Access
from adapter.sources.prometheus.credentials import Credentials as OfBackend
from testbed.cluster.pki import Pki


def served(certificate: Path, key: Path) -> None:
    ServingCertificate(certificate, key).load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))


def shown_to_exporters(certificate: Path, key: Path) -> None:
    files = CredentialFiles(certificate=str(certificate), key=str(key))
    OfExporters(files).watched().start()


def shown_to_a_backend(certificate: Path, key: Path) -> None:
    OfBackend(Access(certificate_file=str(certificate), key_file=str(key))).context()


@pytest.mark.parametrize("use", [served, shown_to_exporters, shown_to_a_backend])
def test_an_encrypted_key_is_refused_without_asking_for_a_password(
    tmp_path: Path, use: Callable[[Path, Path], None]
) -> None:
    issued = Pki(tmp_path).issue("adapter", sans=["127.0.0.1"])
    use(issued.certificate, issued.key)
    key = serialization.load_pem_private_key(issued.key.read_bytes(), None)
    encrypted = tmp_path / "encrypted.key"
    encrypted.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(ValueError, match="the key is encrypted; write it without a password"):
        use(issued.certificate, encrypted)
