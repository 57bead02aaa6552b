"""Which serving certificate is served while files, authorities and Kubernetes change."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from structlog.testing import capture_logs

from adapter.api.authentication import Gate
from adapter.api.certificate import ServingCertificate
from adapter.handover import PATIENCE_SECONDS, SPREAD_SECONDS, Handover
from adapter.registration import Registered
from testbed.cluster.pki import Pki
from testbed.front_proxy import ApiPort, ManualClock

FILES = ("ca.crt", "tls.crt", "tls.key")
OLD, NEW = "old", "new"


class Site:
    """An API port with mounted files, and Kubernetes as far as it matters.

    Attributes:
        outcome: of each registration.
        registered: the authorities in the file at each of them.
    """

    def __init__(self, folder: Path, *, provisional: bool = False) -> None:
        self.folder = folder
        self.authorities = {name: Pki(folder / name) for name in (OLD, NEW)}
        self.put(self.issued(OLD))
        self.port = ApiPort(folder / "port")
        self.clock, self.wall = self.port.monotonic, ManualClock(0.0)
        place = ServingCertificate(*(folder / name for name in ("tls.crt", "tls.key", "ca.crt")))
        self.gate = self.port.gate = self.port.api._gate = Gate(place)
        self.port.trust(self.port.pki)
        self.outcome = Registered.DONE
        self.registered: list[bytes] = []
        self.handover = Handover(
            self.gate, provisional=provisional, monotonic=self.clock, wall=self.wall
        )

    def issued(self, name: str) -> dict[str, bytes]:
        """Return what a manager of certificates writes, by the file."""
        pki = self.authorities[name]
        made = pki.issue("adapter", sans=["127.0.0.1"], client=False)
        paths = (pki.ca, made.certificate, made.key)
        return {file: path.read_bytes() for file, path in zip(FILES, paths, strict=True)}

    def put(self, content: dict[str, bytes], files: tuple[str, ...] = FILES) -> None:
        for file in files:
            fresh = self.folder / "fresh"
            fresh.write_bytes(content[file])
            fresh.replace(self.folder / file)

    async def register(self) -> Registered:
        self.registered.append((self.folder / "ca.crt").read_bytes())
        return self.outcome

    async def look(self, after_seconds: float = 0.0) -> str:
        """Look, and return whose certificate a client is shown then."""
        self.clock.at += after_seconds
        await self.handover.look(self.register)
        return await self.shown()

    async def shown(self) -> str:
        host, _, port = self.port.url.removeprefix("https://").rpartition(":")
        pem = await asyncio.to_thread(ssl.get_server_certificate, (host, int(port)))
        made = x509.load_pem_x509_certificate(pem.encode())
        return next(name for name, pki in self.authorities.items() if signed(made, pki))


def signed(made: x509.Certificate, pki: Pki) -> bool:
    with contextlib.suppress(InvalidSignature):
        made.verify_directly_issued_by(x509.load_pem_x509_certificate(pki.ca.read_bytes()))
        return True
    return False


@contextlib.contextmanager
def said() -> Iterator[list[MutableMapping[str, Any]]]:
    """Yield a list that gets what is logged for people, once the context has been left."""
    found: list[MutableMapping[str, Any]] = []
    with capture_logs() as logged:
        yield found
    found += [entry for entry in logged if entry["log_level"] != "debug"]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(tmp_path)
    async with made.port.serving():
        yield made


async def test_a_new_certificate_is_served_once_its_authority_has_been_registered(
    site: Site,
) -> None:
    assert await site.look() == OLD
    assert site.registered == []
    new = site.issued(NEW)
    site.put(new)
    assert await site.look() == OLD
    assert site.registered == [new["ca.crt"]]
    assert await site.look(SPREAD_SECONDS - 1) == OLD
    assert await site.look(1) == NEW
    assert await site.look() == NEW
    assert len(site.registered) == 1


@pytest.mark.parametrize("first", FILES)
async def test_files_that_come_one_after_the_other_wait_for_the_last(
    site: Site, first: str
) -> None:
    new = site.issued(NEW)
    site.put(new, (first,))
    assert await site.look() == OLD
    site.put(new, tuple(file for file in FILES if file != first))
    assert await site.look() == OLD
    assert site.registered[-1] == new["ca.crt"]
    assert await site.look(SPREAD_SECONDS) == NEW


async def test_without_anything_to_register_it_is_served_at_once(site: Site) -> None:
    site.outcome = Registered.NOTHING
    site.put(site.issued(NEW))
    assert await site.look() == NEW


async def test_the_successor_of_one_that_nobody_can_verify_is_served_at_once(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path, provisional=True)
    async with site.port.serving():
        for issuer, shown in ((NEW, NEW), (OLD, NEW)):
            site.put(site.issued(issuer))
            site.handover.replaced()
            assert await site.shown() == shown


async def test_while_kubernetes_is_away_the_old_one_stays_and_is_followed_when_it_is_back(
    site: Site,
) -> None:
    site.outcome = Registered.FAILED
    site.put(site.issued(NEW))
    with said() as logged:
        for _ in range(3):
            assert await site.look(10) == OLD
    (entry,) = logged
    assert "waits: its authority cannot be registered" in entry["event"]
    site.outcome = Registered.DONE
    assert await site.look() == OLD
    assert await site.look(SPREAD_SECONDS) == NEW


@pytest.mark.parametrize("again", [False, True])
async def test_an_authority_that_is_never_registered_keeps_the_old_one_for_a_bounded_time(
    site: Site, again: bool
) -> None:
    site.outcome = Registered.FAILED
    site.put(site.issued(NEW))
    assert await site.look() == OLD
    if again:  # One that is replaced once more waits no longer.
        site.put(site.issued(NEW))
    assert await site.look(PATIENCE_SECONDS - 1) == OLD
    with said() as logged:
        assert await site.look(1) == NEW
    assert "kube-apiserver may refuse it" in logged[0]["event"]
    assert "caBundle" in logged[0]["hint"]


async def test_one_that_has_ended_is_not_kept_at_all(site: Site) -> None:
    ends_at = site.gate.ends_at()["serving"]
    site.outcome = Registered.FAILED
    site.put(site.issued(NEW))
    site.wall.at = ends_at - 1
    assert await site.look() == OLD
    site.wall.at = ends_at
    assert await site.look() == NEW


@pytest.mark.parametrize("jump_seconds", [-3600.0, 3600.0])
async def test_a_wall_clock_that_jumps_changes_neither_order_nor_patience(
    site: Site, jump_seconds: float
) -> None:
    site.wall.at = site.gate.ends_at()["serving"] - 2 * 3600
    site.put(site.issued(NEW))
    assert await site.look() == OLD
    site.wall.at += jump_seconds
    assert await site.look(SPREAD_SECONDS - 1) == OLD
    assert await site.look(1) == NEW


async def test_half_replaced_files_stop_neither_the_adapter_nor_a_change_of_trust(
    site: Site, tmp_path: Path
) -> None:
    rotated = Pki(tmp_path / "rotated")
    new = site.issued(NEW)
    site.outcome = Registered.NOTHING
    site.put(new, ("tls.crt",))
    with said() as logged:
        for _ in range(3):
            assert await site.look() == OLD
    assert [entry["log_level"] for entry in logged] == ["warning"]
    assert "tls.key" in logged[0]["error"]
    site.port.trust(rotated)
    assert await site.shown() == OLD
    site.put(new)
    with said() as logged:
        assert await site.look() == NEW
    assert [entry["log_level"] for entry in logged] == ["info"]


async def test_a_file_that_is_away_costs_nothing_until_it_is_back(site: Site) -> None:
    site.outcome = Registered.NOTHING
    (site.folder / "tls.key").unlink()
    assert await site.look() == OLD
    site.put(site.issued(NEW))
    assert await site.look() == NEW
