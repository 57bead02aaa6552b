"""The names of dcgm-exporter, each bound to the native metric that answers it, or to why none does.

Data only. For dashboards and alerts that were written for dcgm-exporter; nothing new is measured
for them, and a name whose meaning would differ is left out rather than answered nearly.

Source: the rows of dcgm-exporter's ``default-counters.csv`` and ``dcp-metrics-included.csv``,
with what its labels and rows look like under MIG; units from DCGM's header of fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from slicewatch.catalog.model import Kind, Label

MEBIBYTES: Final = 2**-20
MILLIJOULES: Final = 1e3
NANOSECONDS: Final = 1e9


class HostLabel(StrEnum):
    """How the label with the host's name is written: dcgm-exporter changed it after 4.8.2."""

    CAPITAL = "Hostname"
    LOWER_CASE = "hostname"


class OnMig(StrEnum):
    """What dcgm-exporter shows on the series of a MIG instance."""

    OWN = "own"
    OF_GPU = "of_gpu"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A name of dcgm-exporter that a native metric answers.

    Its value is ``factor`` times the native one; of a labelled family, times the sum of the
    series that ``where`` selects. Absent where all of those are.

    Attributes:
        kind: the type that dcgm-exporter gives it. Its counters do not end in ``_total``, so
            OpenMetrics can show them as ``unknown`` only.
        metric: name of the native metric.
        where: values of labels of the native family; labels that are left out are summed over.
        default: among the rows that dcgm-exporter collects unless told otherwise.
    """

    name: str
    kind: Kind
    help: str
    metric: str
    where: Mapping[Label, str]
    factor: float
    on_mig: OnMig
    default: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A name of dcgm-exporter that has no series here.

    Attributes:
        reason: why, in one sentence.
        instead: the native metric to use in its place; empty where there is none.
    """

    name: str
    reason: str
    instead: str = ""


Row = tuple[str, Kind, str, Mapping[Label, str], str]
"""Name, type, native metric, which of its series, help."""


def _table(
    *rows: Row, factor: float = 1, on_mig: OnMig = OnMig.OF_GPU, default: bool = True
) -> tuple[Alias, ...]:
    return tuple(
        Alias(
            name=name, kind=kind, help=text, metric=metric, where=where,
            factor=factor, on_mig=on_mig, default=default,
        )
        for name, kind, metric, where, text in rows
    )  # fmt: skip


ALL: Final[Mapping[Label, str]] = {}
GAUGE, COUNTER = Kind.GAUGE, Kind.COUNTER

