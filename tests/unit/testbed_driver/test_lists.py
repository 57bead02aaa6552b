"""Lists, by NVML's protocol: count in, count out, and an error while the buffer is too small."""

import ctypes
from ctypes import byref, c_uint32, c_uint64

import pynvml
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testbed.driver.answers import RetiredPage, Sample

SMALL, NOT_FOUND = pynvml.NVML_ERROR_INSUFFICIENT_SIZE, pynvml.NVML_ERROR_NOT_FOUND
INVALID, MISMATCH = pynvml.NVML_ERROR_INVALID_ARGUMENT, pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH
NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
PROCESSES = [
    f"nvmlDeviceGet{kind}RunningProcesses_v3" for kind in ("Compute", "Graphics", "MPSCompute")
]
CAPACITY = 100


def process(pid, used=2**30):
    return pynvml.c_nvmlProcessInfo_v3_t(
        pid=pid, usedGpuMemory=used, gpuInstanceId=2**32 - 1, computeInstanceId=2**32 - 1
    )


def sample(pid, at, percent):
    return pynvml.c_nvmlProcessUtilizationSample_t(pid=pid, timeStamp=at, smUtil=percent)


def listed(machine, name, room, handle=None):
    count = c_uint32(room)
    rows = (pynvml.c_nvmlProcessInfo_v3_t * room)() if room else None
    code = machine.call(name, handle or machine.gpu, byref(count), rows)
    return code, count.value, [row.pid for row in rows or ()]


@pytest.mark.parametrize("name", PROCESSES)
@given(held=st.integers(0, 20), room=st.integers(0, 25))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_list_is_given_whole_or_its_length_is_told(machine, name, held, room):
    machine.answers.put_list(name, [process(100 + number) for number in range(held)])
    machine.show()
    code, count, pids = listed(machine, name, room)
    assert count == held
    assert code == (SMALL if room < held else 0)
    expected = [] if code else [100 + number for number in range(held)]
    assert pids == expected + [0] * (room - len(expected))


@pytest.mark.parametrize("name", PROCESSES)
def test_processes_of_a_gpu_and_of_its_instances_are_lists_of_their_own(machine, name):
    read = getattr(pynvml, name)
    assert listed(machine, name, 9)[0] == NOT_SUPPORTED
    machine.answers.put_list(name, [process(1), process(2, used=2**64 - 1)])
    machine.show()
    assert [(row.pid, row.usedGpuMemory) for row in read(machine.gpu)] == [(1, 2**30), (2, None)]
    assert listed(machine, name, 9, machine.instance)[0] == NOT_SUPPORTED
    machine.answers.put_list(name, [process(2)], slot=3)
    machine.show()
    assert [row.pid for row in read(machine.instance)] == [2]


def test_clients_of_mps_are_told_apart_from_its_server(machine):
    """dcgm-exporter #388, #478: the server is in the list of compute, the clients in their own."""
    machine.answers.put_list(PROCESSES[0], [process(50)])
    machine.answers.put_list(PROCESSES[2], [process(51), process(52)])
    machine.show()
    lists = [listed(machine, name, 4)[2] for name in (PROCESSES[0], PROCESSES[2])]
    assert lists == [[50, 0, 0, 0], [51, 52, 0, 0]]


def test_a_list_that_grows_between_the_calls_is_too_small_once(machine):
    machine.answers.put_list(PROCESSES[0], [process(number) for number in range(6)])
    machine.show()
    machine.file.grow_samples(0, 1)
    assert listed(machine, PROCESSES[0], 0)[:2] == (SMALL, 5)
    assert listed(machine, PROCESSES[0], 5)[:2] == (SMALL, 6)
    assert listed(machine, PROCESSES[0], 6)[:2] == (0, 6)


def test_a_list_without_a_count_is_an_invalid_argument(machine):
    machine.answers.put_list(PROCESSES[0], [])
    machine.show()
    assert machine.call(PROCESSES[0], machine.gpu, None, None) == INVALID


def utilization(machine, room, after, null=False):
    count = c_uint32(room)
    rows = None if null else (pynvml.c_nvmlProcessUtilizationSample_t * max(room, 1))()
    name = "nvmlDeviceGetProcessUtilization"
    code = machine.call(name, machine.gpu, rows, byref(count), c_uint64(after))
    return code, count.value, [row.pid for row in rows or () if row.pid or row.timeStamp]


def test_sizing_of_process_utilization_announces_a_capacity(machine):
    """As go-nvml #51 prints them: several processes, each as old as its last sample."""
    rows = [sample(1, 1000, 24), sample(2, 2000, 30), sample(3, 3000, 17)]
    machine.answers.put_list("nvmlDeviceGetProcessUtilization", rows, capacity=CAPACITY)
    machine.show()
    assert utilization(machine, 0, 0, null=True)[:2] == (SMALL, CAPACITY)
    assert utilization(machine, CAPACITY, 0) == (0, 3, [1, 2, 3])
    assert utilization(machine, CAPACITY, 1000) == (0, 2, [2, 3])
    assert utilization(machine, 1, 1000)[:2] == (SMALL, CAPACITY)
    assert utilization(machine, CAPACITY, 3000)[0] == NOT_FOUND
    found = pynvml.nvmlDeviceGetProcessUtilization(machine.gpu, 1000)
    assert [(row.pid, row.smUtil) for row in found] == [(2, 30), (3, 17)]


