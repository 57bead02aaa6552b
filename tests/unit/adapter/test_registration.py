"""Which APIServices are changed, how, and which never are."""

import base64
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from adapter.api.certificate import CertificateError
from adapter.ca_bundle import OVERLAP_SECONDS
from adapter.registration import Registered, Registration, Standing, api_services, of_file
from slicewatch.kube import errors
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.objects import API_SERVICE, ServiceReference
from testbed.front_proxy import ManualClock

OURS = ServiceReference(namespace="gpu", name="adapter")
CUSTOM = "v1beta2.custom.metrics.k8s.io"
EXTERNAL = "v1beta1.external.metrics.k8s.io"
PEM = b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
NEXT = PEM.replace(b"AA==", b"AQ==")


class Authorities:
    """What is to be trusted, or why that is not known."""

    def __init__(self, pem: bytes = PEM) -> None:
        self.pem = pem
        self.fault: Exception | None = None

    async def __call__(self) -> bytes:
        if self.fault is not None:
            raise self.fault
        return self.pem


async def api_service(kube: FakeKube, name: str, service: Any, **spec: Any) -> None:
    version, _, group = name.partition(".")
    body = {
        "metadata": {"name": name},
        "spec": {
            "group": group,
            "version": version,
            "service": service,
            "groupPriorityMinimum": 100,
            **spec,
        },
    }
    await kube.create(API_SERVICE, body)


def at(name: str, namespace: str = "gpu") -> dict[str, Any]:
    return {"namespace": namespace, "name": name, "port": 443}


def registration(
    kube: FakeKube, bundle: Any, *names: str, clock: ManualClock | None = None
) -> Registration:
    return Registration(
        kube,
        service=OURS,
        names=names or (CUSTOM,),
        bundle=bundle,
        monotonic=clock or ManualClock(1000.0),
    )


async def test_an_api_service_that_points_to_us_gets_the_authority_and_verifies_from_then_on() -> (
    None
):
    kube = FakeKube()
    await api_service(kube, CUSTOM, at("adapter"), insecureSkipTLSVerify=True)
    made = registration(kube, Authorities())
    await made.settle()
    found = await kube.get(API_SERVICE, CUSTOM)
    assert found.spec.ca_bundle == PEM
    assert not found.spec.insecure_skip_tls_verify
    assert made.standings == {CUSTOM: Standing.OURS}
    raw = kube._bodies["apiservices", "", CUSTOM]["spec"]
    assert raw["caBundle"] == base64.b64encode(PEM).decode()
    assert "insecureSkipTLSVerify" not in raw
    assert raw["groupPriorityMinimum"] == 100
    assert raw["service"]["port"] == 443


async def test_what_is_right_already_is_not_written_again() -> None:
    kube = FakeKube()
    await api_service(kube, CUSTOM, at("adapter"))
    made = registration(kube, Authorities())
    await made.settle()
    version = (await kube.get(API_SERVICE, CUSTOM)).metadata.resource_version
    await made.settle()
    assert (await kube.get(API_SERVICE, CUSTOM)).metadata.resource_version == version


async def test_a_bundle_that_somebody_replaced_is_put_back() -> None:
    kube = FakeKube()
    await api_service(kube, CUSTOM, at("adapter"), caBundle="b3RoZXI=")
    await registration(kube, Authorities()).settle()
    assert (await kube.get(API_SERVICE, CUSTOM)).spec.ca_bundle == PEM


async def test_an_authority_that_is_replaced_is_trusted_beside_the_new_one_for_a_while() -> None:
    kube, authorities, clock = FakeKube(), Authorities(), ManualClock(1000.0)
    await api_service(kube, CUSTOM, at("adapter"))
    made = registration(kube, authorities, clock=clock)
    await made.settle()
    authorities.pem = NEXT
    for _ in range(2):
        assert await made.settle() is Registered.DONE
        assert (await kube.get(API_SERVICE, CUSTOM)).spec.ca_bundle == PEM + NEXT
    clock.at += OVERLAP_SECONDS
    await made.settle()
    assert (await kube.get(API_SERVICE, CUSTOM)).spec.ca_bundle == NEXT


async def test_a_replica_that_has_not_seen_a_new_authority_yet_does_not_take_it_away() -> None:
    kube = FakeKube()
    await api_service(kube, CUSTOM, at("adapter"))
    ahead, behind = registration(kube, Authorities(NEXT)), registration(kube, Authorities(PEM))
    await behind.settle()
    await ahead.settle()
    version = (await kube.get(API_SERVICE, CUSTOM)).metadata.resource_version
    for one in (behind, ahead, behind):
        await one.settle()
    found = await kube.get(API_SERVICE, CUSTOM)
    assert found.spec.ca_bundle == PEM + NEXT
    assert found.metadata.resource_version == version


@pytest.mark.parametrize(
    ("service", "fault", "outcome"),
    [
        (at("adapter"), None, Registered.DONE),
        (at("other"), None, Registered.NOTHING),
        (at("adapter"), errors.ForbiddenError("403"), Registered.NOTHING),
        (at("adapter"), errors.UnavailableError("503"), Registered.FAILED),
    ],
)
async def test_whoever_waits_for_it_is_told_what_a_look_came_to(
    service: Any, fault: errors.KubeError | None, outcome: Registered
) -> None:
    kube = FakeKube()
    await api_service(kube, CUSTOM, service)
    made = registration(kube, Authorities())
    if fault is not None:
        kube.fail_next(fault)
    assert await made.settle() is outcome
    assert made.bundled