BOARD: Final = _table(
    ("DCGM_FI_DEV_SM_CLOCK", GAUGE, "gpu_sm_clock_mhz", ALL,
     "Clock of the streaming multiprocessors in MHz."),
    ("DCGM_FI_DEV_MEM_CLOCK", GAUGE, "gpu_mem_clock_mhz", ALL,
     "Clock of the device memory in MHz."),
    ("DCGM_FI_DEV_MEMORY_TEMP", GAUGE, "gpu_memory_temperature_celsius", ALL,
     "Temperature of the device memory in degrees Celsius."),
    ("DCGM_FI_DEV_GPU_TEMP", GAUGE, "gpu_temperature_celsius", ALL,
     "Temperature of the GPU in degrees Celsius."),
    ("DCGM_FI_DEV_POWER_USAGE", GAUGE, "gpu_power_usage_watts", ALL,
     "Power that the board draws, in watts."),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", COUNTER, "gpu_pcie_replays_total", ALL,
     "PCIe packets that had to be sent again."),
)  # fmt: skip
ENERGY: Final = _table(
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", COUNTER, "gpu_energy_joules_total", ALL,
     "Energy that the board used since the driver was loaded, in mJ."),
    factor=MILLIJOULES,
)  # fmt: skip
UTILIZATION: Final = _table(
    ("DCGM_FI_DEV_GPU_UTIL", GAUGE, "gpu_utilization", ALL,
     "Part of the time in which any kernel ran, in percent."),
    ("DCGM_FI_DEV_MEM_COPY_UTIL", GAUGE, "gpu_memory_interface_utilization", ALL,
     "Part of the time in which device memory was read or written, in percent."),
    ("DCGM_FI_DEV_ENC_UTIL", GAUGE, "gpu_encoder_utilization", ALL,
     "Part of the time in which the encoders worked, in percent."),
    ("DCGM_FI_DEV_DEC_UTIL", GAUGE, "gpu_decoder_utilization", ALL,
     "Part of the time in which the decoders worked, in percent."),
    on_mig=OnMig.NOTHING,
)  # fmt: skip
MEMORY: Final = _table(
    ("DCGM_FI_DEV_FB_FREE", GAUGE, "gpu_memory_free_bytes", ALL, "Free device memory in MiB."),
    ("DCGM_FI_DEV_FB_USED", GAUGE, "gpu_memory_used_bytes", ALL,
     "Allocated device memory in MiB, without what the driver reserves."),
    ("DCGM_FI_DEV_FB_RESERVED", GAUGE, "gpu_memory_reserved_bytes", ALL,
     "Device memory that the driver reserves, in MiB."),
    factor=MEBIBYTES,
    on_mig=OnMig.OWN,
) + _table(
    ("DCGM_FI_DEV_FB_TOTAL", GAUGE, "gpu_memory_total_bytes", ALL, "Device memory in MiB."),
    factor=MEBIBYTES,
    on_mig=OnMig.OWN,
    default=False,
)  # fmt: skip
MEMORY_ERRORS: Final = _table(
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", COUNTER, "gpu_remapped_rows_total",
     {Label.CAUSE: "uncorrectable"}, "Memory rows remapped after uncorrectable errors."),
    ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", COUNTER, "gpu_remapped_rows_total",
     {Label.CAUSE: "correctable"}, "Memory rows remapped after correctable errors."),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", GAUGE, "gpu_row_remap_failure", ALL,
     "1 if a memory row could not be remapped."),
    ("DCGM_FI_DEV_RETIRED_SBE", COUNTER, "gpu_retired_pages",
     {Label.CAUSE: "corrected"}, "Memory pages retired after many single-bit errors."),
    ("DCGM_FI_DEV_RETIRED_DBE", COUNTER, "gpu_retired_pages",
     {Label.CAUSE: "uncorrected"}, "Memory pages retired after a double-bit error."),
) + _table(
    ("DCGM_FI_DEV_ROW_REMAP_PENDING", GAUGE, "gpu_row_remap_pending", ALL,
     "1 if a row will be remapped at the next reset of the GPU."),
    ("DCGM_FI_DEV_RETIRED_PENDING", COUNTER, "gpu_retired_pages_pending", ALL,
     "1 if pages will be retired at the next reset of the GPU."),
    ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", COUNTER, "gpu_ecc_errors_volatile_total",
     {Label.KIND: "corrected"}, "Corrected memory errors since the driver was loaded."),
    ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", COUNTER, "gpu_ecc_errors_volatile_total",
     {Label.KIND: "uncorrected"}, "Uncorrected memory errors since the driver was loaded."),
    ("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", COUNTER, "gpu_ecc_errors_aggregate_total",
     {Label.KIND: "corrected"}, "Corrected memory errors in the life of the board."),
    ("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", COUNTER, "gpu_ecc_errors_aggregate_total",
     {Label.KIND: "uncorrected"}, "Uncorrected memory errors in the life of the board."),
    default=False,
)  # fmt: skip
CLOCK_EVENTS: Final = _table(
    ("DCGM_FI_DEV_POWER_VIOLATION", COUNTER, "gpu_clock_event_seconds_total",
     {Label.REASON: "sw_power_cap"}, "Time for which the power limit held clocks down, in ns."),
    ("DCGM_FI_DEV_THERMAL_VIOLATION", COUNTER, "gpu_clock_event_seconds_total",
     {Label.REASON: "sw_thermal_slowdown"}, "Time for which heat held clocks down, in ns."),
    ("DCGM_FI_DEV_SYNC_BOOST_VIOLATION", COUNTER, "gpu_clock_event_seconds_total",
     {Label.REASON: "sync_boost"}, "Time for which a boost group held clocks down, in ns."),
    ("DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", COUNTER, "gpu_clock_event_seconds_total",
     {Label.REASON: "board_limit"}, "Time for which a board limit held clocks down, in ns."),
    ("DCGM_FI_DEV_RELIABILITY_VIOLATION", COUNTER, "gpu_clock_event_seconds_total",
     {Label.REASON: "reliability"}, "Time for which low voltage held clocks down, in ns."),
    factor=NANOSECONDS,
    default=False,
)  # fmt: skip
NVLINK: Final = _table(
    ("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", COUNTER, "gpu_nvlink_errors_total",
     {Label.KIND: "crc_flit"}, "Checksum errors in the flow control of NVLink, over all links."),
    ("DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", COUNTER, "gpu_nvlink_errors_total",
     {Label.KIND: "crc_data"}, "Checksum errors in the data of NVLink, over all links."),
    ("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", COUNTER, "gpu_nvlink_errors_total",
     {Label.KIND: "replay"}, "NVLink transmissions that were repeated, over all links."),
    ("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", COUNTER, "gpu_nvlink_errors_total",
     {Label.KIND: "recovery"}, "Links that had to be trained again, over all links."),
    on_mig=OnMig.NOTHING,
    default=False,
)  # fmt: skip
PROFILING: Final = _table(
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", GAUGE, "gpu_gpm_graphics_ratio", ALL,
     "Part of the time in which the graphics or compute engine had work, 0 to 1."),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", GAUGE, "gpu_gpm_tensor_ratio", ALL,
     "Part of the cycles in which any tensor pipe was active, 0 to 1."),
    ("DCGM_FI_PROF_DRAM_ACTIVE", GAUGE, "gpu_gpm_dram_ratio", ALL,
     "Part of the cycles in which device memory sent or received, 0 to 1."),
    ("DCGM_FI_PROF_PCIE_TX_BYTES", GAUGE, "gpu_gpm_pcie_bytes_per_second",
     {Label.DIRECTION: "transmit"}, "Bytes sent over PCIe per second."),
    ("DCGM_FI_PROF_PCIE_RX_BYTES", GAUGE, "gpu_gpm_pcie_bytes_per_second",
     {Label.DIRECTION: "receive"}, "Bytes received over PCIe per second."),
    on_mig=OnMig.OWN,
) + _table(
    ("DCGM_FI_PROF_SM_ACTIVE", GAUGE, "gpu_gpm_sm_ratio", ALL,
     "Part of the cycles in which a multiprocessor had a warp, mean over all, 0 to 1."),
    ("DCGM_FI_PROF_SM_OCCUPANCY", GAUGE, "gpu_gpm_sm_occupancy_ratio", ALL,
     "Warps on the multiprocessors, of as many as there could be, 0 to 1."),
    ("DCGM_FI_PROF_PIPE_FP64_ACTIVE", GAUGE, "gpu_gpm_pipe_ratio", {Label.KIND: "fp64"},
     "Part of the cycles in which the FP64 pipe was active, 0 to 1."),
    ("DCGM_FI_PROF_PIPE_FP32_ACTIVE", GAUGE, "gpu_gpm_pipe_ratio", {Label.KIND: "fp32"},
     "Part of the cycles in which the FP32 pipe was active, 0 to 1."),
    ("DCGM_FI_PROF_PIPE_FP16_ACTIVE", GAUGE, "gpu_gpm_pipe_ratio", {Label.KIND: "fp16"},
     "Part of the cycles in which the FP16 pipe was active, without tensor cores, 0 to 1."),
    ("DCGM_FI_PROF_NVLINK_TX_BYTES", GAUGE, "gpu_gpm_nvlink_bytes_per_second",
     {Label.DIRECTION: "transmit"}, "Bytes sent over all NVLinks per second."),
    ("DCGM_FI_PROF_NVLINK_RX_BYTES", GAUGE, "gpu_gpm_nvlink_bytes_per_second",
     {Label.DIRECTION: "receive"}, "Bytes received over all NVLinks per second."),
    on_mig=OnMig.OWN,
    default=False,
)  # fmt: skip

