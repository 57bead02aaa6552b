import pytest

from exporter.settings import ExporterSettings
from slicewatch.service.server import Address
from slicewatch.service.settings import SettingsError, load


def test_dcgm_is_not_asked_unless_the_user_names_it():
    assert ExporterSettings().dcgm_url == ""


def test_the_url_and_the_interval_come_from_the_environment():
    settings = load(
        ExporterSettings,
        [],
        {
            "SLICEWATCH_DCGM_URL": "http://10.0.0.7:9400",
            "SLICEWATCH_DCGM_INTERVAL_SECONDS": "2s",
        },
    )
    assert settings.dcgm_url == "http://10.0.0.7:9400/metrics"
    assert settings.dcgm_interval_seconds == 2


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_the_own_page_is_not_taken_for_that_of_dcgm(host):
    with pytest.raises(SettingsError, match=r"dcgm_url: .* own page"):
        ExporterSettings(listen=Address("", 9400), dcgm_url=f"http://{host}:9400/metrics")
    ExporterSettings(listen=Address("", 9401), dcgm_url=f"http://{host}:9400/metrics")


@pytest.mark.parametrize("seconds", [0, 0.5, 61])
def test_an_interval_that_makes_no_sense_is_refused(seconds):
    with pytest.raises(SettingsError, match=r"dcgm_interval_seconds: .* not between 1 and 60"):
        ExporterSettings(dcgm_interval_seconds=seconds)