def test_rows_that_were_never_filled_are_passed_on(machine):
    """nvtop #110: without a time or a process, and with percents beyond 100."""
    garbage = [sample(0, 0, 37_100), *[sample(0, 0, 0)] * 97, sample(9, 2**63, 1)]
    machine.answers.put_list("nvmlDeviceGetProcessUtilization", garbage, capacity=CAPACITY)
    machine.show()
    assert len(pynvml.nvmlDeviceGetProcessUtilization(machine.gpu, 5)) == len(garbage)


def test_an_idle_gpu_whose_sizing_succeeds_makes_the_binding_raise_success(machine):
    machine.answers.put_list("nvmlDeviceGetProcessUtilization", [])
    machine.show()
    with pytest.raises(pynvml.NVMLError) as error:
        pynvml.nvmlDeviceGetProcessUtilization(machine.gpu, 0)
    assert error.value.value == pynvml.NVML_SUCCESS


def test_either_call_for_process_utilization_can_be_missing(machine):
    """HAMi #2015: the old call fails on new boards; drivers before R550 lack the new one."""
    row = pynvml.c_nvmlProcessUtilizationInfo_v1_t(timeStamp=1000, pid=7, smUtil=40, ofaUtil=2)
    machine.answers.put_list("nvmlDeviceGetProcessesUtilizationInfo", [row], capacity=CAPACITY)
    machine.show()
    (found,) = pynvml.nvmlDeviceGetProcessesUtilizationInfo(machine.gpu, 999)
    assert (found.pid, found.smUtil, found.ofaUtil) == (7, 40, 2)
    assert utilization(machine, CAPACITY, 0)[0] == NOT_SUPPORTED
    info = pynvml.c_nvmlProcessesUtilizationInfo_v1_t()
    info.version = 1
    name = "nvmlDeviceGetProcessesUtilizationInfo"
    assert machine.call(name, machine.gpu, byref(info)) == MISMATCH
    info.version = pynvml.ProcessesUtilizationInfo_v1
    assert machine.call(name, machine.gpu, byref(info)) == SMALL
    assert info.processSamplesCount == CAPACITY


def test_retired_pages_come_with_their_times_from_the_new_call_alone(machine):
    pages = [RetiredPage(0x1000, 11), RetiredPage(0x2000, 12)]
    machine.answers.put_list("nvmlDeviceGetRetiredPages_v2", pages, key=(1, 0))
    machine.answers.put_list("nvmlDeviceGetRetiredPages_v2", [], key=(0, 0))
    machine.show()
    assert pynvml.nvmlDeviceGetRetiredPages_v2(machine.gpu, 1) == [
        {"address": 0x1000, "timestamp": 11},
        {"address": 0x2000, "timestamp": 12},
    ]
    assert list(pynvml.nvmlDeviceGetRetiredPages(machine.gpu, 1)) == [0x1000, 0x2000]
    assert pynvml.nvmlDeviceGetRetiredPages_v2(machine.gpu, 0) == []
    count = c_uint32(1)
    room = (c_uint64 * 1)()
    code = machine.call("nvmlDeviceGetRetiredPages", machine.gpu, 1, byref(count), room)
    assert (code, count.value) == (SMALL, 2)


def test_samples_of_every_kind_have_the_type_of_their_values(machine):
    kinds = {0: (1, 250_000), 1: (1, 90), 5: (3, 2**40)}
    for kind, (value_type, value) in kinds.items():
        rows = [Sample(1000, value), Sample(2000, value + 1)]
        machine.answers.put_list(
            "nvmlDeviceGetSamples", rows, key=(kind, 0), value_type=value_type
        )
    machine.show()
    for kind, (value_type, value) in kinds.items():
        got_type, rows = pynvml.nvmlDeviceGetSamples(machine.gpu, kind, 1000)
        assert got_type == value_type
        assert [(row.timeStamp, row.sampleValue.ullVal) for row in rows] == [(2000, value + 1)]
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlDeviceGetSamples(machine.gpu, 0, 2000)
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceGetSamples(machine.gpu, 2, 0)


def test_samples_for_no_rows_are_an_invalid_argument(machine, count):
    machine.answers.put_list("nvmlDeviceGetSamples", [Sample(1000, 1)], key=(1, 0))
    machine.show()
    kind, rows = c_uint32(), (pynvml.c_nvmlSample_t * 1)()
    arguments = machine.gpu, 1, c_uint64(0), byref(kind)
    assert machine.call("nvmlDeviceGetSamples", *arguments, byref(count), rows) == INVALID
    assert machine.call("nvmlDeviceGetSamples", *arguments, byref(count), None) == 0
    assert count.value == 1


def test_rows_of_another_size_are_reported(machine, count, capfd):
    machine.answers.put_list(PROCESSES[0], [c_uint64(1)])
    machine.show()
    code = machine.call(PROCESSES[0], machine.gpu, byref(count), None)
    assert code == pynvml.NVML_ERROR_UNKNOWN
    size = ctypes.sizeof(pynvml.c_nvmlProcessInfo_v3_t)
    assert f"{PROCESSES[0]} is 8 bytes long, {size}" in capfd.readouterr().err
