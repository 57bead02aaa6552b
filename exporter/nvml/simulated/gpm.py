"""GPM's counters of a simulated GPU, by the numbers and in the units of NVML."""

from collections.abc import Mapping
from typing import Final

from exporter.nvml.protocol import Failed, Lost, Outcome, Unsupported, Value
from simulator.clock import Clock
from simulator.errors import NotSupportedError
from simulator.gpm import BYTES, GpmQuantity, GpmSample
from simulator.gpu import SimulatedGpu
from slicewatch.catalog.readings.gpm import MEBIBYTE, Gpm, GpmMetric
from slicewatch.catalog.readings.utilization import MICROSECONDS
from slicewatch.wire.layout import Device

# What a board counts of each. H100, H200 and B200 have seven decoders of each kind and one
# accelerator for optical flow (NVIDIA's architecture papers); the load is the same on all.
_DECODERS: Final = 7
COUNTED: Final[Mapping[GpmMetric, GpmQuantity]] = {
    GpmMetric.GRAPHICS: GpmQuantity.GRAPHICS,
    GpmMetric.SM: GpmQuantity.SM,
    GpmMetric.OCCUPANCY: GpmQuantity.OCCUPANCY,
    GpmMetric.INTEGER: GpmQuantity.INTEGER,
    GpmMetric.TENSOR: GpmQuantity.TENSOR,
    GpmMetric.DRAM: GpmQuantity.DRAM,
    GpmMetric.FP64: GpmQuantity.FP64,
    GpmMetric.FP32: GpmQuantity.FP32,
    GpmMetric.FP16: GpmQuantity.FP16,
    GpmMetric.PCIE_TRANSMIT: GpmQuantity.PCIE_TX,
    GpmMetric.PCIE_RECEIVE: GpmQuantity.PCIE_RX,
    **{GpmMetric(GpmMetric.NVDEC_0 + n): GpmQuantity.DECODER for n in range(_DECODERS)},
    **{GpmMetric(GpmMetric.NVJPG_0 + n): GpmQuantity.JPEG for n in range(_DECODERS)},
    GpmMetric.NVOFA_0: GpmQuantity.OFA,
    GpmMetric.NVLINK_RECEIVE: GpmQuantity.NVLINK_RX,
    GpmMetric.NVLINK_TRANSMIT: GpmQuantity.NVLINK_TX,
}


def in_nvml_units(metric: GpmMetric, amount: float) -> float:
    """Return an amount of a counted quantity, or its rate, as NVML states the metric."""
    return amount / MEBIBYTE if COUNTED[metric] in BYTES else 100 * amount


class SimulatedCounters:
    """The counters of one GPU, if it is there, and its MIG devices; see ``gpm.Counters``."""

    def __init__(self, gpu: SimulatedGpu | None, clock: Clock) -> None:
        self._gpu = gpu
        self._clock = clock

    def now_us(self) -> int:
        """Return the time by the clock of the samples."""
        return self._clock.epoch_us + round(self._clock.now() * MICROSECONDS)

    def take(self, device: Device, spare: GpmSample | None) -> Outcome[GpmSample]:  # noqa: ARG002 - nothing to save
        """Take a sample of the GPU or one of its MIG devices, or say why there is none."""
        if self._gpu is None:
            return Lost("gpu_not_found")
        there = {found.uuid: found for found in self._gpu.mig_devices}
        if device.is_mig and device.uuid not in there:
            return Failed("NOT_FOUND")
        try:
            return Value(self._gpu.gpm_sample(there.get(device.uuid)))
        except NotSupportedError:
            return Unsupported("device")

    def means(
        self, earlier: GpmSample, later: GpmSample, asked: tuple[GpmMetric, ...]
    ) -> Outcome[Gpm]:
        """Return the means between two samples, without what the board does not count."""
        means = later.mean_since(earlier)
        counted = ((metric, COUNTED.get(metric)) for metric in asked)
        values = {
            metric: in_nvml_units(metric, means[quantity])
            for metric, quantity in counted
            if quantity in means
        }
        return Value(Gpm(values)) if values else Unsupported("device")

    def free(self, sample: GpmSample) -> None:
        """Give up a sample, which holds nothing."""
