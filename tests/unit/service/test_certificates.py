"""Certificates that we sign: TLS accepts them for their purpose and no other."""

import asyncio
import contextlib
import datetime
import ssl

import pytest

from slicewatch.service.certificates import issue

DAY = datetime.timedelta(days=1)


@pytest.fixture(scope="module")
def authority():
    return issue("an authority", authority=True, lifetime=DAY)


def context(purpose, trusted, own, tmp_path):
    file = tmp_path / f"{purpose.value.shortname}.pem"
    file.write_bytes(own.certificate_pem + own.key_pem)
    made = ssl.create_default_context(purpose, cadata=trusted.certificate_pem.decode())
    made.load_cert_chain(file)
    made.verify_mode = ssl.CERT_REQUIRED
    return made


async def greeting(server, client, name="localhost"):
    """Return what a server sends to a client over TLS; each verifies the other."""

    async def greet(_, writer):
        writer.write(b"hello")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0, ssl=server) as listening:
        port = listening.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=client, server_hostname=name
        )
        try:
            return await reader.read()
        finally:
            writer.close()


async def verified(authority, server, client, tmp_path, name="localhost"):
    return await greeting(
        context(ssl.Purpose.CLIENT_AUTH, authority, server, tmp_path),
        context(ssl.Purpose.SERVER_AUTH, authority, client, tmp_path),
        name,
    )


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1"])
async def test_server_and_client_of_one_authority_trust_each_other(authority, tmp_path, name):
    names = ("localhost", "127.0.0.1", "::1")
    server = issue("server", issuer=authority, server_names=names, lifetime=DAY)
    client = issue("client", issuer=authority, client=True, lifetime=DAY)
    assert await verified(authority, server, client, tmp_path, name) == b"hello"


async def test_a_servers_certificate_is_not_accepted_from_a_client(authority, tmp_path):
    server = issue("server", issuer=authority, server_names=["localhost"], lifetime=DAY)
    # In TLS 1.3 the client notices only when it reads: an error, or just the end of the stream.
    with contextlib.suppress(ssl.SSLError, ConnectionError):
        assert await verified(authority, server, server, tmp_path) == b""


async def test_another_name_than_the_certificates_is_refused(authority, tmp_path):
    server = issue("server", issuer=authority, server_names=["elsewhere"], lifetime=DAY)
    client = issue("client", issuer=authority, client=True, lifetime=DAY)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        await verified(authority, server, client, tmp_path)


def test_without_an_issuer_it_is_signed_by_itself():
    made = issue("me", server_names=["me"], lifetime=DAY).certificate
    assert made.issuer == made.subject
    made.verify_directly_issued_by(made)


def test_it_is_valid_from_a_little_before_now_for_its_lifetime():
    made = issue("me", lifetime=DAY).certificate
    now = datetime.datetime.now(datetime.UTC)
    assert made.not_valid_before_utc < now
    assert abs(made.not_valid_after_utc - now - DAY) < datetime.timedelta(minutes=5)
