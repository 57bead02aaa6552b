"""Virtual GPUs as the host's driver shows them; an instance is found on whichever GPU it runs."""

import ctypes
from ctypes import byref, c_uint32, c_uint64

import pynvml
import pytest

from testbed.driver.answers import Answers

VGPU, TYPE = 3251634213, 1132
NOT_SUPPORTED, NOT_FOUND = pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_NOT_FOUND
INVALID, SMALL = pynvml.NVML_ERROR_INVALID_ARGUMENT, pynvml.NVML_ERROR_INSUFFICIENT_SIZE
KEY = (VGPU, 0)


@pytest.fixture
def host(machine):
    """The second GPU has a virtual one; the first has none."""
    machine.vgpus = Answers()
    machine.vgpus.put_list("nvmlDeviceGetActiveVgpus", [VGPU])
    machine.answers.put_list("nvmlDeviceGetActiveVgpus", [])
    machine.show()
    machine.show(machine.vgpus, gpu=1)
    return machine


def code_of(call, *arguments):
    with pytest.raises(pynvml.NVMLError) as error:
        call(*arguments)
    return error.value.value


def test_active_vgpus_are_listed_for_their_gpu(host):
    assert pynvml.nvmlDeviceGetActiveVgpus(host.gpu) == []
    assert pynvml.nvmlDeviceGetActiveVgpus(host.other) == [VGPU]
    count, room = c_uint32(0), (c_uint32 * 4)()
    name = "nvmlDeviceGetActiveVgpus"
    assert host.call(name, host.other, byref(count), room) == SMALL
    assert count.value == 1


def test_an_instance_is_described(host):
    license_info = pynvml.c_nvmlVgpuLicenseInfo_t(isLicensed=1, currentState=3)
    host.vgpus.put("nvmlVgpuInstanceGetUUID", b"5b1f-0001", key=KEY)
    host.vgpus.put("nvmlVgpuInstanceGetMdevUUID", b"5b1f-0002", key=KEY)
    host.vgpus.put("nvmlVgpuInstanceGetVmID", b"vm-17", key=KEY, value_type=1)
    host.vgpus.put("nvmlVgpuInstanceGetType", TYPE, key=KEY)
    host.vgpus.put("nvmlVgpuInstanceGetFbUsage", c_uint64(2**33), key=KEY)
    host.vgpus.put("nvmlVgpuInstanceGetLicenseInfo_v2", license_info, key=KEY)
    host.show(host.vgpus, gpu=1)
    assert pynvml.nvmlVgpuInstanceGetUUID(VGPU) == "5b1f-0001"
    assert pynvml.nvmlVgpuInstanceGetMdevUUID(VGPU) == "5b1f-0002"
    assert pynvml.nvmlVgpuInstanceGetType(VGPU) == TYPE
    # The binding keeps 32 of the 64 bits.
    used = c_uint64()
    assert host.call("nvmlVgpuInstanceGetFbUsage", VGPU, byref(used)) == 0
    assert used.value == 2**33
    filled = pynvml.c_nvmlVgpuLicenseInfo_t()
    assert host.call("nvmlVgpuInstanceGetLicenseInfo_v2", VGPU, byref(filled)) == 0
    assert (filled.isLicensed, filled.currentState) == (1, 3)
    buffer, kind = ctypes.create_string_buffer(80), c_uint32()
    assert host.call("nvmlVgpuInstanceGetVmID", VGPU, buffer, 80, byref(kind)) == 0
    assert (buffer.value, kind.value) == (b"vm-17", 1)


def test_no_instance_an_unknown_one_and_one_without_an_answer_are_told_apart(host):
    assert code_of(pynvml.nvmlVgpuInstanceGetFbUsage, 0) == INVALID
    assert code_of(pynvml.nvmlVgpuInstanceGetFbUsage, 99) == NOT_FOUND
    assert code_of(pynvml.nvmlVgpuInstanceGetFbUsage, VGPU) == NOT_SUPPORTED


def test_an_instance_fails_with_its_gpu(host):
    host.vgpus.put("nvmlVgpuInstanceGetFbUsage", c_uint64(1), key=KEY)
    host.errors["nvmlVgpuInstanceGetFbUsage"] = pynvml.NVML_ERROR_GPU_IS_LOST
    host.show(host.vgpus, gpu=1)
    lost = code_of(pynvml.nvmlVgpuInstanceGetFbUsage, VGPU)
    assert lost == pynvml.NVML_ERROR_GPU_IS_LOST


