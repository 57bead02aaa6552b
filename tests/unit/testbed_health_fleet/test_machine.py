"""A machine says what an exporter would, through boots, restarts and repairs."""

import pytest

from health.source import Cursor, Silence, SilenceError
from slicewatch.catalog.nvlink import STATES
from slicewatch.catalog.power import ENERGY
from slicewatch.wire.evidence import Lost, Source, read_as
from testbed.health_fleet.ailments import BY_NAME
from testbed.health_fleet.machine import Machine


class Watch:
    """A machine and its clock."""

    def __init__(self, **chosen):
        self.now = 1e6
        self.machine = Machine("node-1", lambda: self.now, gpus=2, **chosen)
        self.cursor = Cursor()

    async def ask(self, seconds=0.0):
        self.now += seconds
        said = await self.machine.ask(self.cursor)
        self.cursor = Cursor.after(said)
        return said


def xids(said):
    return [(event.data, event.source) for event in said.events]


def reading(gpu, probe):
    return read_as(probe, gpu.readings[probe.name])


async def test_a_machine_that_is_well_says_the_same_but_for_clocks_and_counters():
    watch = Watch()
    first, second = await watch.ask(), await watch.ask(60)
    assert (first.run, first.boot_id, first.events) == (second.run, second.boot_id, ())
    assert second.uptime_seconds - first.uptime_seconds == 60
    assert len({gpu.device.uuid for gpu in first.gpus}) == 2
    used = [reading(said.gpus[0], ENERGY).used_millijoules for said in (first, second)]
    assert used[1] - used[0] == 60 * 350_000


async def test_events_are_told_once_and_those_to_come_when_they_have_come():
    watch = Watch()
    watch.machine.fall_ill(0, BY_NAME["program_faults_again"])
    assert len((await watch.ask(1)).events) == 1
    assert len((await watch.ask(60)).events) == 0
    later = await watch.ask(300)
    assert [round(event.age_seconds) for event in later.events] == [241, 121, 1]
    assert [event.number for event in later.events] == [2, 3, 4]


async def test_more_events_than_are_kept_are_said_to_be_missed():
    watch = Watch()
    for _ in range(10):
        watch.machine.fall_ill(0, BY_NAME["xid_45_storm"])
    said = await watch.ask(1000)
    assert (len(said.events), said.missed, said.newest) == (4096, 904, 5000)


async def test_a_new_exporter_hears_nothing_of_before_unless_it_reads_the_kernels_log():
    for kernel_log, told in ((False, []), (True, [(79, Source.KERNEL)])):
        watch = Watch(kernel_log=kernel_log)
        watch.machine.fall_ill(0, BY_NAME["off_the_bus"])
        assert len((await watch.ask(10)).events) == 1 + kernel_log
        watch.machine.restart_exporter(silent=30)
        with pytest.raises(SilenceError) as silence:
            await watch.ask(20)
        assert silence.value.why is Silence.NO_SOCKET
        said = await watch.ask(20)
        assert xids(said) == told
        assert all(event.age_seconds == 50 for event in said.events)


async def test_a_boot_takes_the_log_with_it_and_loads_the_driver_later():
    watch = Watch(kernel_log=True)
    before = await watch.ask()
    watch.machine.fall_ill(0, BY_NAME["program_faults"])
    watch.now += 60
    watch.machine.boot(down=30, driver=100, training=200)
    said = await watch.ask(40)
    assert said.boot_id != before.boot_id
    assert (said.driver.down, said.driver.starts, said.gpus, said.events) == (
        "no_driver",
        0,
        (),
        (),
    )
    said = await watch.ask(100)
    assert (said.driver.down, said.driver.starts, said.driver.seconds) == ("", 1, 40)
    assert reading(said.gpus[0], STATES).active() < 18
    assert (
        reading(said.gpus[0], ENERGY).used_millijoules
        < reading(before.gpus[0], ENERGY).used_millijoules
    )
    assert reading((await watch.ask(200)).gpus[0], STATES).active() == 18


async def test_gpus_are_known_while_their_driver_is_away():
    watch = Watch()
    watch.machine.reload_driver(why="released", seconds=120, training=0)
    said = await watch.ask(60)
    assert said.driver.down == "released"
    assert [gpu.silent for gpu in said.gpus] == ["released", "released"]
    assert (await watch.ask(120)).driver.starts == 2


async def test_a_gpu_that_was_mute_when_the_exporter_began_says_not_who_it_is():
    watch = Watch()
    watch.machine.fall_ill(1, BY_NAME["off_the_bus"])
    said = await watch.ask(60)
    assert said.gpus[1].silent == "gpu_is_lost"
    assert isinstance(said.gpus[1].readings[ENERGY.name], Lost)
    watch.machine.restart_exporter(silent=0)
    said = await watch.ask(60)
    assert [gpu.device.gpu for gpu in said.gpus] == [0]
    assert [(one.index, one.reason) for one in said.unidentified] == [(1, "gpu_is_lost")]


async def test_a_board_that_is_replaced_is_another_one_at_the_same_place():
    watch = Watch()
    before = (await watch.ask()).gpus[0].device
    watch.machine.fall_ill(0, BY_NAME["off_the_bus"])
    watch.machine.replace(0, 1)
    after = (await watch.ask()).gpus[0]
    assert after.device.uuid != before.uuid
    assert after.device.pci_bus_id == before.pci_bus_id
    assert not after.silent
    assert not watch.machine.faults()
