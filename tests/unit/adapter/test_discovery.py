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


def found(*pieces: EndpointSlice) -> set[str]:
    return set(endpoints({("ns", str(i)): p for i, p in enumerate(pieces)}))


def end(address: str, **conditions: bool) -> dict[str, Any]:
    return {"addresses": [address], "conditions": conditions}


HTTP = [{"name": "http", "port": 9400}]


def test_every_endpoint_of_every_slice_is_a_target() -> None:
    both = found(piece(HTTP, end("10.0.0.1"), end("10.0.0.2")), piece(HTTP, end("10.0.0.3")))
    assert both == {f"http://10.0.0.{i}:9400" for i in (1, 2, 3)}


def test_one_that_is_not_ready_is_asked_and_one_that_ends_is_not() -> None:
    slices = piece(
        HTTP,
        end("10.0.0.1", ready=False, serving=False),
        end("10.0.0.2", ready=False, serving=True, terminating=True),
    )
    assert found(slices) == {"http://10.0.0.1:9400"}


def test_an_address_of_version_six_is_bracketed() -> None:
    assert found(piece(HTTP, end("fd00::1"))) == {"http://[fd00::1]:9400"}


@pytest.mark.parametrize(
    ("ports", "port"),
    [
        ([{"name": "other", "port": 1}, {"name": "http", "port": 2}], 2),
        ([{"name": "other", "port": 1}, {"name": "metrics", "port": 3}], 3),
        ([{"name": None, "port": 4}], 4),
        (None, 9400),
        ([], 9400),
    ],
)
def test_the_port_is_the_one_named_http_or_else_the_only_one(ports: Any, port: int) -> None:
    assert found(piece(ports, end("10.0.0.1"))) == {f"http://10.0.0.1:{port}"}


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
    assert fixed([text])() == {expected}


@pytest.mark.parametrize("text", ["", "ftp://n1", "http://", "http://n1:x", "http://n1:9400/?a=b"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no address of an exporter"):
        target(text)


def settings(*arguments: str, **environment: str) -> AdapterSettings:
    return load(AdapterSettings, arguments, environment)


def test_settings_have_defaults_that_work_in_a_pod() -> None:
    chosen = settings()
    assert chosen.listen == Address("0.0.0.0", 6443)
    assert chosen.plain_listen == Address("0.0.0.0", 8080)
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
        ("--exporters=http://a:1,ftp://b", "no address of an exporter"),
        ("--tls-cert-file=/x", "tls_key_file are needed together"),
        ("--max-age-seconds=0", "must be above 0"),
        ("--log-level=loud", "it is one of debug"),
        ("--exporter=x", "did you mean --exporters"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_with_a_reason(flag: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        settings(flag)
