"""Passwords: right ones come in quickly, wrong ones and unknown users pay the same."""

import asyncio
import time

import bcrypt
import pytest

from slicewatch.service.web import passwords
from slicewatch.service.web.passwords import Passwords, fault_of


def hashed(password, cost=4):
    return bcrypt.hashpw(password, bcrypt.gensalt(cost)).decode()


@pytest.fixture
def counted(monkeypatch):
    """Return the list of the hashes that are checked from now on."""
    checked = []
    matches = passwords._matches

    def count(password, of):
        checked.append(of)
        return matches(password, of)

    monkeypatch.setattr(passwords, "_matches", count)
    return checked


async def test_only_the_right_password_of_a_known_user_is_accepted():
    users = Passwords({"alice": hashed(b"secret"), "bob": hashed(b"other")})
    assert await users.accepts("alice", b"secret")
    assert not await users.accepts("alice", b"other")
    assert not await users.accepts("bob", b"secret")
    assert not await users.accepts("carol", b"secret")
    assert not await users.accepts("alice", b"")


async def test_what_was_right_once_costs_nothing_again(counted):
    users = Passwords({"alice": hashed(b"secret")})
    for _ in range(50):
        assert await users.accepts("alice", b"secret")
    assert len(counted) == 1
    assert not await users.accepts("alice", b"Secret")
    assert await users.accepts("alice", b"secret")
    assert len(counted) == 2


async def test_an_unknown_user_costs_as_much_as_a_known_one(counted):
    users = Passwords({"alice": hashed(b"secret", cost=6)})
    await users.accepts("alice", b"wrong")
    await users.accepts("mallory", b"wrong")
    of_alice, of_nobody = counted
    assert of_alice[:7] == of_nobody[:7] == b"$2b$06$"
    assert fault_of(of_nobody.decode()) is None


async def test_nobody_comes_in_with_the_password_of_nobody(counted, monkeypatch):
    monkeypatch.setattr(passwords, "_matches", lambda *_: True)
    assert not await Passwords({"alice": hashed(b"secret")}).accepts("mallory", b"x")


async def test_the_loop_turns_while_a_hash_is_computed():
    users = Passwords({"alice": hashed(b"secret", cost=11)})
    began = time.monotonic()
    turns = 0
    async with asyncio.TaskGroup() as group:
        checking = group.create_task(users.accepts("alice", b"wrong"))
        while not checking.done():
            turns += 1
            await asyncio.sleep(0.001)
    assert time.monotonic() - began > 0.01
    assert turns > 5


async def test_a_password_beyond_what_bcrypt_sees_is_cut_as_it_always_was():
    users = Passwords({"alice": hashed(b"p" * 72)})
    assert await users.accepts("alice", b"p" * 100)
    assert not await users.accepts("alice", b"p" * 71)


@pytest.mark.parametrize("prefix", ["$2$", "$2a$", "$2b$", "$2x$", "$2y$"])
def test_every_kind_of_bcrypt_hash_is_known(prefix):
    assert fault_of(prefix + "10$" + "." * 53) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("secret", "is not a bcrypt hash"), ("", "is not a bcrypt hash"),
        ("$2y$10$" + "." * 52, "is not a bcrypt hash"), ("$1$10$" + "." * 53, "not a bcrypt"),
        ("$2y$10$" + "." * 53 + "\n", "is not a bcrypt hash"),
        ("$2y$03$" + "." * 53, "costs 03, not 4 to 18"),
        ("$2y$31$" + "." * 53, "costs 31, not 4 to 18"),
    ],
)  # fmt: skip
def test_what_is_no_hash_or_takes_for_ever_is_refused(text, why):
    assert why in fault_of(text)
