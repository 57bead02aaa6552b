"""The web configuration: what the exporter-toolkit takes is taken, what it refuses is refused."""

import datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.service import certificates
from slicewatch.service.tls import SUITES_12, ClientAuth
from slicewatch.service.web.config import (
    HEADERS,
    RateLimit,
    WebConfig,
    WebConfigError,
    parse,
    read,
)

HASH = "$2y$10$" + "a" * 53
PLACE = Path("/nowhere/web.yml")
DAY = datetime.timedelta(days=1)


@pytest.fixture(scope="module")
def issued():
    return certificates.issue("here", lifetime=DAY, server_names=["127.0.0.1"], authority=True)


@pytest.fixture
def folder(tmp_path, issued):
    """Return a folder with a certificate, its key, and a CA of clients."""
    (tmp_path / "tls.crt").write_bytes(issued.certificate_pem)
    (tmp_path / "tls.key").write_bytes(issued.key_pem)
    (tmp_path / "ca.crt").write_bytes(issued.certificate_pem)
    return tmp_path


def write(folder, text):
    path = folder / "web.yml"
    path.write_text(text, encoding="utf-8")
    return path


def tls(*lines):
    given = ("cert_file: tls.crt", "key_file: tls.key", *lines)
    return "tls_server_config:\n" + "".join(f"  {line}\n" for line in given)


def faults(path):
    with pytest.raises(WebConfigError) as raised:
        read(path)
    assert all(fault.startswith(f"web configuration {path}: ") for fault in raised.value.faults)
    return "\n".join(raised.value.faults)


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "{}", "tls_server_config:\n", "tls_server_config: {}"]
)
def test_an_empty_file_asks_for_nothing(text):
    assert parse(text, PLACE) == WebConfig()


def test_every_key_of_the_format_is_known(folder, issued):
    text = tls(
        "client_auth_type: RequireAndVerifyClientCert", "client_ca_file: ca.crt",
        "client_allowed_sans: [prometheus, 10.0.0.1]", "min_version: TLS12", "max_version: TLS13",
        "cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256]",
        "prefer_server_cipher_suites: false", "curve_preferences: [X25519]",
    ) + (
        "http_server_config:\n  http2: true\n  headers:\n    X-Frame-Options: deny\n"
        "    X-XSS-Protection: ''\n"
        f"basic_auth_users:\n  yes: {HASH}\n  '0123': {HASH}\n"
        "rate_limit:\n  interval: 250ms\n  burst: 20\n"
    )  # fmt: skip
    config = read(write(folder, text))
    assert config.tls.certificate_pem == issued.certificate_pem
    assert config.tls.key_pem == issued.key_pem
    assert config.tls.client_auth is ClientAuth.REQUIRE
    assert config.tls.client_ca_pem == issued.certificate_pem
    assert config.tls.suites == ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",)
    assert not config.tls.prefer_server_suites
    assert config.tls.curve == "X25519"
    assert config.allowed_sans == {"prometheus", "10.0.0.1"}
    assert config.headers == {"X-Frame-Options": "deny"}
    assert config.users == {"yes": HASH, "0123": HASH}
    assert config.rate_limit == RateLimit(interval_seconds=0.25, burst=20)


def test_certificates_may_be_written_inline(tmp_path, issued):
    def block(pem):
        return "|\n" + "".join(f"    {line}\n" for line in pem.decode().splitlines())

    text = (
        f"tls_server_config:\n  cert: {block(issued.certificate_pem)}"
        f"  key: {block(issued.key_pem)}  client_ca: {block(issued.certificate_pem)}"
        "  client_auth_type: VerifyClientCertIfGiven\n"
    )
    assert read(write(tmp_path, text)).verifies_clients


