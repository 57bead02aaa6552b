"""What the license of a guest becomes: one state of a few, and a time if it has an end."""

import pytest

from slicewatch.catalog import CATALOG
from slicewatch.catalog.readings.licensing import GuestLicense, LicenseState

STATE = CATALOG["gpu_license_state"]
EXPIRY = CATALOG["gpu_license_expiry_timestamp_seconds"]


@pytest.mark.parametrize("state", LicenseState)
def test_exactly_one_state_is_true(state):
    shown = STATE.value(GuestLicense(state))
    assert set(shown) == {"licensed", "unlicensed", "disabled"}
    assert {name for name, holds in shown.items() if holds} == {state}


def test_a_license_without_an_end_has_no_time_of_it():
    assert EXPIRY.value(GuestLicense(LicenseState.LICENSED)) is None
    assert EXPIRY.value(GuestLicense(LicenseState.LICENSED, 1_900_000_000)) == 1_900_000_000


@pytest.mark.parametrize("nonsense", [0, -62_135_596_800, 2**32 * 60, 2**64 - 1])
def test_times_in_which_nobody_sells_licenses_are_out_of_range(nonsense):
    assert not EXPIRY.limits.hold(EXPIRY.value(GuestLicense(LicenseState.LICENSED, nonsense)))
