"""Settings of the exporter: the users' own file, and faults that say what to do."""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.families import chosen
from exporter.settings import ExporterSettings
from slicewatch.catalog import CATALOG
from slicewatch.service.settings import SettingsError, load

NAMES = sorted(metric.name for metric in CATALOG)
OTHERS_NAMES = ["DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_SM_ACTIVE", "# Clocks", "gpu_*", "[a-", ""]
USERS_FILE = {
    "metrics": [
        "gpu_utilization", "gpu_memory_utilization", "gpu_memory_used_bytes",
        "gpu_memory_total_bytes", "gpu_power_usage_watts", "gpu_temperature_celsius",
        "gpu_sm_clock_mhz", "gpu_mem_clock_mhz",
    ],
    "scrape_interval": "15s",
    "labels": {"cluster": "production", "region": "cn-east"},
}  # fmt: skip


def faults_of(**values):
    with pytest.raises(SettingsError) as raised:
        ExporterSettings(**values)
    return raised.value.faults


def test_the_defaults_are_valid():
    assert ExporterSettings().tick_seconds == 1


def test_the_users_file_is_a_settings_file(tmp_path):
    path = tmp_path / "gpu-metrics.json"
    path.write_text(json.dumps(USERS_FILE))
    settings = load(ExporterSettings, ["--config", str(path)], {})
    assert settings.metrics == tuple(USERS_FILE["metrics"])
    assert settings.scrape_interval == 15
    assert settings.labels == {"cluster": "production", "region": "cn-east"}
    assert settings.tick_seconds == 1


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"metrics": ("gpu_powr_usage_watts",)}, "did you mean gpu_power_usage_watts?"),
        ({"labels": {"a-b": "x"}}, "'a-b' is not a valid Prometheus label name"),
        ({"labels": {"__name__": "x"}}, "'__name__' is not a valid Prometheus label name"),
        ({"labels": {"uuid": "x"}}, "'uuid' is a label of our series; choose another name"),
        (
            {"labels": {"label_team": "x"}, "pod_labels": ("team",)},
            "'label_team' is what pod_labels makes of team; choose another name",
        ),
        (
            {"evidence_socket": "/run/s.sock", "control_socket": "/run/s.sock"},
            "evidence_socket: is control_socket as well, which can release the GPUs",
        ),
        ({"evidence_group": 4711}, "evidence_group: opens no socket; set evidence_socket as well"),
        ({"log_level": "loud"}, "'loud' is none of debug, info, warning, error"),
        ({"tick_seconds": 0.01}, "tick_seconds: 0.01 is not between 0.05 and 5"),
        ({"tick_seconds": 20.0}, "tick_seconds: 20 is not between 0.05 and 5"),
        ({"window_seconds": 0.5}, "window_seconds: 0.5 is not within a tick (1) and 600"),
        (
            {"tick_seconds": 0.1, "window_seconds": 500.0},
            "window_seconds: 500 is more than 1000 ticks of 0.1 s",
        ),
        ({"stale_seconds": 1.5}, "stale_seconds: 1.5 is less than two ticks"),
        ({"scrape_interval": 0.0}, "scrape_interval: must be more than 0"),
        ({"simulate_node": "x"}, "simulate_node: names a node of no scenario"),
    ],
)
def test_a_fault_names_the_setting_and_what_to_do(values, fault):
    (found,) = faults_of(**values)
    assert fault in found


@pytest.mark.parametrize("name", ["exporter.yaml", "gpu-metrics.yml"])
def test_comments_are_no_settings(tmp_path, name):
    """dcgm-exporter #118: with a comment in it the whole list of metrics was ignored."""
    path = tmp_path / name
    path.write_text("# ours\nmetrics:  # few\n  # core\n  - gpu_up  # and\n#\n  - gpu_energy*\n")
    settings = load(ExporterSettings, ["--config", str(path)], {})
    assert settings.metrics == ("gpu_up", "gpu_energy*")


@given(st.lists(st.sampled_from(NAMES) | st.sampled_from(OTHERS_NAMES) | st.text(), max_size=9))
def test_any_list_of_metrics_is_a_choice_or_a_fault_that_says_what_to_do(names):
    """dcgm-exporter #318, #412, #447, #450: it crashed on rows that it could not serve."""
    try:
        settings = ExporterSettings(metrics=tuple(names))
    except SettingsError as error:
        (fault,) = error.faults
        assert fault.startswith("metrics: no metric is called ")
        assert not set(names) <= set(NAMES)
    else:
        shown = {metric.name for metric in chosen(CATALOG.metrics, settings.metrics)}
        assert shown >= set(names) & set(NAMES)


def test_all_faults_are_reported_together():
    assert len(faults_of(tick_seconds=0.01, log_level="x", labels={"uuid": "1"})) == 3


def test_the_node_is_the_host_where_none_is_named():
    """dcgm-exporter #572: every node was called localhost."""
    assert ExporterSettings().node
    assert ExporterSettings(node_name="n1").node == "n1"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--simulate", "demmo"], "demmo: no such file or shipped scenario"),
        (["--simulate", "demo", "--simulate-node", "x"], "simulate_node: no node 'x'; there are"),
        (["--tick-secnds", "1"], "did you mean --tick-seconds?"),
        (["--tick-seconds", "soon"], "flag --tick-seconds: 'soon' is no"),
    ],
)
def test_bad_settings_end_with_status_2_and_a_line_each(arguments, said):
    command = [sys.executable, "-m", "exporter", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert all(line.startswith("slicewatch exporter: ") for line in lines)
    assert said in "\n".join(lines)


@pytest.mark.parametrize("text", ["slicewatch", "-1", "", "4294967295"])
def test_a_group_is_its_number(text):
    with pytest.raises(SettingsError, match="is not the number of a group"):
        load(ExporterSettings, ["--evidence-socket=/run/s", f"--evidence-group={text}"], {})
    found = load(ExporterSettings, ["--evidence-socket=/run/s", "--evidence-group=4711"], {})
    assert found.evidence_group == 4711
