"""What is shown to exporters: read from files, and again when they are replaced."""

import ssl
from pathlib import Path

import pytest

from adapter.sources.credentials import CredentialFiles, Credentials, CredentialsError
from testbed.cluster.pki import Certificate, Pki


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path / "pki")


def token(folder: Path, text: str) -> str:
    path = folder / "token"
    path.write_text(text)
    return str(path)


def files(shown: Certificate, token_file: str = "") -> CredentialFiles:
    return CredentialFiles(
        ca=str(shown.authority),
        certificate=str(shown.certificate),
        key=str(shown.key),
        token=token_file,
    )


def test_without_files_exporters_are_verified_by_the_systems_authorities() -> None:
    made = Credentials()
    assert made.options == {}
    made.watched().start()
    (context,) = made.options.values()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_a_token_a_certificate_and_a_name_are_sent(tmp_path: Path, pki: Pki) -> None:
    made = Credentials(
        files(pki.issue("adapter"), token(tmp_path, "secret\n")), "exporter.gpu.svc"
    )
    made.watched().start()
    assert made.options["headers"] == {"Authorization": "Bearer secret"}
    assert made.options["server_hostname"] == "exporter.gpu.svc"
    (authority,) = made.options["ssl"].get_ca_certs()
    assert authority["subject"] == ((("commonName", "ca"),),)


async def test_a_replaced_token_is_used_without_a_restart(tmp_path: Path) -> None:
    """prometheus-adapter #598: a token that is replaced every hour was read once."""
    made = Credentials(CredentialFiles(token=token(tmp_path, "first")))
    watched = made.watched()
    watched.start()
    assert not await watched.check()
    token(tmp_path, "second")
    assert await watched.check()
    assert made.options["headers"] == {"Authorization": "Bearer second"}


@pytest.mark.parametrize("text", ["", "\n", "two words", "first\nsecond", "\u00e9"])
async def test_a_faulty_token_is_named_and_the_last_one_stays(tmp_path: Path, text: str) -> None:
    path = token(tmp_path, "first")
    made = Credentials(CredentialFiles(token=path))
    watched = made.watched()
    watched.start()
    token(tmp_path, text)
    assert not await watched.check()
    assert watched.fault.startswith(f"{path} has no token")
    assert made.options["headers"] == {"Authorization": "Bearer first"}
    with pytest.raises(CredentialsError):
        Credentials(CredentialFiles(token=path)).watched().start()


async def test_a_replaced_certificate_is_used_and_half_of_one_is_not(pki: Pki) -> None:
    shown = pki.issue("adapter")
    made = Credentials(files(shown))
    watched = made.watched()
    watched.start()
    before = made.options["ssl"]
    key = shown.key.read_bytes()
    pki.issue("adapter")
    new_key = shown.key.read_bytes()
    shown.key.write_bytes(key)
    assert not await watched.check()
    assert "adapter.crt with key" in watched.fault
    assert made.options["ssl"] is before
    shown.key.write_bytes(new_key)
    assert await watched.check()
    assert made.options["ssl"] is not before


def test_authorities_that_are_none_are_named(tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    path.write_text("nonsense")
    with pytest.raises(CredentialsError, match=r"ca\.crt holds no authorities"):
        Credentials(CredentialFiles(ca=str(path))).watched().start()
    with pytest.raises(FileNotFoundError):
        Credentials(CredentialFiles(ca=str(tmp_path / "b.crt"))).watched().start()
