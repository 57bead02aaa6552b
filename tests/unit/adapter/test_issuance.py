"""How replicas come to one authority, and each to a certificate that it has signed."""

import asyncio
import base64
import datetime
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from adapter.api.certificate import ServingCertificate
from adapter.authority import LIFETIME as AUTHORITY_LIFETIME
from adapter.authority import NEXT_BEFORE_END, SETTLING, AuthorityError
from adapter.issuance import LIFETIME, RENEW_BEFORE_END, Issuance, names_of
from slicewatch.kube import errors
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.objects import SECRET, ServiceReference

DAY = datetime.timedelta(days=1)
NAMES = names_of(ServiceReference(namespace="gpu", name="adapter"))


class Clock:
    def __init__(self) -> None:
        self.now = datetime.datetime.now(datetime.UTC)

    def __call__(self) -> datetime.datetime:
        return self.now


class Replica:
    """One adapter's issuance, and what it has issued."""

    def __init__(self, kube: FakeKube, folder: Path, clock: Clock) -> None:
        folder.mkdir()
        self.place = ServingCertificate(folder / "tls.crt", folder / "tls.key")
        self.issued = 0
        self.issuance = Issuance(
            kube,
            secret="authority",  # noqa: S106 - its name
            namespace="gpu",
            names=NAMES,
            place=self.place,
            replaced=self._count,
            now=clock,
        )

    def _count(self) -> None:
        self.issued += 1

    @property
    def certificate(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.place.certificate.read_bytes())

    def signed_by(self, bundle: bytes) -> bool:
        for authority in x509.load_pem_x509_certificates(bundle):
            if authority.subject == self.certificate.issuer:
                self.certificate.verify_directly_issued_by(authority)
                return True
        return False


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_the_first_replica_creates_the_authority_and_the_others_use_it(
    tmp_path: Path, clock: Clock
) -> None:
    kube = FakeKube()
    replicas = [Replica(kube, tmp_path / str(n), clock) for n in range(3)]
    bundles = [await one.issuance.bundle() for one in replicas]
    assert len(set(bundles)) == 1
    assert all(one.signed_by(bundles[0]) for one in replicas)
    keys = {one.place.key.read_bytes() for one in replicas}
    assert len(keys) == 3


async def test_replicas_that_start_at_one_moment_agree(tmp_path: Path, clock: Clock) -> None:
    kube = FakeKube()
    replicas = [Replica(kube, tmp_path / str(n), clock) for n in range(5)]
    bundles = await asyncio.gather(*(one.issuance.bundle() for one in replicas))
    assert len(set(bundles)) == 1
    assert all(one.signed_by(bundles[0]) for one in replicas)


async def test_a_secret_that_a_chart_made_empty_is_filled(tmp_path: Path, clock: Clock) -> None:
    kube = FakeKube()
    await kube.create(SECRET, {"metadata": {"name": "authority"}}, "gpu")
    replicas = [Replica(kube, tmp_path / str(n), clock) for n in range(3)]
    bundles = await asyncio.gather(*(one.issuance.bundle() for one in replicas))
    assert len(set(bundles)) == 1


async def test_the_certificate_is_for_the_names_of_the_service_and_the_key_is_private(
    tmp_path: Path, clock: Clock
) -> None:
    replica = Replica(FakeKube(), tmp_path / "a", clock)
    await replica.issuance.bundle()
    names = replica.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert names.value.get_values_for_type(x509.DNSName) == [
        "adapter.gpu.svc",
        "adapter.gpu",
        "adapter",
    ]
    replica.place.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    assert replica.place.key.stat().st_mode & 0o077 == 0
    end = (clock.now + LIFETIME).replace(microsecond=0)
    assert replica.place.ends_at() == end.timestamp()


async def test_the_certificate_is_renewed_before_it_ends_and_not_sooner(
    tmp_path: Path, clock: Clock
) -> None:
    replica = Replica(FakeKube(), tmp_path / "a", clock)
    for _ in range(3):
        await replica.issuance.bundle()
    assert replica.issued == 1
    clock.now += LIFETIME - RENEW_BEFORE_END
    await replica.issuance.bundle()
    assert replica.issued == 2
    assert replica.certificate.not_valid_after_utc > clock.now + LIFETIME - DAY


async def test_a_new_authority_comes_long_before_the_old_one_ends(
    tmp_path: Path, clock: Clock
) -> None:
    kube = FakeKube()
    first, second = (Replica(kube, tmp_path / n, clock) for n in "ab")
    old = await first.issuance.bundle()
    clock.now += AUTHORITY_LIFETIME - NEXT_BEFORE_END
    both = await first.issuance.bundle()
    assert both.startswith(old)
    assert await second.issuance.bundle() == both
    assert first.signed_by(old)
    clock.now += SETTLING
    assert await first.issuance.bundle() == both
    assert not first.signed_by(old)
    assert first.signed_by(both)
    clock.now += NEXT_BEFORE_END
    assert await second.issuance.bundle() == both.removeprefix(old)


async def test_a_certificate_never_outlives_its_authority(tmp_path: Path, clock: Clock) -> None:
    kube = FakeKube()
    replica = Replica(kube, tmp_path / "a", clock)
    bundle = await replica.issuance.bundle()
    authority = x509.load_pem_x509_certificate(bundle)
    clock.now += AUTHORITY_LIFETIME - 5 * DAY
    await replica.issuance.bundle()
    assert replica.certificate.not_valid_after_utc <= authority.not_valid_after_utc


async def test_a_deleted_secret_is_made_anew_and_the_certificate_with_it(
    tmp_path: Path, clock: Clock
) -> None:
    kube = FakeKube()
    replica = Replica(kube, tmp_path / "a", clock)
    old = await replica.issuance.bundle()
    kube.delete(SECRET, "authority", "gpu")
    new = await replica.issuance.bundle()
    assert old != new
    assert replica.signed_by(new)


async def test_a_secret_of_something_else_is_named_and_left_alone(
    tmp_path: Path, clock: Clock
) -> None:
    kube = FakeKube()
    body: dict[str, Any] = {"metadata": {"name": "authority"}, "data": {}}
    pem = b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
    body["data"]["ca.crt"] = base64.b64encode(pem).decode()
    before = await kube.create(SECRET, body, "gpu")
    replica = Replica(kube, tmp_path / "a", clock)
    with pytest.raises(
        AuthorityError, match=r"secret gpu/authority: .*delete it to have new ones"
    ):
        await replica.issuance.bundle()
    assert await kube.get(SECRET, "authority", "gpu") == before


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_clock_that_jumps_by_an_hour_replaces_nothing(
    tmp_path: Path, clock: Clock, hours: int
) -> None:
    replica = Replica(FakeKube(), tmp_path / "a", clock)
    before = await replica.issuance.bundle()
    clock.now += datetime.timedelta(hours=hours)
    assert await replica.issuance.bundle() == before
    assert replica.issued == 1
    assert replica.certificate.not_valid_before_utc <= clock.now
    assert clock.now < replica.certificate.not_valid_after_utc


async def test_a_failing_api_server_leaves_the_certificate_as_it_is(
    tmp_path: Path, clock: Clock
) -> None:
    kube = FakeKube()
    replica = Replica(kube, tmp_path / "a", clock)
    await replica.issuance.bundle()
    before = replica.place.certificate.read_bytes()
    kube.fail_next(errors.UnavailableError("restarting"))
    with pytest.raises(errors.UnavailableError):
        await replica.issuance.bundle()
    assert replica.place.certificate.read_bytes() == before
