"""The values of the devices: columns over the rows of a layout, one snapshot per tick."""

from collections.abc import Collection, Mapping, Sequence, Sized
from typing import Final

import msgspec

from slicewatch.wire.layout import Layout

WIRE_VERSION = 1
# About 32 years. The oldest real age is an exporter's uptime.
LONGEST_SECONDS: Final = 1e9
# Several times the largest node. Readers walk over the rows while everybody waits, and whoever
# sends a frame decides how many there are.
MOST_DEVICES: Final = 512
MOST_TENANTS: Final = 4096

Column = list[float | None]


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tick, columnar. Absent is None; there is no other marker.

    Attributes:
        layout: number of the layout whose devices and tenants the rows are.
        sequence: number of the tick in its run.
        clock: seconds on the sender's monotonic clock when the frame was made; comparable only
            with other frames of the run.
        up: per device, whether it answered.
        ages: per device, seconds since its values were read, on the sender's monotonic clock;
            None before the first.
        values: per metric, one published value per device.
        means: per windowed metric, each device's mean over the window.
        tenant_values: per metric, one value per tenant.
        shares: where the tenants' shares of a device come from; empty while they are unknown.
        tenants_age: seconds since the kubelet last listed allocations; None if it never did.
    """

    run: str
    layout: int
    sequence: int
    clock: float | None = None
    up: list[bool]
    ages: Column
    values: dict[str, Column]
    means: dict[str, Column] = {}
    tenant_values: dict[str, Column] = {}
    shares: str = ""
    tenants_age: float | None = None


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the stream: a snapshot, with its layout when the receiver lacks it.

    The version is always sent: were it left out as a default, a reader would assume its own.
    """

    version: int = WIRE_VERSION
    layout: Layout | None = None
    snapshot: Snapshot


class WireError(ValueError):
    """A line that is not a valid frame of this version; says why."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Frame)


# Whatever is sent by ``encode`` without a layout begins so.
_VALUES: Final = b'{"version":%d,"layout":null,"snapshot":{' % WIRE_VERSION


def only_values(line: bytes) -> bool:
    """Tell whether a line has nothing that a later one of its stream does not replace."""
    return line.startswith(_VALUES)


class _Version(msgspec.Struct):
    """The part that frames of all versions share."""

    version: int


_version_decoder = msgspec.json.Decoder(_Version)


def narrowed(snapshot: Snapshot, families: Collection[str]) -> Snapshot:
    """Return a snapshot with the columns of some families only, all their series included.

    Where a mean is known the latest value is left out: who reads the one has no use for the other.
    """
    return msgspec.structs.replace(
        snapshot,
        values=_of(families, snapshot.values, without=snapshot.means),
        means=_of(families, snapshot.means),
        tenant_values=_of(families, snapshot.tenant_values),
    )


def _of(
    families: Collection[str], columns: Mapping[str, Column], *, without: Collection[str] = ()
) -> dict[str, Column]:
    return {
        name: column
        for name, column in columns.items()
        if name.partition("{")[0] in families and name not in without
    }


def encode(frame: Frame) -> bytes:
    """Return the frame as one JSON line, newline included."""
    return _encoder.encode(frame) + b"\n"


def decode(line: bytes) -> Frame:
    """Return the frame of a line.

    Raises:
        WireError: it is not JSON, not a frame, of another version, larger than any node, or does
            not pass ``check_shape`` with its own layout.
    """
    try:
        frame = _decoder.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise WireError(_foreign(line) or f"not a snapshot frame: {error}") from error
    if frame.version != WIRE_VERSION:
        raise WireError(_foreign(line))
    if frame.layout is not None:
        _check_size(frame.layout)
        check_shape(frame.layout, frame.snapshot)
    return frame


def _foreign(line: bytes) -> str:
    """Return that the line is of another version, which may lack any other field; else nothing."""
    try:
        version = _version_decoder.decode(line).version
    except (msgspec.DecodeError, RecursionError):
        return ""
    if version == WIRE_VERSION:
        return ""
    return f"snapshot frame of version {version}; this side reads version {WIRE_VERSION}"


def _check_size(layout: Layout) -> None:
    for name, rows, most in (
        ("devices", layout.devices, MOST_DEVICES),
        ("tenants", layout.tenants, MOST_TENANTS),
    ):
        if len(rows) > most:
            raise WireError(f"layout of {len(rows)} {name}; the most are {most}")


def check_shape(layout: Layout, snapshot: Snapshot) -> None:
    """Check the columns of a snapshot against the rows of its layout, and every duration.

    Raises:
        WireError: the numbers differ, a column does not have one value per row, or an age or the
            window is negative or longer than any process lives.
    """
    if (layout.run, layout.number) != (snapshot.run, snapshot.layout):
        raise WireError(f"snapshot of layout {snapshot.layout} came with layout {layout.number}")
    rows = len(layout.devices)
    by_device: tuple[Mapping[str, Sized], ...] = (
        {"up": snapshot.up, "ages": snapshot.ages},
        snapshot.values,
        snapshot.means,
        layout.support,
    )
    for columns in by_device:
        _check_rows(columns, rows, "devices")
    _check_rows(snapshot.tenant_values, len(layout.tenants), "tenants")
    _check_seconds("ages", snapshot.ages)
    _check_seconds("tenants_age", [snapshot.tenants_age])
    _check_seconds("window_seconds", [layout.window_seconds])


def _check_rows(columns: Mapping[str, Sized], rows: int, of: str) -> None:
    for name, column in columns.items():
        if len(column) != rows:
            raise WireError(f"column {name} has {len(column)} rows for {rows} {of}")


def _check_seconds(name: str, durations: Sequence[float | None]) -> None:
    for seconds in durations:
        if seconds is not None and not 0 <= seconds <= LONGEST_SECONDS:
            raise WireError(f"{name}: {seconds:g} s is not between 0 and {LONGEST_SECONDS:g} s")
