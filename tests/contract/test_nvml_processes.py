"""What every ``Nvml`` says of processes: who runs where, with what, and what each kept busy."""

import pynvml
import pytest

from exporter.nvml.protocol import Failed, Unsupported, Value
from simulator import scenario
from simulator.process_samples import PROCESS_SAMPLE_PERIOD_SECONDS
from simulator.processes import MPS_SERVER_BYTES, ProcessType
from slicewatch.catalog.processes import PROCESS_UTILIZATION, PROCESSES
from slicewatch.catalog.readings.processes import LONGEST_SPAN_US, GpuProcess, ProcessKind
from testbed.driver.answers_of.processes import LISTS, OLD_SHARES, SHARES

GIB = 2**30
SCENARIO = """
nodes:
  - name: n
    gpus:
      - {model: L40S, sharing: {mode: time_slicing, replicas: 4}}
      - {model: H100-80GB, mig: [1g.10gb, null, 2g.20gb, 1g.10gb]}
      - {model: A30, sharing: {mode: mps, replicas: 4}}
      - {model: T4}
      - {model: T4}
workloads:
  - name: shared
    load: {wave: {low: 0.1, high: 0.6, period: 7s}}
    memory: 8GiB
    pods:
      - {name: a, pids: [101], devices: [{node: n, gpu: 0, replica: 0}]}
      - {name: b, pids: [102], until: 40s, devices: [{node: n, gpu: 0, replica: 1}]}
  - name: desktop
    host: true
    graphics: true
    memory: 300MiB
    pods: [{name: xorg, pids: [103], devices: [{node: n, gpu: 0}]}]
  - name: slices
    memory: 3GiB
    processes: 2
    pods:
      - {name: c, pids: [201, 202], devices: [{node: n, gpu: 1, mig: 0}]}
      - {name: d, pids: [203, 204], devices: [{node: n, gpu: 1, mig: 2}]}
  - name: clients
    load: 0.25
    memory: 4GiB
    pods:
      - {name: e, pids: [301], devices: [{node: n, gpu: 2, replica: 0}]}
      - {name: f, pids: [302], devices: [{node: n, gpu: 2, replica: 1}]}
  - name: burst
    load: {steps: [{at: 0s, level: 0.8}, {at: 35s, level: 0}]}
    pods: [{name: h, pids: [401], devices: [{node: n, gpu: 4}]}]
  - name: crowd
    memory: 1GiB
    processes: 300
    pods: [{name: g, from: 60s, devices: [{node: n, gpu: 3}]}]
"""
SHARED, PARTITIONED, MPS, CROWDED, BURSTING = 0, 1, 2, 3, 4
REAL_ONLY = pytest.mark.parametrize("world", ["real"], indirect=True)


class Gpu:
    """One GPU of a world, in a session of its own."""

    def __init__(self, world, index):
        self._session = world.session(index)
        self.simulated = world.node.gpus[index]

    def devices(self):
        return self._session.devices().value

    def read(self, probe, row=0):
        return self._session.read(probe, self.devices()[row])

    def listed(self, row=0):
        """Return the processes by rising pid: the order of lists means nothing."""
        return sorted(self.read(PROCESSES, row).value.found, key=lambda process: process.pid)

    def shares(self):
        return self.read(PROCESS_UTILIZATION).value

    def said_since(self, since_us):
        return [
            (sample.pid, sample.at_us, sample.sm_percent)
            for sample in self.simulated.process_samples(since_us)
        ]


def triples(reading):
    return sorted((share.pid, share.at_us, share.percent) for share in reading.shares)


def test_processes_are_listed_by_kind_with_the_memory_of_each(world):
    assert Gpu(world, SHARED).listed() == [
        GpuProcess(101, ProcessKind.COMPUTE, 8 * GIB),
        GpuProcess(102, ProcessKind.COMPUTE, 8 * GIB),
        GpuProcess(103, ProcessKind.GRAPHICS, 300 * 2**20),
    ]


def test_clients_of_mps_are_listed_as_such_and_the_server_beside_them(world):
    """dcgm-exporter #388, #474, #478: the clients stand in a list of their own."""
    gpu = Gpu(world, MPS)
    server = gpu.simulated.mps_server_pid
    assert gpu.listed() == [
        GpuProcess(301, ProcessKind.MPS, 4 * GIB),
        GpuProcess(302, ProcessKind.MPS, 4 * GIB),
        GpuProcess(server, ProcessKind.COMPUTE, MPS_SERVER_BYTES),
    ]


