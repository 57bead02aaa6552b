"""The license of a virtual GPU inside a guest."""

from typing import Final

from exporter.nvml.protocol import Unsupported
from exporter.nvml.simulated.readings.read import BoardReads
from simulator.gpu import SimulatedGpu
from slicewatch.catalog.readings.licensing import GuestLicense, LicenseState

_MICROSECONDS: Final = 1_000_000


def _guest_license(gpu: SimulatedGpu) -> GuestLicense | Unsupported:
    held = gpu.license
    if held is None:
        return Unsupported("no_vgpu_guest")
    if not held.licensed:
        return GuestLicense(LicenseState.UNLICENSED)
    expiry = None if held.expires_us is None else held.expires_us // _MICROSECONDS
    return GuestLicense(LicenseState.LICENSED, expiry)


BOARD: Final[BoardReads] = {"guest_license": _guest_license}
