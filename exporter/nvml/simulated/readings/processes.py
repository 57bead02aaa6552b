"""Processes of a device; their shares need a cursor, so the session reads them."""

from typing import Final

from exporter.nvml.protocol import Unsupported
from exporter.nvml.simulated.readings.read import BoardReads, InstanceReads
from simulator.gpu import SimulatedGpu
from simulator.timeline import MigDevice
from slicewatch.catalog.readings.processes import GpuProcess, Processes, ProcessKind


def _of_board(gpu: SimulatedGpu) -> Processes | Unsupported:
    # Those of its instances are read from the instances.
    return Unsupported("mig_enabled") if gpu.mig_enabled else _running(gpu, None)


def _of_instance(gpu: SimulatedGpu, device: MigDevice) -> Processes:
    return _running(gpu, device.gpu_instance_id)


def _running(gpu: SimulatedGpu, gpu_instance: int | None) -> Processes:
    return Processes(
        tuple(
            GpuProcess(process.pid, ProcessKind(process.type.value), process.used_bytes)
            for process in gpu.processes
            if process.gpu_instance_id == gpu_instance
        )
    )


BOARD: Final[BoardReads] = {"processes": _of_board}
INSTANCE: Final[InstanceReads] = {"processes": _of_instance}
