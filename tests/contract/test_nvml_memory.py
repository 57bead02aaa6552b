"""Device memory and its BAR1 window, through both implementations of the Nvml seam."""

from exporter.nvml.protocol import Value
from slicewatch.catalog.memory import BAR1, MEMORY
from slicewatch.catalog.readings.memory import Bar1Memory

SCENARIO = """
nodes:
  - name: n
    gpus:
      - {model: H100-80GB}
      - {model: H100-80GB, mig: [null, 1g.10gb, 3g.40gb]}
      - {model: T4}
workloads:
  - name: whole
    load: 0.3
    memory: 8GiB
    processes: 3
    pods: [{name: a, devices: [{node: n, gpu: 0}]}]
  - name: slice
    load: 0.5
    memory: 3GiB
    pods: [{name: b, devices: [{node: n, gpu: 1, mig: 2}]}]
"""
WHOLE, PARTITIONED, SMALL = range(3)
MIB, GIB = 2**20, 2**30


def read(world, probe, gpu, number=0):
    session = world.session(gpu)
    return session.read(probe, session.devices().value[number])


def test_the_parts_of_the_memory_add_up_to_the_whole(world):
    for gpu, number in ((WHOLE, 0), (PARTITIONED, 0), (PARTITIONED, 1), (PARTITIONED, 2)):
        memory = read(world, MEMORY, gpu, number).value
        assert memory.free_bytes + memory.used_bytes + memory.reserved_bytes == memory.total_bytes
    assert read(world, MEMORY, WHOLE).value.reserved_bytes == 560 * MIB
    assert read(world, MEMORY, PARTITIONED, 1).value.reserved_bytes == 0


def test_each_context_maps_a_part_of_the_window(world):
    used = 6 * MIB
    assert read(world, BAR1, WHOLE) == Value(Bar1Memory(128 * GIB, 128 * GIB - used, used))


def test_a_board_for_no_large_window_has_a_small_one(world):
    assert read(world, BAR1, SMALL) == Value(Bar1Memory(256 * MIB, 256 * MIB, 0))


def test_a_mig_device_has_a_window_of_its_own(world):
    idle, busy = (read(world, BAR1, PARTITIONED, number).value for number in (1, 2))
    assert (idle.total_bytes, idle.used_bytes) == (16 * GIB - MIB, 0)
    assert (busy.total_bytes, busy.used_bytes) == (64 * GIB - MIB, 2 * MIB)
    assert read(world, BAR1, PARTITIONED).value.used_bytes == 2 * MIB
