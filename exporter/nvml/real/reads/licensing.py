"""The license of a vGPU, read inside the virtual machine that has it."""

from datetime import UTC, datetime
from typing import Any, Final

import pynvml

from exporter.nvml.protocol import Outcome, Unsupported, Value
from exporter.nvml.real.calls import Calls, Handle
from exporter.nvml.real.reads.read import Reads
from slicewatch.catalog.readings.licensing import GuestLicense, LicenseState

NO_GUEST: Final = Unsupported("no_vgpu_guest")
# The binding's own constant is a tuple, by a comma too many.
VALID_EXPIRY: Final = 2


def _guest_license(calls: Calls, handle: Handle) -> Outcome[GuestLicense]:
    mode = calls.number("nvmlDeviceGetVirtualizationMode", handle)
    if mode != pynvml.NVML_GPU_VIRTUALIZATION_MODE_VGPU:
        return NO_GUEST
    found = pynvml.nvmlDeviceGetGridLicensableFeatures_v4(handle)
    if not found.isGridLicenseSupported:
        return Unsupported("device")
    features = found.gridLicensableFeatures[: found.licensableFeaturesCount]
    enabled = [feature for feature in features if feature.featureEnabled]
    if not enabled:
        return Value(GuestLicense(LicenseState.DISABLED))
    licensed = [feature for feature in enabled if feature.featureState]
    if not licensed:
        return Value(GuestLicense(LicenseState.UNLICENSED))
    expiries = [
        seconds for one in licensed if (seconds := _seconds(one.licenseExpiry)) is not None
    ]
    return Value(GuestLicense(LicenseState.LICENSED, min(expiries, default=None)))


def _seconds(expiry: Any) -> int | None:  # noqa: ANN401 - a structure of the binding
    """Return a time, which NVIDIA's tools show as GMT; None where there is none."""
    if expiry.status != VALID_EXPIRY:
        return None
    parts = (expiry.year, expiry.month, expiry.day, expiry.hour, expiry.min, expiry.sec)
    try:
        return int(datetime(*parts, tzinfo=UTC).timestamp())
    except (ValueError, OverflowError):
        return None


BOARD: Final[Reads] = {"guest_license": _guest_license}
