"""Power, energy and temperature of a board."""

import msgspec


class Power(msgspec.Struct, frozen=True, gc=False):
    """Power draw of the whole board."""

    draw_milliwatts: int


class PowerDraw(msgspec.Struct, frozen=True, gc=False):
    """Power draw by how it is measured: now, and as the mean of the last second.

    One that the board does not measure is None.
    """

    instant_milliwatts: int | None
    average_milliwatts: int | None


class PowerLimits(msgspec.Struct, frozen=True, gc=False):
    """What bounds the power draw, each None where the board does not state it.

    ``enforced`` is the least of all limits that are set, ``management`` the one set through NVML,
    which lies between ``min`` and ``max`` and is ``default`` after a start.
    """

    enforced_milliwatts: int | None
    management_milliwatts: int | None
    default_milliwatts: int | None
    min_milliwatts: int | None
    max_milliwatts: int | None


class Energy(msgspec.Struct, frozen=True, gc=False):
    """Energy used by the board since the driver was loaded (not since boot)."""

    used_millijoules: int


class Temperature(msgspec.Struct, frozen=True, gc=False):
    """Temperature of the GPU die."""

    celsius: int
