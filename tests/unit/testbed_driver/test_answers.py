"""The builder of answers: what it refuses, and that the driver finds what it wrote."""

from ctypes import c_uint32, sizeof

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.driver import state
from testbed.driver.answers import ANY_KEY, Answers
from testbed.driver.state import CALLS, GpuState

WORD = st.integers(min_value=0, max_value=2**32 - 1)
QUESTIONS = st.tuples(
    st.sampled_from(CALLS), st.none() | st.integers(0, state.SLOTS - 1), st.tuples(WORD, WORD)
)


def written(answers):
    gpu = GpuState()
    answers.write(gpu)
    rows = gpu.answers[: gpu.answers_held]
    pool = bytes(gpu.pool)
    return {
        (row.call, row.scope, tuple(row.key)): (
            row.result, row.rows, pool[row.offset : row.offset + row.size],
        )
        for row in rows
    }  # fmt: skip


@given(st.dictionaries(QUESTIONS, st.binary(max_size=40), max_size=30))
def test_every_answer_stands_in_the_state_in_the_order_of_the_search(wanted):
    answers = Answers()
    for (call, slot, key), payload in wanted.items():
        answers.put(call, payload, slot=slot, key=key)
    found = written(answers)
    assert list(found) == sorted(found)
    assert found == {
        (CALLS.index(call), -1 if slot is None else slot, key): (0, 1, payload)
        for (call, slot, key), payload in wanted.items()
    }


def test_a_later_answer_replaces_an_earlier_one():
    answers = Answers()
    answers.put("nvmlDeviceGetFanSpeed", 1)
    answers.put("nvmlDeviceGetFanSpeed", 2)
    assert [payload for *_, payload in written(answers).values()] == [bytes(c_uint32(2))]


def test_what_is_forgotten_is_not_written():
    answers = Answers()
    answers.put("nvmlDeviceGetFanSpeed", 1)
    answers.put("nvmlDeviceGetFanSpeed_v2", 1, key=(1, 0))
    answers.refuse("nvmlDeviceGetFanSpeed_v2", 3)
    answers.forget("nvmlDeviceGetFanSpeed_v2")
    assert [key for *_, key in written(answers)] == [(0, 0)]


def test_rows_can_be_added_to_a_list_and_only_to_one_that_is_there():
    answers = Answers()
    with pytest.raises(KeyError):
        answers.add_rows("nvmlDeviceGetActiveVgpus", [1])
    answers.put_list("nvmlDeviceGetActiveVgpus", [1, 2])
    answers.add_rows("nvmlDeviceGetActiveVgpus", [3])
    ((_, rows, payload),) = written(answers).values()
    assert (rows, payload) == (3, b"".join(map(bytes, map(c_uint32, (1, 2, 3)))))


def test_a_refusal_without_a_key_stands_under_the_one_for_every_key():
    answers = Answers()
    answers.refuse("nvmlDeviceGetFanSpeed_v2", 3)
    (((_, scope, key), answer),) = written(answers).items()
    assert (scope, key, answer) == (-1, ANY_KEY, (3, 0, b""))


def test_a_state_keeps_nothing_of_what_was_written_into_it_before():
    gpu, answers = GpuState(), Answers()
    answers.put("nvmlDeviceGetFanSpeed", 1)
    answers.write(gpu)
    Answers().write(gpu)
    assert gpu.answers_held == 0


def test_a_call_that_the_driver_lacks_is_named():
    with pytest.raises(ValueError, match=r"nvmlDeviceGetSmell; add it to calls\.h"):
        Answers().put("nvmlDeviceGetSmell", 1)


def test_a_payload_that_is_too_large_is_refused_with_its_size():
    with pytest.raises(ValueError, match=f"has {state.PAYLOAD_BYTES + 1} bytes"):
        Answers().put("nvmlDeviceGetFanSpeed", bytes(state.PAYLOAD_BYTES + 1))


def test_a_version_that_belongs_to_a_structure_of_another_size_is_refused():
    fabric = pynvml.c_nvmlGpuFabricInfo_v2_t()
    fabric.version = pynvml.nvmlGpuFabricInfo_v3
    with pytest.raises(ValueError, match="set its version"):
        Answers().put_version("nvmlDeviceGetGpuFabricInfoV", fabric)


def test_more_answers_than_the_state_has_room_for_are_refused():
    many, large = Answers(), Answers()
    for number in range(state.ANSWERS + 1):
        many.put("nvmlDeviceGetFanSpeed_v2", 1, key=(number, 0))
    for number in range(state.POOL_BYTES // state.PAYLOAD_BYTES + 1):
        large.put("nvmlDeviceGetFanSpeed_v2", bytes(state.PAYLOAD_BYTES), key=(number, 0))
    for answers in (many, large):
        with pytest.raises(ValueError, match="enlarge both"):
            answers.write(GpuState())
    assert sizeof(GpuState) > state.POOL_BYTES
