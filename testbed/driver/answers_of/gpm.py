"""GPM: support, and the counters of a GPU and its MIG devices."""

from exporter.nvml.simulated.gpm import COUNTED, in_nvml_units
from simulator.gpu import SimulatedGpu
from simulator.stage import MigDevice
from testbed.driver.answers import Answers, nvml


def answers(gpu: SimulatedGpu, into: Answers) -> None:
    """Put whether a GPU has GPM, and what it has counted so far."""
    support = nvml.c_nvmlGpmSupport_t(
        version=nvml.NVML_GPM_SUPPORT_VERSION, isSupportedDevice=gpu.model.gpm
    )
    into.put_version("nvmlGpmQueryDeviceSupport", support)
    if gpu.model.gpm:
        for device in (None, *gpu.mig_devices):
            _counters(gpu, device, into)


def _counters(gpu: SimulatedGpu, device: MigDevice | None, into: Answers) -> None:
    sample = gpu.gpm_sample(device)
    slot = None if device is None else device.index
    for metric, quantity in COUNTED.items():
        if quantity in sample.totals:
            total = in_nvml_units(metric, sample.totals[quantity])
            into.put_gpm(metric, total=total, seconds=sample.at_us / 1e6, slot=slot)
