"""The NVLinks, of which a board in MIG mode has none."""

from ctypes import c_uint32, c_uint64
from typing import Final

from simulator.gpu import SimulatedGpu
from slicewatch.catalog.readings.nvlink import NvlinkError, NvlinkTraffic
from slicewatch.hardware.links import BoardLinks
from testbed.driver.answers import Answers, nvml

ALL_LINKS: Final = 0xFFFFFFFF
# Counted before NVLink 5 and since, so in another field; all other kinds have one for all.
RECOVERIES: Final = (
    nvml.NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY,
    nvml.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS,
)
FIELDS: Final = {
    NvlinkError.REPLAY: nvml.NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY,
    NvlinkError.CRC: nvml.NVML_FI_DEV_NVLINK_ERROR_DL_CRC,
    NvlinkError.RECOVERY_FAILED: nvml.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS,
    NvlinkError.MALFORMED_PACKET: nvml.NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS,
    NvlinkError.BUFFER_OVERRUN: nvml.NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS,
    NvlinkError.RECEIVE: nvml.NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS,
    NvlinkError.TRANSMIT_DISCARD: nvml.NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS,
    NvlinkError.INTEGRITY: nvml.NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS,
    NvlinkError.EFFECTIVE: nvml.NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS,
}


def answers(gpu: SimulatedGpu, into: Answers) -> None:
    """Put how many links there are, which are up, what they carry and what is wrong with them."""
    if gpu.mig_enabled:
        return
    into.put_field(nvml.NVML_FI_DEV_NVLINK_LINK_COUNT, c_uint32(gpu.model.links.nvlinks))
    links, traffic, errors = (
        gpu.links.nvlinks(),
        gpu.links.nvlink_traffic(),
        gpu.links.nvlink_errors(),
    )
    if links is None or traffic is None or errors is None:
        return
    for link, state in enumerate(links.states):
        into.put("nvmlDeviceGetNvLinkState", state or 0, key=(link, 0))
    _traffic(traffic, into)
    for link, counts in enumerate(errors.links):
        for kind, count in zip(NvlinkError, counts, strict=True):
            if count is not None:
                into.put_field(_field(gpu.model.links, kind, link), c_uint64(count), scope=link)


def _traffic(traffic: NvlinkTraffic, into: Answers) -> None:
    totals = (
        (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, traffic.data_transmitted_kibibytes),
        (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, traffic.data_received_kibibytes),
    )
    for field, total in totals:
        if total is not None:
            into.put_field(field, c_uint64(total), scope=ALL_LINKS)
    by_link = (
        (nvml.NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, traffic.link_transmitted_bytes),
        (nvml.NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES, traffic.link_received_bytes),
    )
    for field, counts in by_link:
        for link, count in enumerate(counts):
            if count is not None:
                into.put_field(field, c_uint64(count), scope=link)


def _field(links: BoardLinks, kind: NvlinkError, link: int) -> int:
    if kind is NvlinkError.RECOVERY:
        return int(RECOVERIES[links.nvlink_generation >= 5])
    # Flits and data have a field for each link.
    name = f"NVML_FI_DEV_NVLINK_{kind.upper()}_ERROR_COUNT_L{link}"
    return int(FIELDS[kind] if kind in FIELDS else getattr(nvml, name))
