"""How busy devices were: exact integrals of the scenario's loads.

A sample is a whole percent of a sixth of a second and is read up to one period late. Counters of
GPM are exact, but read in pairs: what is before the first pair is not counted.
"""

from simulator.scenario import SAMPLE_PERIOD_SECONDS
from tests.unit.exporter.mixed import WINDOW, boards, each

HALF_A_PERCENT = 0.005
LAG = 2 * SAMPLE_PERIOD_SECONDS / WINDOW
# The last period of each second stands for the whole second, in loads that rise by 2 % a second.
POINT_PERCENT = 3


def _is_measured(place):
    """Tell whether NVML's samples or GPM tell the activity of a place."""
    return place.gpu.model.gpm or not place.gpu.mig_enabled


def _utilization(scene, place):
    if not _is_measured(place):
        return None
    return 100 * scene.truth.gpm_mean(place.uuid, "graphics", scene.now - WINDOW, scene.now)


def _busy_seconds(scene, place):
    if not _is_measured(place):
        return None
    seconds = scene.now - scene.began
    return seconds * scene.truth.gpm_mean(place.uuid, "graphics", scene.began, scene.now)


def _engine(quantity):
    def percent(scene, place):
        if place.gpu.mig_enabled:
            return None
        return 100 * scene.truth.gpm_mean(place.uuid, quantity, scene.now - WINDOW, scene.now)

    return boards(percent, within=POINT_PERCENT)


def _gpm(quantity):
    def ratio(scene, place):
        if not place.gpu.model.gpm:
            return None
        return scene.truth.gpm_mean(place.uuid, quantity, scene.now - WINDOW, scene.now)

    return each(ratio, within=0.01)


def _last_second(scene, place, quantity):
    return scene.truth.gpm_mean(place.uuid, quantity, scene.now - 1, scene.now)


def _details(quantities, *, under_mig, label, within):
    """Return the expectation of what GPM says of the last second, by label."""

    def means(scene, place):
        if not place.gpu.model.gpm or (place.gpu.mig_enabled and not under_mig):
            return None
        return {
            name: _last_second(scene, place, quantity) for name, quantity in quantities.items()
        }

    return each(means, label, within=within)


PIPES = {"int": "integer", "fp64": "fp64", "fp32": "fp32", "fp16": "fp16"}
# Nothing on the H100s of this node decodes or encodes.
ENGINES = {
    **{f"nvdec{n}": "decoder" for n in range(7)},
    **{f"nvjpg{n}": "jpeg" for n in range(7)},
    "nvofa0": "ofa",
}
FAMILIES = {
    "gpu_utilization": each(_utilization, within=100 * (LAG + HALF_A_PERCENT)),
    "gpu_busy_seconds_total": each(
        _busy_seconds,
        within=lambda scene, _: (
            1 + SAMPLE_PERIOD_SECONDS + HALF_A_PERCENT * (scene.now - scene.began)
        ),
    ),
    "gpu_memory_interface_utilization": _engine("dram"),
    "gpu_encoder_utilization": _engine("encoder"),
    "gpu_decoder_utilization": _engine("decoder"),
    "gpu_jpeg_utilization": _engine("jpeg"),
    "gpu_ofa_utilization": _engine("ofa"),
    "gpu_gpm_graphics_ratio": _gpm("graphics"),
    "gpu_gpm_sm_ratio": _gpm("sm"),
    "gpu_gpm_sm_occupancy_ratio": _gpm("occupancy"),
    "gpu_gpm_tensor_ratio": _gpm("tensor"),
    "gpu_gpm_dram_ratio": _gpm("dram"),
    "gpu_gpm_pipe_ratio": _details(PIPES, under_mig=True, label="kind", within=0.001),
    "gpu_gpm_engine_ratio": _details(ENGINES, under_mig=False, label="engine", within=0.001),
    "gpu_gpm_pcie_bytes_per_second": _details(
        {"receive": "pcie_rx", "transmit": "pcie_tx"},
        under_mig=True, label="direction", within=2e6,
    ),
    "gpu_gpm_nvlink_bytes_per_second": _details(
        {"receive": "nvlink_rx", "transmit": "nvlink_tx"},
        under_mig=False, label="direction", within=2e6,
    ),
}  # fmt: skip
