"""The license of a guest's GPU, through both implementations of the Nvml seam."""

import pynvml
import pytest

from exporter.nvml.protocol import Unsupported, Value
from slicewatch.catalog.licensing import GUEST_LICENSE
from slicewatch.catalog.readings.licensing import GuestLicense, LicenseState
from testbed.driver.answers_of.licensing import FEATURES

SCENARIO = """
nodes:
  - name: n
    gpus:
      - {model: L40S, license: {until: 40s}}
      - {model: L40S, license: {until: 0s}}
      - {model: L40S}
      - {model: A100-80GB, mig: [3g.40gb]}
      - model: L40S
        vgpus: [{vm: a, type: NVIDIA L40S-12Q, memory: 12GiB}]
"""
LICENSED, UNLICENSED, PLAIN, PARTITIONED, HOST = range(5)
# The constants of the binding are tuples.
EXPIRY_UNKNOWN, VALID, PERMANENT = 0, 2, 4

of_real = pytest.mark.parametrize("world", ["real"], indirect=True)


def read(world, gpu, number=0):
    session = world.session(gpu)
    return session.read(GUEST_LICENSE, session.devices().value[number])


def features(world, *found, supported=1):
    """Let the first GPU have these features: (enabled, licensed, date, status)."""

    def change(into):
        answer = pynvml.c_nvmlGridLicensableFeatures_v4_t()
        answer.isGridLicenseSupported = supported
        answer.licensableFeaturesCount = len(found)
        for feature, (enabled, licensed, date, status) in zip(
            answer.gridLicensableFeatures, found, strict=False
        ):
            feature.featureEnabled, feature.featureState = enabled, licensed
            expiry = feature.licenseExpiry
            expiry.year, expiry.month, expiry.day, expiry.hour, expiry.min, expiry.sec = date
            expiry.status = status
        into.put(FEATURES, answer)

    world.answer(LICENSED, change)
    return read(world, LICENSED)


def test_a_license_holds_until_it_expires(world):
    expiry = world.fleet.clock.epoch_us // 10**6 + 40
    assert read(world, LICENSED) == Value(GuestLicense(LicenseState.LICENSED, expiry))
    world.advance(11)
    assert read(world, LICENSED) == Value(GuestLicense(LicenseState.UNLICENSED))


def test_a_guest_may_have_none(world):
    assert read(world, UNLICENSED) == Value(GuestLicense(LicenseState.UNLICENSED))


@pytest.mark.parametrize("gpu", [PLAIN, PARTITIONED, HOST])
def test_a_gpu_that_is_not_virtual_needs_no_license(world, gpu):
    assert read(world, gpu) == Unsupported("no_vgpu_guest")


def test_a_mig_instance_has_no_license_of_its_own(world):
    assert read(world, PARTITIONED, 1) == Unsupported("mig_instance")


DATE, LATER = (2027, 3, 1, 12, 30, 5), (2028, 1, 1, 0, 0, 0)
AT = 1_803_904_205


@of_real
def test_the_time_of_expiry_is_greenwich_time(world):
    reading = features(world, (1, 1, DATE, VALID)).value
    assert reading == GuestLicense(LicenseState.LICENSED, AT)


@of_real
@pytest.mark.parametrize("status", [EXPIRY_UNKNOWN, 1, 3, PERMANENT, 255])
def test_a_time_that_is_not_valid_is_none(world, status):
    reading = features(world, (1, 1, DATE, status)).value
    assert reading == GuestLicense(LicenseState.LICENSED)


@of_real
@pytest.mark.parametrize(
    "date",
    [
        (0, 0, 0, 0, 0, 0),
        (2027, 13, 1, 0, 0, 0),
        (2027, 2, 30, 0, 0, 0),
        (2**32 - 1, *[65535] * 5),
    ],
    ids=str,
)
def test_a_day_that_never_was_is_none(world, date):
    reading = features(world, (1, 1, date, VALID)).value
    assert reading == GuestLicense(LicenseState.LICENSED)


@of_real
def test_of_several_features_those_that_are_enabled_count_and_the_first_to_expire(world):
    unused = (0, 0, DATE, VALID)
    assert features(world, unused).value.state is LicenseState.DISABLED
    assert features(world).value.state is LicenseState.DISABLED
    both = features(world, (1, 1, LATER, VALID), (1, 1, DATE, VALID), unused).value
    assert both == GuestLicense(LicenseState.LICENSED, AT)
    assert features(world, unused, (1, 0, DATE, VALID)).value.state is LicenseState.UNLICENSED


@of_real
def test_a_driver_without_licensing_has_no_state(world):
    assert features(world, (1, 1, DATE, VALID), supported=0) == Unsupported("device")
