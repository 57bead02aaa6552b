"""Processes of a GPU and of its MIG instances, and the samples of what each kept busy.

What the driver answers about shares depends on the caller's timestamp, so the ring itself is put;
the driver adds it up.
"""

import ctypes
from collections.abc import Iterable
from ctypes import c_uint32, c_uint64
from typing import Final

from simulator.gpu import SimulatedGpu
from simulator.process_samples import NotedSample, ProcessSample
from simulator.processes import Process, ProcessType
from testbed.driver.answers import Answers, nvml
from testbed.driver.state import NO_INSTANCE

# NVML_VALUE_NOT_AVAILABLE in an unsigned long long.
NOT_AVAILABLE: Final = 2**64 - 1
# What sizing calls of both utilization calls announce, whatever there is.
CAPACITY: Final = 100
# The key under which the driver finds a ring, beside rows that it passes on as they are.
RING: Final = (1, 0)

OLD_SHARES: Final = "nvmlDeviceGetProcessUtilization"
SHARES: Final = "nvmlDeviceGetProcessesUtilizationInfo"
LISTS: Final = {
    ProcessType.COMPUTE: "nvmlDeviceGetComputeRunningProcesses_v3",
    ProcessType.GRAPHICS: "nvmlDeviceGetGraphicsRunningProcesses_v3",
    ProcessType.MPS: "nvmlDeviceGetMPSComputeRunningProcesses_v3",
}


class RingSample(ctypes.Structure):
    """struct sample of processes.c: one period, its process or 0, hundredths of a percent."""

    _fields_ = [
        ("at_us", c_uint64),
        *((name, c_uint32) for name in ("pid", "sm", "memory", "encoder", "decoder", "_pad")),
    ]


def answers(gpu: SimulatedGpu, into: Answers) -> None:
    """Put the lists of a GPU and its MIG instances, and the shares of one that is not in MIG mode."""
    running = gpu.processes
    put_lists(running, into)
    for device in gpu.mig_devices:
        held = [one for one in running if one.gpu_instance_id == device.gpu_instance_id]
        put_lists(held, into, slot=device.index)
    if not gpu.mig_enabled:
        put_ring(gpu.process_ring(), into)
        put_rows(gpu.process_nonsense(), into)


def put_lists(processes: Iterable[Process], into: Answers, *, slot: int | None = None) -> None:
    """Put the three lists of a GPU or MIG slot; a list may be empty."""
    found = tuple(processes)
    for kind, call in LISTS.items():
        into.put_list(call, [_info(one) for one in found if one.type is kind], slot=slot)


def put_ring(samples: Iterable[NotedSample], into: Answers) -> None:
    """Put the ring from which the driver estimates shares, oldest sample first."""
    rows = [
        RingSample(one.at_us, one.pid, one.sm, one.memory, one.encoder, one.decoder)
        for one in samples
    ]
    for call in (OLD_SHARES, SHARES):
        into.put_list(call, rows, key=RING)


def put_rows(samples: Iterable[ProcessSample], into: Answers) -> None:
    """Put rows that the driver passes on behind those of its ring, nonsense included."""
    found = tuple(samples)
    into.put_list(OLD_SHARES, [_old_row(one) for one in found], capacity=CAPACITY)
    into.put_list(SHARES, [_row(one) for one in found], capacity=CAPACITY)


def _info(process: Process) -> ctypes.Structure:
    used = NOT_AVAILABLE if process.used_bytes is None else process.used_bytes
    info: ctypes.Structure = nvml.c_nvmlProcessInfo_v3_t(
        pid=process.pid,
        usedGpuMemory=used,
        gpuInstanceId=_instance(process.gpu_instance_id),
        computeInstanceId=_instance(process.compute_instance_id),
    )
    return info


def _instance(number: int | None) -> int:
    return NO_INSTANCE if number is None else number


def _old_row(sample: ProcessSample) -> ctypes.Structure:
    row: ctypes.Structure = nvml.c_nvmlProcessUtilizationSample_t(
        pid=sample.pid,
        timeStamp=sample.at_us,
        smUtil=sample.sm_percent,
        memUtil=sample.memory_percent,
        encUtil=sample.encoder_percent,
        decUtil=sample.decoder_percent,
    )
    return row


def _row(sample: ProcessSample) -> ctypes.Structure:
    row: ctypes.Structure = nvml.c_nvmlProcessUtilizationInfo_v1_t(
        timeStamp=sample.at_us,
        pid=sample.pid,
        smUtil=sample.sm_percent,
        memUtil=sample.memory_percent,
        encUtil=sample.encoder_percent,
        decUtil=sample.decoder_percent,
    )
    return row