def test_each_mig_instance_lists_its_own_processes(world):
    gpu = Gpu(world, PARTITIONED)
    assert gpu.read(PROCESSES) == Unsupported("mig_enabled")
    pids = [[process.pid for process in gpu.listed(row)] for row in (1, 2, 3)]
    assert pids == [[201, 202], [203, 204], []]
    assert [process.used_bytes for process in gpu.listed(1)] == [3 * GIB // 2] * 2


def test_nobody_attributes_time_to_processes_under_mig(world):
    gpu = Gpu(world, PARTITIONED)
    assert gpu.read(PROCESS_UTILIZATION) == Unsupported("mig_enabled")
    assert gpu.read(PROCESS_UTILIZATION, 1) == Unsupported("mig_instance")


def test_shares_are_attributed_again_once_mig_is_off(world):
    gpu = Gpu(world, SHARED)
    gpu.shares()
    layout = world.inject(scenario.MigLayout(node="n", gpu=PARTITIONED, mig=False))
    assert isinstance(Gpu(world, PARTITIONED).read(PROCESS_UTILIZATION), Value)
    world.clear(layout)
    assert Gpu(world, PARTITIONED).read(PROCESS_UTILIZATION) == Unsupported("mig_enabled")


def test_a_process_that_ended_is_no_longer_listed(world):
    """dcgm-exporter #140, #16: nothing of a process outlives it."""
    gpu = Gpu(world, SHARED)
    world.advance(11)
    assert [process.pid for process in gpu.listed()] == [101, 103]


def test_memory_that_the_driver_does_not_state_is_unknown(world):
    """A sentinel taken for a number would be sixteen million terabytes."""
    world.inject(scenario.Garbage(node="n", gpu=SHARED))
    listed = Gpu(world, SHARED).listed()
    assert [(process.pid, process.used_bytes) for process in listed] == [
        (101, None), (102, None), (103, None),
    ]  # fmt: skip


def test_a_list_of_any_length_is_read_whole(world):
    gpu = Gpu(world, CROWDED)
    assert gpu.listed() == []
    world.advance(31)
    expected = [process.pid for process in gpu.simulated.processes]
    assert len(expected) == 300
    assert [process.pid for process in gpu.listed()] == expected


def test_the_first_read_tells_nothing_of_the_time_before(world):
    reading = Gpu(world, SHARED).shares()
    assert (reading.shares, reading.since_us, reading.covered_us()) == ((), None, 0)


def test_each_read_tells_the_shares_since_the_one_before(world):
    """nvtop PR #91: whoever always asks from 0 gets the whole ring again each time."""
    gpu = Gpu(world, SHARED)
    before = gpu.shares().until_us
    for seconds in (1.0, 0.3, 5.0, 2.2):
        world.advance(seconds)
        reading = gpu.shares()
        assert reading.since_us == before
        assert reading.covered_us() == pytest.approx(seconds * 1e6, abs=2)
        assert triples(reading) == gpu.said_since(before)
        before = reading.until_us


def test_shares_of_all_processes_together_are_no_more_than_the_whole(world):
    gpu = Gpu(world, SHARED)
    gpu.shares()
    for _ in range(20):
        world.advance(1)
        assert sum(share.percent for share in gpu.shares().shares) <= 100


def test_a_share_is_of_all_the_time_that_was_asked_about(world):
    """Idle samples count: a process that ran for half of the time was busy for half of it."""
    gpu = Gpu(world, BURSTING)
    gpu.shares()
    world.advance(10)
    (share,) = gpu.shares().shares
    assert (share.pid, share.percent) == (401, pytest.approx(40, abs=1))


def test_two_reads_between_two_samples_find_nothing_new(world):
    gpu = Gpu(world, SHARED)
    world.advance(1)
    gpu.shares()
    world.advance(PROCESS_SAMPLE_PERIOD_SECONDS / 100)
    reading = gpu.shares()
    assert reading.shares == ()
    assert reading.covered_us() > 0


def test_an_idle_gpu_is_idle_and_no_failure(world):
    """NVML answers NOT_FOUND there, which dcgm-exporter takes for an error."""
    gpu = Gpu(world, CROWDED)
    gpu.shares()
    world.advance(2)
    reading = gpu.shares()
    assert (reading.shares, reading.rejected) == ((), 0)
    assert reading.covered_us() == 2_000_000


def test_a_process_that_ended_has_the_share_of_the_time_in_which_it_ran(world):
    """go-nvml #51: processes of one answer have last samples that are seconds apart."""
    gpu = Gpu(world, SHARED)
    world.advance(5)
    since_us = gpu.shares().until_us
    world.advance(9)
    stamps = {share.pid: share.at_us for share in gpu.shares().shares}
    assert stamps[102] <= since_us + 5_000_000 + 1_000_000 * PROCESS_SAMPLE_PERIOD_SECONDS
    assert stamps[101] > stamps[102]


def test_time_that_the_ring_no_longer_holds_is_not_covered(world):
    gpu = Gpu(world, SHARED)
    gpu.shares()
    world.advance(LONGEST_SPAN_US / 1e6 + 1)
    assert gpu.shares().covered_us() == 0


def test_what_cannot_be_true_is_told_apart_from_what_is(world):
    """nvtop #110 and DCGM #83: rows nobody filled, times of tomorrow, a blank as a percentage."""
    gpu = Gpu(world, SHARED)
    world.inject(scenario.GarbageSamples(node="n", gpu=SHARED))
    since_us = gpu.shares().until_us
    world.advance(3)
    true = gpu.said_since(since_us)[: -len(gpu.simulated.process_nonsense())]
    reading = gpu.shares()
    assert true
    assert triples(reading) == true
    assert reading.rejected == len(gpu.simulated.process_nonsense())


def test_the_cursor_outlives_nvml(world):
    gpu = Gpu(world, SHARED)
    before = gpu.shares().until_us
    world.nvml.stop()
    world.advance(1)
    world.nvml.start()
    assert Gpu(world, SHARED).shares().since_us == before


@REAL_ONLY
@pytest.mark.parametrize("broken", [OLD_SHARES, SHARES])
@pytest.mark.parametrize(
    "code", [pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND]
)
def test_either_of_the_two_calls_suffices(world, broken, code):
    """HAMi #601, #2015, HAMi-core #218: the old call fails on new boards; drivers before R550 lack the new one."""
    world.fail(SHARED, **{broken: code})
    gpu = Gpu(world, SHARED)
    before = gpu.shares().until_us
    world.driver.forget_calls()
    for _ in range(3):
        world.advance(1)
        reading = gpu.shares()
        assert triples(reading) == gpu.said_since(before)
        before = reading.until_us
    # What works is remembered: the other is not tried over and over.
    assert world.driver.calls().get(broken, 0) == 0


@REAL_ONLY
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (pynvml.NVML_ERROR_NOT_SUPPORTED, "device"),
        (pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, "driver"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "permission"),
    ],
)
def test_without_either_call_shares_are_unsupported(world, code, reason):
    world.fail(SHARED, **{OLD_SHARES: code, SHARES: code})
    assert Gpu(world, SHARED).read(PROCESS_UTILIZATION) == Unsupported(reason)