def test_no_secret_is_shown_where_a_configuration_is_printed(folder, issued):
    shown = repr(read(write(folder, tls() + f"basic_auth_users: {{a: {HASH}}}\n")))
    assert "PRIVATE KEY" not in shown
    assert HASH not in shown


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "must map the names of sections"),
        ("tls_server_config: [a]", "tls_server_config: must map keys to values"),
        (r'tls_server_config: {client_allowed_sans: "\ud800"}', "surrogates not allowed"),
        ("tls_config: {}", "unknown key 'tls_config'; did you mean tls_server_config?"),
        ("zebra: {}", "unknown key 'zebra'; choose from tls_server_config, http"),
        (tls("cert_files: x"), "unknown key 'cert_files'; did you mean cert_file?"),
        ("tls_server_config: {cert_file: tls.crt}", "key: missing; TLS needs key_file or key"),
        ("tls_server_config: {key_file: tls.key}", "cert: missing; TLS needs cert_file or cert"),
        ("tls_server_config: {client_auth_type: NoClientCert}", "cert: missing"),
        (tls("cert: x"), "cert: given both here and as cert_file; remove one"),
        (tls("client_auth_type: Always"), "'Always' is none of NoClientCert"),
        (tls("client_auth_type: RequireAnyClientCert"), "use RequireAndVerifyClientCert"),
        (tls("client_auth_type: RequireClientCert"), "use RequireAndVerifyClientCert"),
        (tls("client_auth_type: RequireAndVerifyClientCert"), "client_ca: missing; Require"),
        (tls("client_ca_file: ca.crt"), "client_ca: client_auth_type NoClientCert verifies no"),
        (tls("client_allowed_sans: [a]"), "set client_auth_type to RequireAndVerifyClientCert"),
        (
            tls("client_auth_type: VerifyClientCertIfGiven", "client_ca_file: ca.crt",
                "client_allowed_sans: [a]"),
            "client_allowed_sans: every client has to show a certificate",
        ),
        (tls("min_version: TLS11"), "min_version: 'TLS11' is none of TLS12, TLS13"),
        (tls("min_version: TLS13", "max_version: TLS12"), "TLS13 is above max_version TLS12"),
        (tls("cipher_suites: [RC4]"), "cipher_suites: 'RC4' is none of TLS_ECDHE"),
        (tls("cipher_suites: [TLS_AES_128_GCM_SHA256]"), "set min_version to TLS13 instead"),
        (tls("cipher_suites: TLS"), "tls_server_config: Expected `array`"),
        (tls("curve_preferences: [P-1]"), "curve_preferences: 'P-1' is none of CurveP256"),
        (tls("curve_preferences: [X25519, CurveP256]"), "keep the first, or remove"),
        (tls("prefer_server_cipher_suites: perhaps"), "prefer_server_cipher_suites"),
        ("tls_server_config: {cert_file: no.crt, key_file: tls.key}", "no.crt cannot be read: No"),
        ("http_server_config: {headers: {Server: x}}", "headers: unknown key 'Server'"),
        ("http_server_config: {headers: {X-Frame-Options: x}}", "must be deny or sameorigin"),
        ('http_server_config: {headers: {X-XSS-Protection: "a\\r\\nb"}}', "no header may have"),
        ("basic_auth_users: {alice: secret}", "what 'alice' has is not a bcrypt hash; make one"),
        ("basic_auth_users: [alice]", "basic_auth_users: must map user names to bcrypt hashes"),
        (f"basic_auth_users: {{'a:b': {HASH}}}", "'a:b' has a colon"),
        ("basic_auth_users:\n  a: x\n  a: y\n", "the key 'a' is there twice"),
        ("rate_limit: {interval: 1, burst: 1}", "interval: 1 has no unit; write 1s"),
        ("rate_limit: {interval: soon}", "rate_limit: interval: 'soon' is not a valid duration"),
        ("rate_limit: {interval: 1s}", "burst: must be at least 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_the_key_and_what_to_do(folder, text, why):
    assert why in faults(write(folder, text))


def test_all_faults_are_said_together(folder):
    found = faults(write(folder, tls("min_version: SSL3") + "basic_auth_users: {a: b}\nx: 1\n"))
    assert found.count("\n") == 2


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("tls.crt", b"garbled", "certificate and key cannot be used"),
        ("tls.key", b"", "certificate and key cannot be used"),
        ("tls.key", None, "KEY_VALUES_MISMATCH"),
        ("ca.crt", b"garbled", "clients' CA is not a list of PEM certificates"),
        ("ca.crt", b"\xff\xfe", "clients' CA is not a list of PEM certificates"),
    ],
)
def test_files_that_no_server_can_use_are_refused(folder, name, content, why):
    other = certificates.issue("other", lifetime=DAY).key_pem
    (folder / name).write_bytes(other if content is None else content)
    auth = ("client_auth_type: RequireAndVerifyClientCert", "client_ca_file: ca.crt")
    assert why in faults(write(folder, tls(*auth)))


def test_an_encrypted_key_is_refused_without_asking_for_a_password(folder, issued):
    from cryptography.hazmat.primitives import serialization as keys

    encrypted = issued.key.private_bytes(
        keys.Encoding.PEM, keys.PrivateFormat.PKCS8, keys.BestAvailableEncryption(b"x")
    )
    (folder / "tls.key").write_bytes(encrypted)
    assert "the key is encrypted; write it without a password" in faults(write(folder, tls()))


def test_a_file_that_is_missing_or_no_text_is_refused(tmp_path):
    assert "cannot be read: No such file" in faults(tmp_path / "web.yml")
    (tmp_path / "web.yml").write_bytes(b"\xff")
    assert "not text in UTF-8" in faults(tmp_path / "web.yml")


def attempt(text):
    """Return the configuration, or None and the faults."""
    try:
        return parse(text, PLACE), ()
    except WebConfigError as error:
        return None, error.faults


KEYS = st.sampled_from(
    ["cert", "key", "client_ca", "cert_file", "key_file", "client_auth_type", "client_ca_file",
     "client_allowed_sans", "min_version", "max_version", "cipher_suites", "curve_preferences",
     "prefer_server_cipher_suites", "http2", "headers", "interval", "burst", *HEADERS]
)  # fmt: skip
VALUES = st.recursive(
    st.text(max_size=8)
    | st.sampled_from(["TLS12", "TLS13", "true", HASH, "1s", "X25519", "\ud800", "a\0b"])
    | st.sampled_from([choice.value for choice in ClientAuth])
    | st.sampled_from(list(SUITES_12)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner),
    max_leaves=8,
)
SECTIONS = st.sampled_from(
    ["tls_server_config", "http_server_config", "basic_auth_users", "rate_limit", "other"]
)


@given(st.dictionaries(SECTIONS, st.dictionaries(KEYS, VALUES) | VALUES))
def test_any_document_is_a_configuration_or_an_error_that_says_why(document):
    class NoAliases(yaml.SafeDumper):
        def ignore_aliases(self, _):
            return True

    config, faults = attempt(yaml.dump(document, Dumper=NoAliases))
    assert (config is None) == bool(faults)
    if config is not None:
        assert "other" not in document
        assert set(config.headers) <= set(HEADERS)
        assert not config.verifies_clients or config.tls.client_ca_pem


@given(st.text(max_size=200))
def test_any_text_is_a_configuration_or_an_error_that_says_why(text):
    _, faults = attempt(text)
    assert all(fault.startswith("web configuration /nowhere/web.yml: ") for fault in faults)
