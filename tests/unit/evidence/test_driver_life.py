"""How NVML stands, as it is told."""

from exporter.evidence import machine
from exporter.evidence.driver_life import DriverLife
from exporter.nvml.protocol import Driver, Failed, Lost, Slot, Value
from slicewatch.wire import evidence as wire
from slicewatch.wire.layout import Device

DRIVER = Driver(driver="580.95.05", nvml="13.580.95.05", cuda="13.0")


def test_before_the_first_start_it_is_starting():
    life = DriverLife("starting", 10.0)
    assert life.on_wire(12.0) == wire.Driver(down="starting", seconds=2.0, starts=0)


def test_it_says_since_when_and_in_which_start_it_is_up():
    life = DriverLife("starting", 10.0)
    life.begin(DRIVER, ())
    life.observe("", 11.0)
    life.observe("", 15.0)
    assert life.on_wire(20.0) == wire.Driver(
        seconds=9.0, starts=1, version="580.95.05", nvml="13.580.95.05", cuda="13.0"
    )
    life.observe("no_driver", 30.0)
    assert (life.on_wire(31.0).down, life.on_wire(31.0).seconds) == ("no_driver", 1.0)
    life.begin(DRIVER, ())
    assert life.on_wire(31.0).starts == 2


def test_it_knows_why_no_gpu_said_who_it_is():
    life = DriverLife("", 0.0)
    gpu = Value(Device(uuid="GPU-0", gpu=0, model="H100"))
    slots = [gpu, Failed("INSUFFICIENT_POWER"), Lost("gpu_is_lost"), Failed("HANG")]
    life.begin(DRIVER, [Slot(index=i, gpu=slot) for i, slot in enumerate(slots)])
    assert life.refusals == {1: "insufficient_power", 2: "gpu_is_lost", 3: "hang"}


def test_the_kernel_tells_its_boots_apart(tmp_path):
    assert len(machine.boot_id()) == 36
    assert machine.uptime_seconds() > 0
    assert machine.boot_id(tmp_path / "missing") == ""
