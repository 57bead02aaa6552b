"""Every index is asked, at the same time, and one that hangs is told apart."""

from exporter.nvml.enumeration import HANGS, MOST_GPUS, Enumeration
from exporter.nvml.protocol import Failed, Lost, Slot, Value
from tests.unit.exporter.office import NO_DRIVER


def test_every_index_has_its_slot_in_order(desk, gpu):
    made = desk(gpu(0), gpu(1))
    made.start()
    made.slots = (*made.slots, Slot(index=2, gpu=Lost("gpu_is_lost")))
    enumeration = Enumeration(made)
    assert [slot.gpu for slot in enumeration.slots()] == [
        Value(gpu(0)),
        Value(gpu(1)),
        Lost("gpu_is_lost"),
    ]
    assert not enumeration.hangs


def test_one_that_hangs_holds_up_no_other(desk, gpu):
    made = desk(gpu(0), gpu(1))
    made.start()
    gate = made.hang("identity 0")
    enumeration = Enumeration(made)
    assert [slot.gpu for slot in enumeration.slots(0.1)] == [HANGS, Value(gpu(1))]
    assert enumeration.hangs
    gate.set()
    for thread in enumeration._threads:
        thread.join(10)
    assert not enumeration.hangs


def test_an_absurd_number_of_gpus_is_not_walked_to_its_end(desk, gpu):
    made = desk(gpu(0))
    made.start()
    nobody = (Slot(index=i, gpu=Failed("INVALID_ARGUMENT")) for i in range(1, MOST_GPUS))
    made.slots = (*made.slots, *nobody)
    made.count = lambda: 2**32 - 1
    found = Enumeration(made).slots()
    assert found[0].gpu == Value(gpu(0))
    assert len(found) == MOST_GPUS


def counted_again(enumeration):
    enumeration.count_again()
    enumeration.join()
    return enumeration.outdated


def test_a_gpu_more_or_less_than_at_the_start_is_noticed(desk, gpu):
    made = desk(gpu(0), gpu(1))
    made.start()
    enumeration = Enumeration(made)
    before = enumeration.slots()
    assert not counted_again(enumeration)
    made.slots = (*before, Slot(index=2, gpu=Value(gpu(2))))
    assert counted_again(enumeration)
    made.slots = before
    assert not counted_again(enumeration)
    made.slots = before[:1]
    assert counted_again(enumeration)


def test_a_driver_that_is_gone_says_nothing_about_the_number(desk, gpu):
    made = desk(gpu(0))
    made.start()
    enumeration = Enumeration(made)
    enumeration.slots()
    made.gone = NO_DRIVER
    assert not counted_again(enumeration)


def test_while_one_hangs_nobody_counts(desk, gpu):
    made = desk(gpu(0))
    made.start()
    gate = made.hang("identity 0")
    enumeration = Enumeration(made)
    enumeration.slots(0.05)
    made.slots *= 2
    enumeration.count_again()
    gate.set()
    enumeration.join()
    assert not enumeration.outdated