def test_a_type_has_a_name_and_a_size(host):
    host.vgpus.put("nvmlVgpuTypeGetName", b"NVIDIA H100-20C", key=(TYPE, 0))
    host.vgpus.put("nvmlVgpuTypeGetFramebufferSize", c_uint64(20 * 2**30), key=(TYPE, 0))
    host.show(host.vgpus, gpu=1)
    assert pynvml.nvmlVgpuTypeGetName(TYPE) == "NVIDIA H100-20C"
    assert pynvml.nvmlVgpuTypeGetFramebufferSize(TYPE) == 20 * 2**30
    assert code_of(pynvml.nvmlVgpuTypeGetFramebufferSize, TYPE + 1) == INVALID
    size = c_uint32(4)
    assert host.call("nvmlVgpuTypeGetName", TYPE, ctypes.create_string_buffer(4), byref(size)) == (
        SMALL
    )
    assert size.value == len("NVIDIA H100-20C") + 1


def test_utilization_of_vgpus_is_that_since_the_last_look(host):
    old = pynvml.c_nvmlVgpuInstanceUtilizationSample_t(vgpuInstance=VGPU, timeStamp=1000)
    old.smUtil.uiVal = 40
    new = pynvml.c_nvmlVgpuInstanceUtilizationInfo_v1_t(vgpuInstance=VGPU, timeStamp=1000)
    new.ofaUtil.uiVal = 5
    process = pynvml.c_nvmlVgpuProcessUtilizationSample_t(
        vgpuInstance=VGPU, pid=9, processName=b"python3", timeStamp=1000, smUtil=39
    )
    host.vgpus.put_list("nvmlDeviceGetVgpuUtilization", [old])
    host.vgpus.put_list("nvmlDeviceGetVgpuInstancesUtilizationInfo", [new])
    host.vgpus.put_list("nvmlDeviceGetVgpuProcessUtilization", [process])
    host.show(host.vgpus, gpu=1)
    (found,) = pynvml.nvmlDeviceGetVgpuUtilization(host.other, 999)
    assert (found.vgpuInstance, found.smUtil.uiVal) == (VGPU, 40)
    (found,) = pynvml.nvmlDeviceGetVgpuInstancesUtilizationInfo(host.other, 999)
    assert (found.vgpuInstance, found.ofaUtil.uiVal) == (VGPU, 5)
    (found,) = pynvml.nvmlDeviceGetVgpuProcessUtilization(host.other, 999)
    assert (found.pid, found.processName, found.smUtil) == (9, "python3", 39)
    assert pynvml.nvmlDeviceGetVgpuUtilization(host.other, 1000) == []


def test_a_buffer_for_no_vgpu_is_an_invalid_argument_and_no_buffer_is_a_question(host):
    row = pynvml.c_nvmlVgpuInstanceUtilizationSample_t(vgpuInstance=VGPU, timeStamp=1000)
    host.vgpus.put_list("nvmlDeviceGetVgpuUtilization", [row], capacity=2)
    host.show(host.vgpus, gpu=1)
    kind, count = c_uint32(), c_uint32(0)
    arguments = host.other, c_uint64(0), byref(kind), byref(count)
    assert host.call("nvmlDeviceGetVgpuUtilization", *arguments, byref(row)) == INVALID
    assert host.call("nvmlDeviceGetVgpuUtilization", *arguments, None) == SMALL
    assert (kind.value, count.value) == (pynvml.NVML_VALUE_TYPE_UNSIGNED_INT, 2)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("nvmlDeviceGetVgpuSchedulerState_v2", pynvml.c_nvmlVgpuSchedulerStateInfo_v2_t),
        ("nvmlDeviceGetVgpuSchedulerLog_v2", pynvml.c_nvmlVgpuSchedulerLogInfo_v2_t),
        ("nvmlDeviceGetVgpuSchedulerLog", pynvml.c_nvmlVgpuSchedulerLog_t),
    ],
)
def test_each_engine_has_a_scheduler_of_its_own(host, name, kind):
    for engine in (1, 2):
        structure = kind()
        structure.engineId, structure.schedulerPolicy = engine, engine + 1
        if hasattr(structure, "logEntries"):
            structure.entriesCount = 200
            structure.logEntries[199].timeRun = 1000 + engine
        host.answers.put(name, structure, key=(engine, 0))
    host.show()
    for engine in (1, 2):
        filled = kind()
        filled.engineId = engine
        assert host.call(name, host.gpu, byref(filled)) == 0
        assert filled.schedulerPolicy == engine + 1
        if hasattr(filled, "logEntries"):
            assert filled.logEntries[199].timeRun == 1000 + engine
    filled = kind()
    filled.engineId = 3
    assert host.call(name, host.gpu, byref(filled)) == NOT_SUPPORTED
    assert host.call(name, host.gpu, None) == INVALID
