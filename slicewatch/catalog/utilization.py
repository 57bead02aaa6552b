"""How busy a GPU is."""

from typing import Final

from slicewatch.catalog.model import (
    PERCENT,
    Attribution,
    Combine,
    Metric,
    Probe,
    Publish,
    Scope,
    Serve,
    Stability,
    Unit,
)
from slicewatch.catalog.readings.utilization import EngineRate, Utilization

# Under MIG the driver has no samples: there it comes from GPM, where the GPU has that.
UTILIZATION: Final = Probe(
    name="utilization",
    reading=Utilization,
    scopes=frozenset({Scope.GPU, Scope.MIG}),
    consistent=lambda r: r.consistent(),
)


def _engine(name: str, *, optional: bool = False) -> Probe[EngineRate]:
    # A probe for each, so that each that a board lacks has its own reason.
    return Probe(name=name, reading=EngineRate, scopes=frozenset({Scope.GPU}), optional=optional)


MEMORY_INTERFACE: Final = _engine("memory_interface")
ENCODER: Final = _engine("encoder")
DECODER: Final = _engine("decoder")
JPEG: Final = _engine("jpeg", optional=True)
OFA: Final = _engine("ofa", optional=True)


def _rate(probe: Probe[EngineRate], text: str) -> Metric[EngineRate]:
    return probe.gauge(
        f"gpu_{probe.name}_utilization",
        help=text,
        unit=Unit.PERCENT,
        limits=PERCENT,
        value=lambda r: r.percent,
        publish=Publish.WINDOW_MEAN,
    )


METRICS: Final = (
    UTILIZATION.gauge(
        "gpu_utilization",
        help="Percentage of the window in which at least one kernel ran on the device.",
        unit=Unit.PERCENT,
        limits=PERCENT,
        value=lambda r: r.percent(),
        weight=lambda r: r.covered_seconds() or None,
        publish=Publish.WINDOW_MEAN,
        stability=Stability.STABLE,
        serve=Serve(
            combine=Combine.MEAN,
            attribution=Attribution.WORKLOAD_SHARE,
            device_name="gpu_device_utilization",
        ),
    ),
    UTILIZATION.counter(
        "gpu_busy_seconds_total",
        help="Time during which at least one kernel ran on the device, as NVML's samples add up.",
        unit=Unit.SECONDS,
        value=lambda r: r.busy_seconds(),
        publish=Publish.ACCUMULATED,
    ),
    _rate(
        MEMORY_INTERFACE,
        "Percentage of the window in which device memory was read or written, not how full it is.",
    ),
    _rate(ENCODER, "Percentage of the window in which the video encoders (NVENC) worked."),
    _rate(DECODER, "Percentage of the window in which the video decoders (NVDEC) worked."),
    _rate(JPEG, "Percentage of the window in which the JPEG decoders (NVJPG) worked."),
    _rate(OFA, "Percentage of the window in which the optical flow accelerator (NVOFA) worked."),
)
