"""The settings that make the exporter ask the API server."""

import pytest

from exporter.settings import ExporterSettings
from slicewatch.service.settings import SettingsError, load


@pytest.mark.parametrize(
    ("values", "asks"),
    [
        ({}, False),
        ({"kubeconfig": "/etc/kubeconfig"}, False),
        ({"pod_labels": ("team",)}, True),
        ({"pod_workloads": True}, True),
        ({"resource_slices": True}, True),
        ({"mig_state_label": True}, True),
    ],
)
def test_the_api_server_is_asked_only_for_what_was_wanted(values, asks):
    assert ExporterSettings(**values).asks_cluster is asks


def test_labels_are_listed_in_a_flag_or_a_variable():
    environment = {"SLICEWATCH_POD_LABELS": "team, app.kubernetes.io/name"}

    assert load(ExporterSettings, [], environment).pod_labels == (
        "team", "app.kubernetes.io/name",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        (("app.*",), r"'app.\*' is not the exact name of a Kubernetes label"),
        (("team=vision",), "'team=vision' is not the exact name"),
        (("a/b/c",), "'a/b/c' is not the exact name"),
        (("-team",), "'-team' is not the exact name"),
        (("x" * 64,), "is not the exact name"),
        (("größe",), "'größe' is not the exact name"),
        (("app.x/name", "app-x/name"), "app.x/name and app-x/name would be one label"),
    ],
)
def test_a_label_that_cannot_be_meant_is_refused(names, fault):
    with pytest.raises(SettingsError, match=f"pod_labels: .*{fault}|pod_labels: {fault}"):
        ExporterSettings(pod_labels=names)
