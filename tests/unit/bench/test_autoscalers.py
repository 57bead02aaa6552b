"""The rhythm in which the benchmark's autoscalers ask, and what is made of the times."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.autoscalers import Rhythm, played, timing
from bench.errors import BenchError

SECONDS = st.floats(min_value=1e-6, max_value=1e3)


@given(st.integers(1, 50), st.integers(1, 20), st.floats(0.1, 60.0))
def test_every_autoscaler_keeps_its_rhythm_and_no_two_ask_at_once(autoscalers, rounds, every):
    rhythm = Rhythm(autoscalers=autoscalers, every_seconds=every, rounds=rounds)
    moments = [rhythm.moments(number) for number in range(autoscalers)]
    assert sum(map(len, moments)) == rhythm.questions == autoscalers * rounds
    for own in moments:
        assert [b - a for a, b in pairwise(own)] == pytest.approx([every] * (rounds - 1))
    everyone = sorted(moment for own in moments for moment in own)
    gaps = [b - a for a, b in pairwise(everyone)]
    assert gaps == pytest.approx([every / autoscalers] * len(gaps), rel=1e-6, abs=1e-9)


@given(st.lists(SECONDS, min_size=1, max_size=300))
def test_percentiles_are_times_that_were_measured(seconds):
    found = timing(seconds, over=2.0)
    # A factor of its own: what was measured, in the unit of the figures.
    assert {found.p50, found.p99} <= {1000 * one for one in seconds}
    assert sum(1000 * one <= found.p50 for one in seconds) >= len(seconds) / 2
    assert sum(1000 * one > found.p99 for one in seconds) <= len(seconds) / 100
    assert found.per_second == len(seconds) / 2


async def test_each_asks_its_own_question_in_every_round():
    asked = []

    async def ask(number):
        asked.append(number)

    rhythm = Rhythm(autoscalers=3, every_seconds=0.003, rounds=2)
    found = await played(rhythm, ask)
    assert sorted(asked) == [0, 0, 1, 1, 2, 2]
    assert found.per_second <= rhythm.questions / rhythm.moments(2)[-1]


async def test_one_question_without_an_answer_ends_the_measurement():
    async def ask(number):
        if number == 1:
            raise BenchError("refused")

    with pytest.raises(ExceptionGroup) as caught:
        await played(Rhythm(autoscalers=2, every_seconds=0.001, rounds=1), ask)
    assert caught.group_contains(BenchError, match="refused")
