"""Where exporters are found."""

from typing import Any

import msgspec
import pytest

from adapter.settings import AdapterSettings
from adapter.sources.discovery import endpoints, fixed, selection, target
from slicewatch.kube.objects import EndpointSlice
from slicewatch.service.server import Address
from slicewatch.service.settings import SettingsError, load


def piece(ports: Any, *ends: Any) -> EndpointSlice:
    return msgspec.convert(
        {"metadata": {"name": "s", "namespace": "ns"}, "endpoints": list(ends), "ports": ports},
        EndpointSlice,
    )


def placed(*pieces: EndpointSlice) -> dict[str, str]:
    return dict(endpoints({("ns", str(i)): p for i, p in enumerate(pieces)}))


def found(*pieces: EndpointSlice) -> set[str]:
    return set(placed(*pieces))


def end(address: str, **conditions: bool) -> dict[str, Any]:
    return {"addresses": [address], "conditions": conditions}


HTTP = [{"name": "http", "port": 9400}]


def test_every_endpoint_of_every_slice_is_a_target() -> None:
    both = found(piece(HTTP, end("10.0.0.1"), end("10.0.0.2")), piece(HTTP, end("10.0.0.3")))
    assert both == {f"http://10.0.0.{i}:9400" for i in (1, 2, 3)}


def test_an_endpoint_that_is_not_ready_is_a_target_and_one_that_terminates_is_not() -> None:
    slices = piece(
        HTTP,
        end("10.0.0.1", ready=False, serving=False),
        end("10.0.0.2", ready=False, serving=True, terminating=True),
    )
    assert found(slices) == {"http://10.0.0.1:9400"}


@pytest.mark.parametrize(
    "identity",
    [
        {"targetRef": {"kind": "Pod", "namespace": "ns", "name": "exporter-x"}, "nodeName": "n1"},
        {"nodeName": "n1"},
    ],
    ids=["pod", "node"],
)
def test_an_exporter_of_a_dual_stack_service_is_one_target(identity: dict[str, Any]) -> None:
    six, four = piece(HTTP, end("fd00::1") | identity), piece(HTTP, end("10.0.0.1") | identity)
    assert found(six, four) == found(four, six) == {"http://10.0.0.1:9400"}
    assert found(six) == {"http://[fd00::1]:9400"}


def test_two_exporters_of_a_node_are_two_targets() -> None:
    old, new = (
        end(f"10.0.0.{i}")
        | {"targetRef": {"namespace": "ns", "name": f"exporter-{i}"}, "nodeName": "n1"}
        for i in (1, 2)
    )
    assert found(piece(HTTP, old, new)) == {"http://10.0.0.1:9400", "http://10.0.0.2:9400"}


def test_an_exporter_is_on_the_node_of_its_endpoint_if_that_names_one() -> None:
    ends = end("10.0.0.1") | {"nodeName": "n1"}, end("10.0.0.2") | {"nodeName": None}
    assert placed(piece(HTTP, *ends)) == {"http://10.0.0.1:9400": "n1", "http://10.0.0.2:9400": ""}


def test_an_address_of_version_six_is_bracketed() -> None:
    assert found(piece(HTTP, end("fd00::1"))) == {"http://[fd00::1]:9400"}


@pytest.mark.parametrize(
    ("ports", "port"),
    [
        ([{"name": "other", "port": 1}, {"name": "http", "port": 2}], 2),
        ([{"name": "other", "port": 1}, {"name": "metrics", "port": 3}], 3),
        ([{"name": "other", "port": 1}, {"name": "https", "port": 5}], 5),
        ([{"name": None, "port": 4}], 4),
        (None, 9400),
        ([], 9400),
    ],
)
def test_the_port_is_the_one_named_http_or_else_the_only_one(ports: Any, port: int) -> None:
    assert found(piece(ports, end("10.0.0.1"))) == {f"http://10.0.0.1:{port}"}


def test_exporters_may_be_found_that_speak_tls() -> None:
    slices = {("ns", "s"): piece(HTTP, end("10.0.0.1"), end("fd00::1"))}
    assert set(endpoints(slices, "https")) == {"https://10.0.0.1:9400", "https://[fd00::1]:9400"}


def test_slices_without_endpoints_have_no_targets() -> None:
    empty = msgspec.convert({"metadata": {"name": "s"}, "endpoints": None}, EndpointSlice)
    assert found(empty, piece(HTTP, {"addresses": []})) == set()


def test_slices_are_watched_by_the_name_of_their_service() -> None:
    assert selection("exp", "gpu").query() == {"labelSelector": "kubernetes.io/service-name=exp"}
    assert selection("exp", "gpu").namespace == "gpu"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.1:9400", "http://10.0.0.1:9400"),
        ("http://n1:9400/", "http://n1:9400"),
        ("https://n1", "https://n1"),
        ("http://[fd00::1]:9400", "http://[fd00::1]:9400"),
    ],
)
def test_an_address_is_a_target(text: str, expected: str) -> None:
    assert target(text) == expected
    assert fixed([text])() == {expected: ""}


@pytest.mark.parametrize("text", ["", "ftp://n1", "http://", "http://n1:x", "http://n1:9400/?a=b"])
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a valid exporter address"):
        target(text)


def settings(*arguments: str, **environment: str) -> AdapterSettings:
    return load(AdapterSettings, arguments, environment)


def test_settings_have_defaults_that_work_in_a_pod_of_either_address_family() -> None:
    chosen = settings()
    assert chosen.listen == Address("", 6443)
    assert chosen.plain_listen == Address("", 8080)
    assert chosen.exporters == ()
    assert chosen.exporter_service == "slicewatch-exporter"


def test_settings_are_read_from_flags_and_environment() -> None:
    chosen = settings(
        "--exporters=http://a:1, b:2", "--max-age-seconds=30s", SLICEWATCH_PLAIN_LISTEN=":9"
    )
    assert chosen.exporters == ("http://a:1", "http://b:2")
    assert chosen.max_age_seconds == 30.0
    assert chosen.plain_listen.port == 9


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--exporters=http://a:1,ftp://b", "not a valid exporter address"),
        ("--tls-cert-file=/x", "tls_cert_file, tls_key_file: set both or neither"),
        ("--max-age-seconds=0", "max_age_seconds: 0 is not more than 0"),
        ("--log-level=loud", "log_level: 'loud' is not one of debug"),
        ("--exporter=x", "did you mean --exporters"),
    ],
)
def test_unusable_settings_are_refused_with_a_reason(flag: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        settings(flag)


def test_all_faults_of_the_settings_are_reported_together() -> None:
    with pytest.raises(SettingsError) as caught:
        settings("--tls-key-file=/x", "--max-age-seconds=0", "--log-level=loud")
    assert [fault.partition(":")[0] for fault in caught.value.faults] == [
        "tls_cert_file, tls_key_file",
        "max_age_seconds",
        "log_level",
    ]