@REAL_ONLY
def test_a_call_that_fails_is_a_failure_and_no_idle_time(world):
    gpu = Gpu(world, SHARED)
    before = gpu.shares().until_us
    world.fail(SHARED, **{SHARES: pynvml.NVML_ERROR_UNKNOWN})
    world.advance(1)
    assert gpu.read(PROCESS_UTILIZATION) == Failed("UNKNOWN")
    world.alter(SHARED, None)
    world.advance(1)
    # The span goes on from the last read that worked, so that nothing of it is lost.
    assert gpu.shares().since_us == before


@REAL_ONLY
def test_a_board_without_one_of_the_lists_has_the_others(world):
    graphics = LISTS[ProcessType.GRAPHICS]
    world.fail(SHARED, **{graphics: pynvml.NVML_ERROR_NOT_SUPPORTED})
    assert [process.pid for process in Gpu(world, SHARED).listed()] == [101, 102]
    world.fail(SHARED, **dict.fromkeys(LISTS.values(), pynvml.NVML_ERROR_NOT_SUPPORTED))
    assert Gpu(world, SHARED).read(PROCESSES) == Unsupported("device")
    world.fail(SHARED, **{graphics: pynvml.NVML_ERROR_UNKNOWN})
    assert Gpu(world, SHARED).read(PROCESSES) == Failed("UNKNOWN")


@REAL_ONLY
@pytest.mark.parametrize("growths", [1, 2, 3])
def test_a_list_that_grows_between_the_calls_is_asked_for_again(world, growths):
    world.advance(31)
    world.feed.file.grow_samples(CROWDED, growths)
    assert len(Gpu(world, CROWDED).listed()) == 300


@REAL_ONLY
def test_a_process_that_is_in_two_lists_is_one_process(world):
    graphics = LISTS[ProcessType.GRAPHICS]

    def draw_too(into):
        row = pynvml.c_nvmlProcessInfo_v3_t(pid=101, usedGpuMemory=8 * GIB)
        into.add_rows(graphics, [row])

    world.answer(SHARED, draw_too)
    listed = Gpu(world, SHARED).listed()
    assert [(process.pid, process.kind) for process in listed] == [
        (101, "compute"), (102, "compute"), (103, "graphics"),
    ]  # fmt: skip
