"""The NVLinks of a board, link by link."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pynvml

from exporter.nvml.protocol import Outcome, Unsupported, Value
from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.fields import Field
from exporter.nvml.real.reads.parts import parts
from exporter.nvml.real.reads.read import Read, Reads
from slicewatch.catalog.readings.nvlink import (
    NvlinkError,
    NvlinkErrors,
    Nvlinks,
    NvlinkTraffic,
)

# What NVML numbers; a driver in trouble may claim billions.
MOST_LINKS: Final = 36
ALL_LINKS: Final = 0xFFFFFFFF

# The fields of every link by what they count; the second one of recoveries is that of NVLink 5.
_ERRORS: Final = (
    (NvlinkError.REPLAY, pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY),
    (NvlinkError.CRC, pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_CRC),
    (NvlinkError.RECOVERY, pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY),
    (NvlinkError.RECOVERY, pynvml.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS),
    (NvlinkError.RECOVERY_FAILED, pynvml.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS),
    (NvlinkError.MALFORMED_PACKET, pynvml.NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS),
    (NvlinkError.BUFFER_OVERRUN, pynvml.NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS),
    (NvlinkError.RECEIVE, pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS),
    (NvlinkError.TRANSMIT_DISCARD, pynvml.NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS),
    (NvlinkError.INTEGRITY, pynvml.NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS),
    (NvlinkError.EFFECTIVE, pynvml.NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS),
)
# Of these only the first twelve links have a field, each one of its own.
_LINKS_WITH_CRC_FIELDS: Final = 12
_CRC_FIELDS: Final = tuple(
    (
        (
            NvlinkError.CRC_FLIT,
            getattr(pynvml, f"NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L{link}"),
        ),
        (
            NvlinkError.CRC_DATA,
            getattr(pynvml, f"NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L{link}"),
        ),
    )
    for link in range(_LINKS_WITH_CRC_FIELDS)
)


def _of_links(read: Callable[[Calls, Handle, range], Outcome[Any]]) -> Read:
    """Return a read of the links that the board has; one without any does not support it."""

    def read_links(calls: Calls, handle: Handle) -> Outcome[Any]:
        (count,) = calls.fields(handle, (pynvml.NVML_FI_DEV_NVLINK_LINK_COUNT, 0))
        if not count:
            return Unsupported("device")
        return read(calls, handle, range(min(count, MOST_LINKS)))

    return read_links


def _states(calls: Calls, handle: Handle, links: range) -> Outcome[Nvlinks]:
    ask = partial(calls.number, "nvmlDeviceGetNvLinkState", handle)
    return Value(Nvlinks(tuple(parts(*(partial(ask, link) for link in links)))))


def _traffic(calls: Calls, handle: Handle, links: range) -> Outcome[NvlinkTraffic]:
    fields: list[Field] = [
        (pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ALL_LINKS),
        (pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ALL_LINKS),
    ]
    fields += [(pynvml.NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, link) for link in links]
    fields += [(pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES, link) for link in links]
    transmitted, received, *by_link = calls.fields(handle, *fields)
    sent, came = tuple(by_link[: len(links)]), tuple(by_link[len(links) :])
    return Value(NvlinkTraffic(transmitted, received, sent, came))


def _errors(calls: Calls, handle: Handle, links: range) -> Outcome[NvlinkErrors]:
    asked = [(link, kind, field) for link in links for kind, field in _error_fields(link)]
    answered = calls.fields(handle, *((field, link) for link, _, field in asked))
    found: dict[tuple[int, NvlinkError], int] = {}
    for (link, kind, _), count in zip(asked, answered, strict=True):
        if count is not None:
            found.setdefault((link, kind), count)
    counts = [tuple(found.get((link, kind)) for kind in NvlinkError) for link in links]
    return Value(NvlinkErrors(tuple(counts)))


def _error_fields(link: int) -> tuple[tuple[NvlinkError, int], ...]:
    return _ERRORS + (_CRC_FIELDS[link] if link < _LINKS_WITH_CRC_FIELDS else ())


BOARD: Final[Reads] = {
    "nvlink": _of_links(_states),
    "nvlink_traffic": _of_links(_traffic),
    "nvlink_errors": _of_links(_errors),
}
