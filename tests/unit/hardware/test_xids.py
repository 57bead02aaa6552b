"""The table of Xids: complete, and of the weight that each number deserves."""

import pytest

from slicewatch.hardware.xids import SUBSYSTEMS, XIDS, Boards, Remedy, Tier, meaning_of, tier_of


def numbers(*tiers):
    return {number for number, fact in XIDS.items() if fact.tier in tiers}


def test_only_these_may_cordon_and_they_say_so_by_themselves():
    """A new number here is a node out of service: it takes more than an entry by the way."""
    assert numbers(Tier.CORDON) == {
        46, 48, 54, 62, 64, 79, 95, 110, 119, 120, 140, 143, 158, 167, 171, 172, 173,
    }  # fmt: skip


def test_what_programs_do_is_recorded_or_counted():
    assert {13, 31} == numbers(Tier.REPEAT)
    assert {43, 45, 68, 137} <= numbers(Tier.RECORD)


def test_what_heals_itself_waits_for_a_reset():
    assert numbers(Tier.RESET) == {63, 94, 156, 160}


def test_errors_of_links_are_weighed():
    assert numbers(Tier.LINK) == {74, 136, *range(144, 151), 155}
    assert set(SUBSYSTEMS) == set(range(144, 151))
    assert {number for number, unit in SUBSYSTEMS.items() if not unit.resets} == {147, 148}


def test_the_drivers_word_has_a_number_of_its_own():
    assert numbers(Tier.TOLD) == {154}


@pytest.mark.parametrize("number", [0, 1, 42, 59, 177, 999, 2**31])
def test_a_number_that_is_not_listed_is_worth_a_warning_and_no_more(number):
    assert number not in XIDS
    assert tier_of(number) is Tier.WARN
    assert meaning_of(number) == "not known to this program"


@pytest.mark.parametrize("number", [39, 41, 70, 77, 85, 126, 135])
def test_each_copy_engine_has_a_number(number):
    assert meaning_of(number).startswith("exception of copy engine")
    assert tier_of(number) is Tier.WARN


@pytest.mark.parametrize("fact", XIDS.values(), ids=lambda fact: str(fact.number))
def test_a_meaning_is_a_few_words_without_an_end(fact):
    assert 5 <= len(fact.meaning) <= 70
    assert not fact.meaning.endswith((".", ";"))
    assert fact.meaning == fact.meaning.strip()


def test_meanings_tell_numbers_apart_where_they_are_taken_differently():
    tiers = {}
    for fact in XIDS.values():
        tiers.setdefault(fact.meaning, set()).add(fact.tier)
    assert [meaning for meaning, found in tiers.items() if len(found) > 1] == []


def test_what_the_catalogue_lists_for_no_board_is_unused_there_or_newer():
    unlisted = {n for n, fact in XIDS.items() if fact.boards == Boards(0)}
    assert unlisted == {61, 65, 73, 122, 123, 124, 125, 152, 153, 173, 174, 175, 176}
    unstated = {n for n in unlisted if XIDS[n].remedy in {Remedy.UNUSED, Remedy.NOT_STATED}}
    assert unlisted - unstated == {152, 153}
