"""The license that the driver inside a virtual machine has for its virtual GPU."""

from enum import StrEnum

import msgspec


class LicenseState(StrEnum):
    """What a guest may do with its vGPU; the value is a label.

    ``disabled``: no feature that needs a license is switched on.
    """

    LICENSED = "licensed"
    UNLICENSED = "unlicensed"
    DISABLED = "disabled"


class GuestLicense(msgspec.Struct, frozen=True, gc=False):
    """The license of a guest's vGPU.

    Attributes:
        expiry_seconds: since 1970; None for one that does not expire, or of which it is unknown.
    """

    state: LicenseState
    expiry_seconds: int | None = None

    def states(self) -> dict[str, float]:
        """Return 1 for the state, 0 for each other one."""
        return {state: float(state is self.state) for state in LicenseState}
