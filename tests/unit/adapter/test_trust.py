"""How trust is renewed without a restart, whatever is in the files."""

import datetime
from pathlib import Path

import pytest
from cryptography import x509
from structlog.testing import capture_logs

from adapter.api.authentication import FrontProxy, Gate
from adapter.api.certificate import ServingCertificate, self_signed
from adapter.settings import AdapterSettings
from adapter.trust import Refused, Trust
from slicewatch.kube.objects import ConfigMap, Metadata
from slicewatch.service import certificates
from slicewatch.service.server import Address, serving
from testbed.cluster.pki import FRONT_PROXY_AUTHORITY, Pki
from testbed.front_proxy import ApiPort

PATH = "/apis/custom.metrics.k8s.io/v1beta2"


def published(pki: Pki, **changed: str) -> ConfigMap:
    data = {
        "requestheader-client-ca-file": pki.front_proxy_ca.read_text(),
        "requestheader-allowed-names": '["front-proxy-client"]',
    }
    return ConfigMap(metadata=Metadata(name="x"), data=data | changed)


def test_the_published_configuration_is_read_and_a_faulty_one_changes_nothing(
    tmp_path: Path,
) -> None:
    pki = Pki(tmp_path)
    own = pki.issue("adapter", sans=["localhost"], client=False)
    certificate = ServingCertificate(own.certificate, own.key)
    gate = Gate(certificate)
    trust = Trust(gate, AdapterSettings())
    trust.published(None, published(pki))
    good = gate.proxy
    assert good is not None
    assert good.allowed_names == ("front-proxy-client",)
    for faulty in (
        published(pki, **{"requestheader-allowed-names": "not a list"}),
        published(pki, **{"requestheader-allowed-names": '{"a": 1}'}),
        published(pki, **{"requestheader-client-ca-file": "not a certificate"}),
        published(pki, **{"requestheader-client-ca-file": ""}),
        None,
    ):
        trust.published(None, faulty)
        assert gate.proxy == good


def test_names_of_the_settings_override_those_of_the_cluster(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    certificate = self_signed(["localhost"], str(tmp_path / "own"))
    gate = Gate(certificate)
    chosen = AdapterSettings(requestheader_allowed_names=("aggregator",))
    Trust(gate, chosen).published(None, published(pki))
    assert gate.proxy is not None
    assert gate.proxy.allowed_names == ("aggregator",)


def test_an_authority_of_a_file_needs_no_cluster_and_is_read_again(tmp_path: Path) -> None:
    first, second = Pki(tmp_path / "a"), Pki(tmp_path / "b")
    bundle = tmp_path / "ca.crt"
    bundle.write_text(first.front_proxy_ca.read_text())
    certificate = self_signed(["localhost"], str(tmp_path / "own"))
    gate = Gate(certificate)
    trust = Trust(gate, AdapterSettings(requestheader_client_ca_file=str(bundle)))
    assert not trust.from_cluster
    trust.read_files()
    assert gate.proxy == FrontProxy(authorities=first.front_proxy_ca.read_text())
    bundle.unlink()
    trust.read_files()
    assert gate.proxy is not None
    bundle.write_text(second.front_proxy_ca.read_text())
    trust.read_files()
    assert gate.proxy == FrontProxy(authorities=second.front_proxy_ca.read_text())


def test_a_lasting_fault_is_logged_once_and_what_was_trusted_stays(tmp_path: Path) -> None:
    pki = Pki(tmp_path / "pki")
    own = pki.issue("shown", sans=["127.0.0.1"], client=False)
    bundle = tmp_path / "ca.crt"
    bundle.write_text(pki.front_proxy_ca.read_text())
    gate = Gate(ServingCertificate(own.certificate, own.key))
    trust = Trust(gate, AdapterSettings(requestheader_client_ca_file=str(bundle)))
    trust.read_files()
    before = gate.proxy
    bundle.write_text("nonsense")
    with capture_logs() as logged:
        for _ in range(3):
            trust.read_files()
    assert [entry["log_level"] for entry in logged] == ["warning"]
    assert gate.proxy == before


async def test_a_rotated_authority_that_nobody_published_is_counted_and_explained_once(
    tmp_path: Path,
) -> None:
    """prometheus-adapter #591: after a rotation there was nothing but TLS errors at the client."""
    port = ApiPort(tmp_path / "pki")
    trust = Trust(port.gate, AdapterSettings())
    trust.published(None, published(port.pki))
    rotated = Pki(tmp_path / "rotated")
    new = rotated.issue("front-proxy-client", ca=FRONT_PROXY_AUTHORITY)
    refused: list[Exception] = []

    def refuse(error: Exception) -> None:
        refused.append(error)
        trust.refuse(error)

    app = port.api.app()
    with capture_logs() as logged:
        async with serving(app, Address("127.0.0.1", 0), port.gate.context, failed=refuse) as at:
            port.url = f"https://{at}"
            for shown in (new, new, None, port.front_proxy()):
                await port.status(shown, PATH)
    assert trust.refused.keys() == {Refused.UNTRUSTED, Refused.NO_CERTIFICATE}
    assert trust.refused[Refused.UNTRUSTED] == 2 * trust.refused[Refused.NO_CERTIFICATE]
    (entry,) = [e for e in logged if e["event"] == "client certificate refused"]
    assert "--requestheader-client-ca-file" in entry["hint"]
    assert len(refused) == trust.refused.total()


def test_until_when_certificates_are_valid_is_known_without_a_library(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    own = pki.issue("adapter", sans=["localhost"], client=False)
    gate = Gate(ServingCertificate(own.certificate, own.key))
    assert gate.ends_at().keys() == {"serving"}
    gate.trust(FrontProxy(authorities=pki.front_proxy_ca.read_text()))
    known = gate.ends_at()
    for name, path in (("serving", own.certificate), ("front-proxy-ca", pki.front_proxy_ca)):
        made = x509.load_pem_x509_certificate(path.read_bytes())
        assert known[name] == made.not_valid_after_utc.timestamp()


@pytest.mark.parametrize("year", [1999, 2049, 2050, 2099])
def test_the_end_of_a_certificate_is_read_in_both_forms_of_time(tmp_path: Path, year: int) -> None:
    end = datetime.datetime(year, 12, 31, 23, 59, 58, tzinfo=datetime.UTC)
    hour = datetime.timedelta(hours=1)
    made = certificates.issue("a", lifetime=hour, at=end - hour)
    found = ServingCertificate(tmp_path / "a.crt", tmp_path / "a.key")
    found.write(b"# made by hand\n" + made.certificate_pem * 2, made.key_pem)
    assert found.ends_at() == end.timestamp()


@pytest.mark.parametrize("text", ["", "nonsense", "-----BEGIN CERTIFICATE-----\nMAA=\n"])
def test_the_end_of_what_is_no_certificate_is_unknown(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.crt"
    path.write_text(text + ("-----END CERTIFICATE-----\n" if "BEGIN" in text else ""))
    assert ServingCertificate(path, path).ends_at() is None
    assert ServingCertificate(tmp_path / "b.crt", path).ends_at() is None