@pytest.mark.parametrize(
    ("service", "whose"),
    [
        (at("keda-operator-metrics-apiserver", "keda"), "keda/keda-operator-metrics-apiserver"),
        (at("adapter", "monitoring"), "monitoring/adapter"),
        (at("prometheus-adapter"), "gpu/prometheus-adapter"),
        (None, "kube-apiserver itself"),
    ],
)
async def test_an_api_service_of_somebody_else_is_never_touched_and_said_so_once(
    service: Any, whose: str
) -> None:
    """KEDA #1344: requests that are meant for another adapter."""
    kube = FakeKube()
    await api_service(kube, EXTERNAL, service, insecureSkipTLSVerify=True)
    before = await kube.get(API_SERVICE, EXTERNAL)
    made = registration(kube, Authorities(), EXTERNAL)
    with capture_logs() as logged:
        for _ in range(3):
            await made.settle()
    assert await kube.get(API_SERVICE, EXTERNAL) == before
    assert made.standings == {EXTERNAL: Standing.OTHER}
    (entry,) = logged
    assert whose in entry["fault"]


async def test_an_api_service_that_does_not_exist_is_not_created() -> None:
    kube = FakeKube()
    made = registration(kube, Authorities())
    await made.settle()
    assert made.standings == {CUSTOM: Standing.ABSENT}
    with pytest.raises(errors.NotFoundError):
        await kube.get(API_SERVICE, CUSTOM)
    await api_service(kube, CUSTOM, at("adapter"))
    await made.settle()
    assert made.standings == {CUSTOM: Standing.OURS}


async def test_without_an_authority_the_standing_is_told_and_nothing_is_written() -> None:
    kube = FakeKube()
    await api_service(kube, CUSTOM, at("adapter"), insecureSkipTLSVerify=True)
    made = registration(kube, of_file(""))
    assert await made.settle() is Registered.NOTHING
    found = await kube.get(API_SERVICE, CUSTOM)
    assert found.spec.insecure_skip_tls_verify
    assert made.standings == {CUSTOM: Standing.OURS}


async def test_a_right_that_is_missing_is_told_once_and_costs_no_other_api_service() -> None:
    kube = FakeKube()
    await api_service(kube, EXTERNAL, at("adapter"))
    made = registration(kube, Authorities(), CUSTOM, EXTERNAL)
    with capture_logs() as logged:
        for _ in range(2):
            kube.fail_next(errors.ForbiddenError("GET /apis/...: 403 no right to get apiservices"))
            await made.settle()
    assert made.standings == {CUSTOM: Standing.FORBIDDEN, EXTERNAL: Standing.OURS}
    (entry,) = [entry for entry in logged if entry["event"] == "not registered"]
    assert "403" in entry["fault"]


async def test_a_change_that_came_between_is_looked_at_again_and_respected() -> None:
    kube = FakeKube()
    await api_service(kube, CUSTOM, at("adapter"))
    made = registration(Between(kube, {"spec": {"service": at("other")}}), Authorities())
    await made.settle()
    assert (await kube.get(API_SERVICE, CUSTOM)).spec.ca_bundle == b""
    assert made.standings == {CUSTOM: Standing.OTHER}


async def test_a_status_that_is_written_meanwhile_does_not_keep_the_authority_out() -> None:
    kube = FakeKube()
    await api_service(kube, CUSTOM, at("adapter"))
    made = registration(Between(kube, {"status": {"conditions": []}}), Authorities())
    await made.settle()
    assert (await kube.get(API_SERVICE, CUSTOM)).spec.ca_bundle == PEM
    assert made.standings == {CUSTOM: Standing.OURS}


class Between(FakeKube):
    """Lets somebody else change an APIService between our first reading and writing of it."""

    def __init__(self, kube: FakeKube, change: dict[str, Any]) -> None:
        super().__init__()
        self._kube = kube
        self._change = change

    async def get(self, kind: Any, name: str, namespace: str = "") -> Any:
        found = await self._kube.get(kind, name, namespace)
        await self._kube.patch(kind, name, self._change)
        return found

    async def patch(self, kind: Any, name: str, patch: Any, *, namespace: str = "") -> Any:
        return await self._kube.patch(kind, name, patch, namespace=namespace)


async def test_an_authority_that_is_not_known_leaves_everything_as_it_is() -> None:
    kube, authorities = FakeKube(), Authorities()
    await api_service(kube, CUSTOM, at("adapter"), insecureSkipTLSVerify=True)
    made = registration(kube, authorities)
    authorities.fault = errors.ForbiddenError("GET secret: 403")
    with capture_logs() as logged:
        for _ in range(2):
            assert await made.settle() is Registered.FAILED
    assert [entry["fault"] for entry in logged] == ["GET secret: 403"]
    assert not made.bundled
    assert (await kube.get(API_SERVICE, CUSTOM)).spec.insecure_skip_tls_verify
    authorities.fault = None
    await made.settle()
    assert made.bundled
    assert (await kube.get(API_SERVICE, CUSTOM)).spec.ca_bundle == PEM


async def test_the_authorities_of_a_file_are_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    path.write_bytes(PEM)
    bundle = of_file(str(path))
    assert await bundle() == PEM
    path.write_bytes(PEM * 2)
    assert await bundle() == PEM * 2
    path.write_bytes(b"nonsense")
    with pytest.raises(CertificateError, match=r"ca\.crt holds no certificate"):
        await bundle()


def test_beside_keda_only_the_custom_apis_are_to_be_ours() -> None:
    custom = {"v1beta1.custom.metrics.k8s.io", CUSTOM}
    assert set(api_services(external=False)) == custom
    assert set(api_services(external=True)) == custom | {EXTERNAL}
