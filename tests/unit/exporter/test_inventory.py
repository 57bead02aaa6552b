"""Which row is which: identity over losses, new starts, shifted indices and MIG layouts."""

import pytest

from exporter.measure.inventory import Inventory
from exporter.measure.windows import Grid
from exporter.nvml.protocol import Failed, Lost, Slot, Value

NOW = 1000.0


@pytest.fixture
def inventory():
    return Inventory(Grid(window_seconds=10, tick_seconds=1), reject=pytest.fail)


def slots(*gpus):
    return [Slot(index=gpu.gpu, gpu=Value(gpu)) for gpu in gpus]


def silent(inventory):
    return {(s.device.gpu, s.device.uuid): s.silent for s in inventory.gpus}


def test_rows_are_in_the_order_of_the_gpus_with_their_mig_devices_behind_them(inventory, gpu, mig):
    one, two = gpu(0, mig_enabled=True), gpu(1, mig_enabled=True)
    inventory.begin(slots(two, one), NOW)
    inventory.place(two, (two, mig(two, 0)))
    inventory.place(one, (one, mig(one, 0), mig(one, 1)))
    assert inventory.devices == (one, mig(one, 0), mig(one, 1), two, mig(two, 0))
    assert [row.device for row in inventory.rows] == list(inventory.devices)


def test_nothing_is_a_new_object_while_nothing_changes(inventory, gpu, mig):
    one = gpu(mig_enabled=True)
    inventory.begin(slots(one), NOW)
    inventory.place(one, (one, mig(one, 0)))
    rows, devices = inventory.rows, inventory.devices
    inventory.place(one, (gpu(mig_enabled=True), mig(one, 0)))
    inventory.begin(slots(one), NOW)
    assert inventory.rows is rows
    assert inventory.devices is devices


def test_a_lost_gpu_keeps_its_row_and_loses_those_of_its_mig_devices(inventory, gpu, mig):
    one = gpu(mig_enabled=True)
    inventory.begin(slots(one), NOW)
    row, _ = inventory.place(one, (one, mig(one, 0)))
    inventory.silence(one, "gpu_is_lost")
    assert inventory.rows == (row,)
    assert silent(inventory) == {(0, "GPU-0"): "gpu_is_lost"}


def test_the_same_mig_uuid_with_another_profile_is_another_row(inventory, gpu, mig):
    one = gpu(mig_enabled=True)
    small, large = mig(one, 0), mig(one, 0, profile="3g.40gb")
    assert small.uuid == large.uuid
    inventory.begin(slots(one), NOW)
    _, before = inventory.place(one, (one, small))
    _, after = inventory.place(one, (one, large))
    assert after is not before
    assert after.device == large


def test_mig_devices_that_stay_keep_their_rows_whatever_comes_and_goes_beside_them(
    inventory, gpu, mig
):
    one = gpu(mig_enabled=True)
    inventory.begin(slots(one), NOW)
    _, first, second, third = inventory.place(one, (one, *(mig(one, n) for n in range(3))))
    rows = inventory.place(one, (one, mig(one, 2), mig(one, 0), mig(one, 5)))
    assert rows[1:3] == [third, first]
    assert rows[3] not in {first, second, third}


def test_the_gpu_keeps_its_row_when_mig_is_switched(inventory, gpu, mig):
    plain, partitioned = gpu(), gpu(mig_enabled=True)
    inventory.begin(slots(plain), NOW)
    (row,) = inventory.place(plain, (plain,))
    assert inventory.place(plain, (partitioned, mig(partitioned, 0)))[0] is row
    assert row.device == partitioned
    assert inventory.place(plain, (plain,)) == [row]
    assert inventory.devices == (plain,)


def test_an_instance_that_comes_back_begins_empty(inventory, gpu, mig):
    one = gpu(mig_enabled=True)
    inventory.begin(slots(one), NOW)
    _, old = inventory.place(one, (one, mig(one, 0)))
    old.window.add(0, 99.0, 1.0)
    inventory.place(one, (one,))
    _, new = inventory.place(one, (one, mig(one, 0)))
    assert set(new.window.means()) == {None}
    assert new.at is None


def test_gpus_are_known_by_uuid_when_their_indices_move_up(inventory, gpu):
    """GPU 1 fell off the bus, and a new start numbers the others without it."""
    before = [gpu(0), gpu(1), gpu(2)]
    inventory.begin(slots(*before), NOW)
    rows = {g.uuid: inventory.place(g, (g,))[0] for g in before}
    moved = gpu(1, uuid="GPU-2")
    inventory.begin(slots(gpu(0), moved), NOW)
    inventory.place(moved, (moved,))
    assert {row.device.uuid: row for row in inventory.rows} == rows
    assert silent(inventory) == {(0, "GPU-0"): "", (1, "GPU-1"): "gpu_not_found", (1, "GPU-2"): ""}


def test_a_gpu_that_cannot_be_identified_has_a_row_by_its_index(inventory, gpu):
    inventory.begin([*slots(gpu(0)), Slot(index=1, gpu=Lost("gpu_is_lost"))], NOW)
    assert [(d.gpu, d.uuid) for d in inventory.devices] == [(0, "GPU-0"), (1, "")]
    assert silent(inventory)[1, ""] == "gpu_is_lost"


def test_one_that_is_identified_later_takes_the_place_of_the_unknown(inventory, gpu):
    inventory.begin([Slot(index=0, gpu=Failed("UNKNOWN"))], NOW)
    assert silent(inventory) == {(0, ""): "failed"}
    inventory.begin(slots(gpu(0)), NOW)
    assert [d.uuid for d in inventory.devices] == ["GPU-0"]


def test_one_that_was_known_and_is_not_identified_now_is_the_one_at_that_index(inventory, gpu):
    inventory.begin(slots(gpu(0), gpu(1)), NOW)
    inventory.begin([*slots(gpu(0)), Slot(index=1, gpu=Lost("reset_required"))], NOW)
    assert silent(inventory)[1, "GPU-1"] == "reset_required"
    assert len(inventory.rows) == 2


def test_an_unknown_one_that_is_not_enumerated_any_more_has_no_row(inventory, gpu):
    inventory.begin([*slots(gpu(0)), Slot(index=1, gpu=Lost("gpu_is_lost"))], NOW)
    inventory.begin(slots(gpu(0)), NOW)
    assert [d.uuid for d in inventory.devices] == ["GPU-0"]


def test_no_gpu_answers_without_a_driver(inventory, gpu):
    inventory.begin(slots(gpu(0), gpu(1)), NOW)
    for one in (gpu(0), gpu(1)):
        inventory.place(one, (one,))
    inventory.end("no_driver")
    assert set(silent(inventory).values()) == {"no_driver"}


def test_a_gpu_that_is_found_again_goes_on_as_before(inventory, gpu):
    """A new start for the sake of another GPU must not make it seem to be gone for a tick."""
    one = gpu()
    inventory.begin(slots(one), NOW)
    inventory.place(one, (one,))
    inventory.begin(slots(one), NOW)
    assert silent(inventory) == {(0, "GPU-0"): ""}
