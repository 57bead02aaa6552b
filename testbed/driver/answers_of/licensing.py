"""The license of a GPU that is a virtual one."""

from datetime import UTC, datetime
from typing import Final

from simulator.gpu import SimulatedGpu
from testbed.driver.answers import Answers, nvml

FEATURES: Final = "nvmlDeviceGetGridLicensableFeatures_v4"
# The binding's own constant is a tuple, by a comma too many.
VALID: Final = 2


def answers(gpu: SimulatedGpu, into: Answers) -> None:
    """Put the features that a license is for; there are none on a GPU that is real."""
    found = nvml.c_nvmlGridLicensableFeatures_v4_t()
    held = gpu.license
    if held is not None:
        found.isGridLicenseSupported, found.licensableFeaturesCount = 1, 1
        feature = found.gridLicensableFeatures[0]
        feature.featureCode = nvml.NVML_GRID_LICENSE_FEATURE_CODE_VGPU
        feature.productName = held.product.encode()
        feature.featureEnabled, feature.featureState = 1, held.licensed
        if held.expires_us is not None:
            at = datetime.fromtimestamp(held.expires_us // 10**6, UTC)
            expiry = feature.licenseExpiry
            expiry.year, expiry.month, expiry.day = at.year, at.month, at.day
            expiry.hour, expiry.min, expiry.sec = at.hour, at.minute, at.second
            expiry.status = VALID
    into.put(FEATURES, found)
