"""Events as they are told: whose they are, how old, and who says so."""

from exporter.evidence.events import events_on_wire
from exporter.kernel_log.xid import LoggedXid
from exporter.nvml.event_log import EventLog
from exporter.nvml.protocol import Event, EventKind
from slicewatch.wire import evidence as wire
from slicewatch.wire.layout import Device

GPUS = (
    Device(uuid="GPU-0", gpu=0, model="H100", pci_bus_id="00000000:3B:00.0"),
    Device(uuid="GPU-1", gpu=1, model="H100", pci_bus_id="00000000:5E:00.0"),
    Device(uuid="", gpu=2, model=""),
)


def logged(bus_id, number, at, **more):
    return LoggedXid(pci_bus_id=bus_id, number=number, at_seconds=at, **more)


def log(now=1000.0):
    return EventLog(wall=lambda: 5e9, monotonic=lambda: now)


def test_an_xid_that_both_tell_of_is_two_events_of_one_gpu():
    events = log()
    events.add([Event(kind=EventKind.XID, gpu="GPU-1", data=79)])
    events.add_logged([logged("0000:5e:00", 79, 999.5, text="GPU has fallen off the bus.")])
    assert events_on_wire(events.after(0).events, GPUS, 1002.0) == (
        wire.Event(number=1, kind=wire.Happening.XID, age_seconds=2.0, gpu="GPU-1", data=79),
        wire.Event(
            number=2,
            kind=wire.Happening.XID,
            age_seconds=2.5,
            gpu="GPU-1",
            data=79,
            source=wire.Source.KERNEL,
            pci_bus_id="0000:5e:00",
            text="GPU has fallen off the bus.",
        ),
    )


def test_an_instance_of_the_log_is_told_with_its_gpu():
    events = log()
    events.add_logged([logged("0000:3b:00", 94, 900.0, gpu_instance=5, compute_instance=0)])
    (event,) = events_on_wire(events.after(0).events, GPUS, 1000.0)
    assert (event.gpu, event.gpu_instance, event.compute_instance) == ("GPU-0", 5, 0)


def test_an_xid_from_before_nvml_was_started_finds_its_gpu_later():
    events = log()
    events.add_logged([logged("0000:3b:00", 79, 10.0)])
    (before,) = events_on_wire(events.after(0).events, (), 1000.0)
    (later,) = events_on_wire(events.after(0).events, GPUS, 1060.0)
    assert (before.gpu, before.pci_bus_id, before.age_seconds) == ("", "0000:3b:00", 990.0)
    assert (later.gpu, later.age_seconds) == ("GPU-0", 1050.0)


def test_a_clock_of_the_log_that_runs_ahead_makes_no_event_of_the_future():
    events = log()
    events.add_logged([logged("0000:3b:00", 79, 1000.4)])
    (event,) = events_on_wire(events.after(0).events, GPUS, 1000.0)
    assert event.age_seconds == 0.0


def test_a_wanted_action_that_changed_is_told():
    events = log()
    events.add([Event(kind=EventKind.RECOVERY_ACTION, gpu="GPU-0", data=1)])
    (event,) = events_on_wire(events.after(0).events, GPUS, 1000.0)
    assert event.kind is wire.Happening.RECOVERY_ACTION


def test_every_kind_of_nvml_has_its_name_on_the_wire():
    assert {kind.value for kind in EventKind} == {kind.value for kind in wire.Happening}


def test_a_poll_each_minute_loses_nothing_of_a_storm_of_sixty_a_second():
    events, seen, number = log(), [], 0
    for minute in range(5):
        for second in range(60):
            base = (minute * 60 + second) * 60
            events.add([Event(kind=EventKind.XID, gpu="GPU-0", data=base + n) for n in range(60)])
        recent = events.after(number)
        number = recent.newest
        assert recent.missed == 0
        seen += [happened.event.data for happened in recent.events]
    assert seen == list(range(5 * 60 * 60))
