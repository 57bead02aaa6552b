"""The virtual GPUs of a host, what each uses, and the scheduler that they share."""

import zlib
from collections.abc import Sequence
from ctypes import Structure, c_uint64
from typing import Any, Final

from exporter.nvml.simulated.vgpu import NUMBERS
from simulator.gpu import SimulatedGpu
from simulator.vgpu import VgpuHost, VgpuInstance, VgpuSample
from simulator.vgpu_scheduler import LogEntry
from slicewatch.catalog.readings.vgpu import SchedulerPolicy
from testbed.driver.answers import Answers, nvml

RATES: Final = "nvmlDeviceGetVgpuInstancesUtilizationInfo"
OLD_RATES: Final = "nvmlDeviceGetVgpuUtilization"
STATE: Final = "nvmlDeviceGetVgpuSchedulerState_v2"
OLD_STATE: Final = "nvmlDeviceGetVgpuSchedulerState"
LOG: Final = "nvmlDeviceGetVgpuSchedulerLog_v2"
OLD_LOG: Final = "nvmlDeviceGetVgpuSchedulerLog"

ENGINE: Final = nvml.NVML_VGPU_SCHEDULER_ENGINE_TYPE_GRAPHICS
_LICENSED, _UNLICENSED = 5, 4


def answers(gpu: SimulatedGpu, into: Answers) -> None:
    """Put what the GPU is: a virtual one, one that is split into virtual ones, or neither."""
    host = gpu.vgpu_host
    mode = nvml.NVML_GPU_VIRTUALIZATION_MODE_NONE
    if gpu.license is not None:
        mode = nvml.NVML_GPU_VIRTUALIZATION_MODE_VGPU
    if host is not None:
        mode = nvml.NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU
        _put_host(host, into)
    into.put("nvmlDeviceGetVirtualizationMode", mode)


def type_id(name: str) -> int:
    """Return the number of a type of vGPU, the same on all boards."""
    return zlib.crc32(name.encode()) % 2**16


def _put_host(host: VgpuHost, into: Answers) -> None:
    instances = host.instances()
    into.put("nvmlDeviceGetHostVgpuMode", nvml.NVML_HOST_VGPU_MODE_SRIOV)
    into.put_list("nvmlDeviceGetActiveVgpus", [one.id for one in instances])
    for one in instances:
        _put_instance(one, into)
    _put_rates(host, into)
    _put_scheduler(host, into)


def _put_instance(one: VgpuInstance, into: Answers) -> None:
    key, kind = (one.id, 0), type_id(one.type_name)
    into.put("nvmlVgpuInstanceGetUUID", one.uuid.encode(), key=key)
    vm_kind = nvml.NVML_VGPU_VM_ID_UUID
    into.put("nvmlVgpuInstanceGetVmID", one.vm.encode(), key=key, value_type=vm_kind)
    into.put("nvmlVgpuInstanceGetType", kind, key=key)
    into.put("nvmlVgpuInstanceGetFbUsage", c_uint64(one.used_bytes), key=key)
    license_info = nvml.c_nvmlVgpuLicenseInfo_t(
        isLicensed=one.licensed, currentState=_LICENSED if one.licensed else _UNLICENSED
    )
    into.put("nvmlVgpuInstanceGetLicenseInfo_v2", license_info, key=key)
    into.put("nvmlVgpuTypeGetName", one.type_name.encode(), key=(kind, 0))
    into.put("nvmlVgpuTypeGetFramebufferSize", c_uint64(one.total_bytes), key=(kind, 0))


def _put_rates(host: VgpuHost, into: Answers) -> None:
    new, old = (
        nvml.c_nvmlVgpuInstanceUtilizationInfo_v1_t,
        nvml.c_nvmlVgpuInstanceUtilizationSample_t,
    )
    for call, kind in ((RATES, new), (OLD_RATES, old)):
        into.put_list(call, [_rates(kind, sample) for sample in host.samples()])


def _rates(kind: type[Structure], sample: VgpuSample) -> Structure:
    row: Any = kind()
    row.vgpuInstance, row.timeStamp = sample.instance, sample.at_us
    row.smUtil.uiVal, row.memUtil.uiVal = sample.sm_percent, sample.memory_percent
    row.encUtil.uiVal, row.decUtil.uiVal = sample.encoder_percent, sample.decoder_percent
    made: Structure = row
    return made


def _put_scheduler(host: VgpuHost, into: Answers) -> None:
    policy = NUMBERS[SchedulerPolicy(host.scheduler.policy.value)]
    slice_ns = round(1e9 * host.scheduler.time_slice)
    state = nvml.c_nvmlVgpuSchedulerStateInfo_v2_t(
        engineId=ENGINE, schedulerPolicy=policy, timeslice=slice_ns
    )
    into.put(STATE, state, key=(ENGINE, 0))
    old_state = nvml.c_nvmlVgpuSchedulerGetState_t(
        schedulerPolicy=policy, arrMode=nvml.NVML_VGPU_SCHEDULER_ARR_DISABLE
    )
    old_state.schedulerParams.vgpuSchedData.timeslice = slice_ns
    into.put(OLD_STATE, old_state)
    entries = host.log()
    into.put(LOG, _log(nvml.c_nvmlVgpuSchedulerLogInfo_v2_t(), entries), key=(ENGINE, 0))
    into.put(OLD_LOG, _log(nvml.c_nvmlVgpuSchedulerLog_t(), entries), key=(ENGINE, 0))


def _log(log: Any, entries: Sequence[LogEntry]) -> Structure:  # noqa: ANN401 - of two versions
    log.engineId, log.entriesCount = ENGINE, len(entries)
    for row, entry in zip(log.logEntries, entries, strict=False):
        row.timestamp, row.swRunlistId = entry.timestamp_ns, entry.runlist_id
        row.timeRun, row.timeRunTotal = entry.time_run_ns, entry.time_run_total_ns
        row.targetTimeSlice = entry.target_time_slice_ns
        row.cumulativePreemptionTime = entry.cumulative_preemption_ns
        if hasattr(row, "weight"):
            row.weight = entry.weight
    made: Structure = log
    return made