ALIASES: Final = (
    BOARD + ENERGY + UTILIZATION + MEMORY + MEMORY_ERRORS + CLOCK_EVENTS + NVLINK + PROFILING
)

_RATE = "A rate under the type of a counter, and 20 ms of reading time per GPU"
_UNIT = "DCGM does not say in which unit it counts"
_WINDOW = "Counts what is in a sliding window, so that it goes down"
_LABEL = "A label row, off by default"

UNANSWERED: Final = tuple(
    Unanswered(name=name, reason=reason, instead=instead)
    for name, reason, instead in (
        ("DCGM_FI_DEV_XID_ERRORS", "Shows only the last Xid, and goes on after its end",
         "gpu_xid_events_total"),
        ("DCGM_EXP_XID_ERRORS_COUNT", _WINDOW, "gpu_xid_events_total"),
        ("DCGM_EXP_CLOCK_EVENTS_COUNT", _WINDOW, "gpu_clock_event_seconds_total"),
        ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "A bit mask, of which no sum or mean makes sense",
         "gpu_clock_event_active"),
        ("DCGM_FI_DEV_LOW_UTIL_VIOLATION", "NVML accounts no clock event of that name",
         "gpu_clock_event_seconds_total"),
        ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", _UNIT, "gpu_nvlink_transmitted_bytes_total"),
        ("DCGM_FI_DEV_NVLINK_BANDWIDTH_L0", _UNIT, "gpu_nvlink_transmitted_bytes_total"),
        ("DCGM_FI_DEV_PCIE_TX_THROUGHPUT", _RATE, "gpu_pcie_throughput_bytes_per_second"),
        ("DCGM_FI_DEV_PCIE_RX_THROUGHPUT", _RATE, "gpu_pcie_throughput_bytes_per_second"),
        ("DCGM_FI_DEV_VGPU_LICENSE_STATUS", "Known only inside a virtual machine with vGPU", ""),
        ("DCGM_EXP_GPU_HEALTH_STATUS", "The verdicts of DCGM's own watches", ""),
        ("DCGM_EXP_P2P_STATUS", "A matrix of pairs of GPUs", ""),
        ("DCGM_FI_DEV_SERIAL", _LABEL, "gpu_info"),
        ("DCGM_FI_DEV_VBIOS_VERSION", _LABEL, "gpu_info"),
        ("DCGM_FI_DEV_BRAND", _LABEL, ""),
        ("DCGM_FI_NVML_VERSION", _LABEL, ""),
        ("DCGM_FI_DEV_OEM_INFOROM_VER", _LABEL, ""),
        ("DCGM_FI_DEV_ECC_INFOROM_VER", _LABEL, ""),
        ("DCGM_FI_DEV_POWER_INFOROM_VER", _LABEL, ""),
        ("DCGM_FI_DEV_INFOROM_IMAGE_VER", _LABEL, ""),
    )
)  # fmt: skip
