"""Utilization, which a GPU in MIG mode does not measure."""

from typing import Final

from simulator.gpm import GpmQuantity
from simulator.gpu import SimulatedGpu
from simulator.utilization_samples import SAMPLE_PERIOD_US
from testbed.driver.answers import Answers, Sample

# NVML_GPU_UTILIZATION_SAMPLES.
UTILIZATION_SAMPLES: Final = 1
# What a driver keeps; the simulator's buffer may hold more.
SAMPLES_SHOWN: Final = 128
ENGINES: Final = {
    "nvmlDeviceGetEncoderUtilization": GpmQuantity.ENCODER,
    "nvmlDeviceGetDecoderUtilization": GpmQuantity.DECODER,
    "nvmlDeviceGetJpgUtilization": GpmQuantity.JPEG,
    "nvmlDeviceGetOfaUtilization": GpmQuantity.OFA,
}


def answers(gpu: SimulatedGpu, into: Answers) -> None:
    """Put the current rates and the buffered samples of a GPU."""
    if gpu.mig_enabled:
        return
    memory = gpu.current_activity(GpmQuantity.DRAM)
    into.put("nvmlDeviceGetUtilizationRates", gpu.current_utilization, memory)
    for call, part in ENGINES.items():
        into.put(call, gpu.current_activity(part), SAMPLE_PERIOD_US)
    samples = gpu.utilization_samples()[-SAMPLES_SHOWN:]
    into.put_list(
        "nvmlDeviceGetSamples",
        (Sample(at, percent & 0xFFFFFFFF) for at, percent in samples),
        key=(UTILIZATION_SAMPLES, 0),
    )
