"""Which authority signs, which are trusted, and when the next is made."""

import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.authority import (
    CERTIFICATES_KEY,
    KEYS_KEY,
    LIFETIME,
    NEXT_BEFORE_END,
    SETTLING,
    Authorities,
    AuthorityError,
)

BEGAN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
DUE = BEGAN + LIFETIME - NEXT_BEFORE_END


def test_the_first_authority_signs_at_once() -> None:
    first = Authorities().renewed(BEGAN)
    assert first.signer(BEGAN) == first.known[0]
    assert first.bundle(BEGAN) == first.known[0].certificate_pem
    assert not first.due(BEGAN)
    assert Authorities().due(BEGAN)


def test_the_next_one_is_trusted_at_once_and_signs_when_all_replicas_have_had_time() -> None:
    first = Authorities().renewed(BEGAN)
    assert not first.due(DUE - DAY)
    assert first.due(DUE)
    both = first.renewed(DUE)
    old, new = both.known
    assert both.bundle(DUE) == old.certificate_pem + new.certificate_pem
    assert both.signer(DUE) == old
    assert both.signer(DUE + SETTLING - DAY / 24) == old
    assert both.signer(DUE + SETTLING) == new


def test_an_authority_is_trusted_until_it_ends_and_then_dropped() -> None:
    both = Authorities().renewed(BEGAN).renewed(DUE)
    old, new = both.known
    assert old.certificate_pem in both.bundle(BEGAN + LIFETIME - DAY)
    assert both.bundle(BEGAN + LIFETIME) == new.certificate_pem
    third = both.renewed(BEGAN + LIFETIME)
    assert old not in third.known
    assert new in third.known


def test_authorities_that_have_all_ended_sign_nothing() -> None:
    with pytest.raises(AuthorityError, match="every authority has ended"):
        Authorities().renewed(BEGAN).signer(BEGAN + LIFETIME)


def test_what_a_secret_holds_is_read_back() -> None:
    both = Authorities().renewed(BEGAN).renewed(DUE)
    read = Authorities.read(both.data())
    assert read.data() == both.data()
    assert [one.key.private_numbers() for one in read.known] == [
        one.key.private_numbers() for one in both.known
    ]
    assert Authorities.read({}) == Authorities()


def test_a_key_in_another_place_of_the_secret_is_found() -> None:
    both = Authorities().renewed(BEGAN).renewed(DUE)
    data = both.data()
    turned = b"".join(one.key_pem for one in reversed(both.known))
    assert Authorities.read(data | {KEYS_KEY: turned}).data() == data


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({KEYS_KEY: b""}, "ca.key has no key for CN=slicewatch-adapter-"),
        ({KEYS_KEY: Authorities().renewed(BEGAN).data()[KEYS_KEY]}, "has no key for"),
        ({CERTIFICATES_KEY: Authorities().renewed(BEGAN).data()[KEYS_KEY]}, "cannot be read"),
    ],
)
def test_a_secret_that_holds_something_else_says_what_is_wrong(
    changed: dict[str, bytes], fault: str
) -> None:
    data = Authorities().renewed(BEGAN).data() | changed
    with pytest.raises(AuthorityError, match=fault):
        Authorities.read(data)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=80))
def test_whoever_signs_has_been_in_every_bundle_for_a_day(steps: list[int]) -> None:
    """A replica that renews whenever it is due, at any pace, is never distrusted by a verifier."""
    now, authorities = BEGAN, Authorities().renewed(BEGAN)
    bundled: dict[bytes, datetime.datetime] = {}
    for days in steps:
        if authorities.due(now):
            authorities = authorities.renewed(now)
        for one in authorities.known:
            if one.certificate_pem in authorities.bundle(now):
                bundled.setdefault(one.certificate_pem, now)
        signer = authorities.signer(now)
        first = bundled[signer.certificate_pem]
        assert first == BEGAN or now - first >= SETTLING
        assert now < signer.certificate.not_valid_after_utc
        now += days * DAY
