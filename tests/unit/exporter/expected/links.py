"""PCIe and NVLink: nothing breaks on this node, and bytes follow from what the workloads move."""

from simulator.links import counted_errors
from tests.unit.exporter.mixed import boards

KIBIBYTE = 2**10
# NVML counts whole kibibytes, over all links.
COUNTED_BYTES = KIBIBYTE
THROUGHPUT_BYTES_PER_SECOND = 1e6


def _generations(_, place):
    links = place.gpu.model.links
    states = ("current", "max", "gpu_max")
    return dict.fromkeys(states, links.pcie_generation)


def _widths(_, place):
    return dict.fromkeys(("current", "max"), place.gpu.model.links.pcie_width)


def _throughput(scene, place):
    begin = scene.now - 0.02
    quantities = {"receive": "pcie_rx", "transmit": "pcie_tx"}
    return {
        direction: scene.truth.gpm_mean(place.uuid, quantity, begin, scene.now)
        for direction, quantity in quantities.items()
    }


def _nvlinks(place):
    """Return how many NVLinks a GPU uses: in MIG mode none."""
    return 0 if place.gpu.mig_enabled else place.gpu.model.links.nvlinks


def _by_link(_, place):
    return {str(link): 1 for link in range(_nvlinks(place))}


def _moved(quantity):
    def total(scene, place):
        if not _nvlinks(place):
            return None
        return scene.now * scene.truth.gpm_mean(place.uuid, quantity, 0, scene.now)

    return boards(total, within=COUNTED_BYTES)


def _errors(_, place):
    return {
        (str(link), kind.value): 0
        for link in range(_nvlinks(place))
        for kind in counted_errors(place.gpu.model.links, link)
    }


FAMILIES = {
    "gpu_pcie_link_generation": boards(_generations, "state"),
    "gpu_pcie_link_width": boards(_widths, "state"),
    "gpu_pcie_replays_total": boards(0),
    "gpu_pcie_throughput_bytes_per_second": boards(
        _throughput, "direction", within=THROUGHPUT_BYTES_PER_SECOND
    ),
    "gpu_nvlink_links": boards(lambda _, place: _nvlinks(place) or None),
    "gpu_nvlink_active_links": boards(lambda _, place: _nvlinks(place) or None),
    "gpu_nvlink_up": boards(_by_link, "link"),
    "gpu_nvlink_transmitted_bytes_total": _moved("nvlink_tx"),
    "gpu_nvlink_received_bytes_total": _moved("nvlink_rx"),
    "gpu_nvlink_errors_total": boards(_errors, "link", "kind"),
}
