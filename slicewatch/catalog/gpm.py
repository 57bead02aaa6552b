"""What parts of a GPU or MIG instance were busy: GPM, on Hopper and newer."""

from collections.abc import Callable, Mapping
from typing import Final

from slicewatch.catalog.model import (
    BYTES,
    RATIO,
    Label,
    Metric,
    Probe,
    Publish,
    Scope,
    Unit,
)
from slicewatch.catalog.readings.gpm import Gpm, GpmMetric

DEVICES: Final = frozenset({Scope.GPU, Scope.MIG})

GPM: Final = Probe(name="gpm", reading=Gpm, scopes=DEVICES)
# The counters are the same; these are many series.
GPM_DETAILS: Final = Probe(name="gpm_details", reading=Gpm, scopes=DEVICES, optional=True)

PIPES: Final[Mapping[str, GpmMetric]] = {
    "int": GpmMetric.INTEGER,
    "dfma": GpmMetric.DFMA,
    "hmma": GpmMetric.HMMA,
    "dmma": GpmMetric.DMMA,
    "imma": GpmMetric.IMMA,
    "fp64": GpmMetric.FP64,
    "fp32": GpmMetric.FP32,
    "fp16": GpmMetric.FP16,
}
ENGINES: Final[Mapping[str, GpmMetric]] = {
    metric.name.lower().replace("_", ""): metric
    for metric in GpmMetric
    if metric.name.startswith(("NVDEC_", "NVJPG_", "NVOFA_"))
}
PCIE: Final[Mapping[str, GpmMetric]] = {
    "receive": GpmMetric.PCIE_RECEIVE,
    "transmit": GpmMetric.PCIE_TRANSMIT,
}
NVLINK: Final[Mapping[str, GpmMetric]] = {
    "receive": GpmMetric.NVLINK_RECEIVE,
    "transmit": GpmMetric.NVLINK_TRANSMIT,
}

# What each probe asks the driver for.
ASKED: Final[Mapping[str, tuple[GpmMetric, ...]]] = {
    GPM.name: (
        GpmMetric.GRAPHICS,
        GpmMetric.SM,
        GpmMetric.OCCUPANCY,
        GpmMetric.TENSOR,
        GpmMetric.DRAM,
    ),
    GPM_DETAILS.name: (
        *PIPES.values(),
        *ENGINES.values(),
        *PCIE.values(),
        *NVLINK.values(),
    ),
}


def _ratio(name: str, text: str, metric: GpmMetric) -> Metric[Gpm]:
    return GPM.gauge(
        name,
        help=text,
        unit=Unit.RATIO,
        limits=RATIO,
        value=lambda r: r.ratio(metric),
        publish=Publish.WINDOW_MEAN,
    )


def _ratios(of: Mapping[str, GpmMetric]) -> Callable[[Gpm], Mapping[str, float | None]]:
    return lambda r: {name: r.ratio(metric) for name, metric in of.items()}


def _rates(of: Mapping[str, GpmMetric]) -> Callable[[Gpm], Mapping[str, float | None]]:
    return lambda r: {name: r.bytes_per_second(metric) for name, metric in of.items()}


METRICS: Final = (
    _ratio(
        "gpu_gpm_graphics_ratio",
        "Part of the window in which the graphics or compute engine had work.",
        GpmMetric.GRAPHICS,
    ),
    _ratio(
        "gpu_gpm_sm_ratio",
        "Part of the SMs' time in the window in which a warp was assigned to them.",
        GpmMetric.SM,
    ),
    _ratio(
        "gpu_gpm_sm_occupancy_ratio",
        "Warps resident on the SMs, of as many as could be, as a mean over the window.",
        GpmMetric.OCCUPANCY,
    ),
    _ratio(
        "gpu_gpm_tensor_ratio",
        "Part of the window in which tensor cores of any kind worked, as a mean over the SMs.",
        GpmMetric.TENSOR,
    ),
    _ratio(
        "gpu_gpm_dram_ratio",
        "Bandwidth of the device memory that was used in the window, of its maximum.",
        GpmMetric.DRAM,
    ),
    GPM_DETAILS.gauge(
        "gpu_gpm_pipe_ratio",
        help="Part of the last second or so in which a kind of pipe worked, as a mean over the SMs.",
        unit=Unit.RATIO,
        limits=RATIO,
        labels=(Label.KIND,),
        value=_ratios(PIPES),
    ),
    GPM_DETAILS.gauge(
        "gpu_gpm_engine_ratio",
        help="Part of the last second or so in which an engine for video or images worked.",
        unit=Unit.RATIO,
        limits=RATIO,
        labels=(Label.ENGINE,),
        value=_ratios(ENGINES),
    ),
    GPM_DETAILS.gauge(
        "gpu_gpm_pcie_bytes_per_second",
        help="PCIe traffic to (receive) and from (transmit) the device in the last second or so.",
        unit=Unit.BYTES_PER_SECOND,
        limits=BYTES,
        labels=(Label.DIRECTION,),
        value=_rates(PCIE),
    ),
    GPM_DETAILS.gauge(
        "gpu_gpm_nvlink_bytes_per_second",
        help="NVLink traffic to and from the device in the last second or so, over all links.",
        unit=Unit.BYTES_PER_SECOND,
        limits=BYTES,
        labels=(Label.DIRECTION,),
        value=_rates(NVLINK),
    ),
)
