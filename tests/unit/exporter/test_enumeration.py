"""Every index is asked, at the same time, and one that hangs is told apart."""

from exporter.nvml.enumeration import HANGS, Enumeration
from exporter.nvml.protocol import Lost, Slot, Value


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
