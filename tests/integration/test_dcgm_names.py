"""The names of dcgm-exporter as those use them who come from it: Prometheus asks, we answer.

Two exporters are scraped: of a node that shares its GPUs in every way, and of one with a board
that retires memory pages, which those since Ampere no longer do.
"""

import re
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from exporter.tenants.protocol import Allocation
from simulator.fleet import Fleet
from slicewatch.catalog.dcgm import ALIASES
from tests.integration.processes import Prometheus, complaints, exporter, job, kubelet, until

# The first test waits for two exporters and Prometheus, which a busy machine starts slowly.
pytestmark = pytest.mark.timeout(180)

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "from-dcgm-exporter.md"
QUERIES = yaml.safe_load(
    (ROOT / "tests" / "recorded" / "dcgm" / "queries.yaml").read_text(encoding="utf-8")
)
DASHBOARD = "NVIDIA's Grafana dashboard 12239"
NAME = re.compile(r"\bDCGM_[A-Z0-9_]+\b")
NODE, OLD = "gpu-mixed", "gpu-old"
OLD_NODE = f"nodes: [{{name: {OLD}, gpus: [{{model: V100-32GB}}]}}]"
ANSWERED = {alias.name for alias in ALIASES}
# The simulated driver keeps no account of these two clock events.
UNACCOUNTED = {"DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", "DCGM_FI_DEV_RELIABILITY_VIOLATION"}


def allocations():
    return [
        Allocation(
            namespace=held.namespace, pod=held.pod, container=held.container,
            resource=held.resource, device_id=device_id,
        )
        for held in Fleet.named("mixed").truth.allocations(NODE, 0.0)
        for device_id in held.device_ids
    ]  # fmt: skip


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """The exporter of the node, with the names."""
    socket = tmp_path_factory.mktemp("kubelet") / "kubelet.sock"
    with ExitStack() as stack:
        stack.enter_context(kubelet(socket, allocations()))
        running = exporter(
            "--simulate", "mixed", "--node-name", NODE, "--kubelet-socket", str(socket),
            "--dcgm-names",
        )  # fmt: skip
        stack.callback(running.end)
        yield running


@pytest.fixture(scope="module")
def prometheus(mixed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("prometheus")
    scenario = folder / "old.yaml"
    scenario.write_text(OLD_NODE)
    with ExitStack() as stack:
        old = exporter(
            "--simulate", str(scenario), "--node-name", OLD, "--kubelet-socket", "",
            "--dcgm-names",
        )  # fmt: skip
        stack.callback(old.end)
        own = {"namespace": "monitoring", "pod": "exporter-0"}
        running = Prometheus(
            folder,
            [
                job("honored", mixed, old, honor_labels=True, labels={}),
                job("renamed", mixed, honor_labels=False, labels=own, keep="DCGM_FI_DEV_FB_USED"),
            ],
        )
        stack.callback(running.end)
        # A rate takes two scrapes, a profiling value two readings.
        until(
            lambda: running.query(
                "min(count_over_time(up[1m])) >= 3 and on () DCGM_FI_PROF_PIPE_FP16_ACTIVE"
                ' and on () DCGM_FI_DEV_FB_USED{pod="train-0"}'
            )
        )
        yield running


def asked(prometheus, query):
    """Return the answer to a query of a dashboard, with its variables set to all values."""
    hosts, gpus = (prometheus.label_values(x, "DCGM_FI_DEV_FB_FREE") for x in ("Hostname", "gpu"))
    query = query.replace("$Hostname", "|".join(hosts)).replace("$gpu", "|".join(gpus))
    if found := re.fullmatch(r"label_values\((.+), (\w+)\)", query):
        return prometheus.label_values(found[2], found[1])
    return prometheus.query(query)


@pytest.mark.parametrize("query", QUERIES[DASHBOARD])
def test_every_panel_and_variable_of_nvidias_dashboard_has_data(prometheus, query):
    assert asked(prometheus, query)


def judged(rule):
    """Let comparisons answer 0 where they would answer nothing because all is well."""
    return re.sub(r"( [<>] )", r"\1bool ", rule)


RULES = [
    query for source, some in QUERIES.items() if source != DASHBOARD for query in some
    if set(NAME.findall(query)) <= ANSWERED
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_an_alert_rule_has_something_to_judge(prometheus, rule):
    assert prometheus.query(judged(rule))
    for name in NAME.findall(rule):
        assert prometheus.query(name), name


# The rows of the guide's table of what to ask instead.
INSTEAD = re.findall(
    r"^\| `([^`]*DCGM_[^`]+)` \| `([^`]+)` \|", GUIDE.read_text(encoding="utf-8"), re.MULTILINE
)


def test_the_guide_gives_a_query_for_every_name_on_nvidias_dashboard():
    on_it = {name for query in QUERIES[DASHBOARD] for name in NAME.findall(query)}
    assert on_it <= {name for old, _ in INSTEAD for name in NAME.findall(old)}


@pytest.mark.parametrize(("old", "new"), INSTEAD)
def test_the_query_that_the_guide_gives_for_another_has_data_like_that(prometheus, old, new):
    assert not NAME.search(new)
    assert prometheus.query(judged(old))
    assert prometheus.query(judged(new))


def test_every_name_is_there_on_some_board(prometheus):
    """dcgm-exporter #700, #646: names that are missing until something happens."""
    assert {n for n in ANSWERED if not prometheus.query(f"count({n})")} == UNACCOUNTED


def test_a_name_says_what_the_native_metric_says(prometheus):
    """What the guide advises for comparing the two."""
    differences = prometheus.query(
        "max by (UUID) (DCGM_FI_DEV_POWER_USAGE) - on (UUID) "
        'label_replace(gpu_power_usage_watts, "UUID", "$1", "uuid", "(.+)")'
    )
    assert len(differences) == 9
    assert {value for _, value in differences} == {0}


def test_each_instance_of_a_gpu_has_a_row_and_repeats_what_only_the_gpu_has(prometheus):
    rows = prometheus.query(f'DCGM_FI_DEV_POWER_USAGE{{Hostname="{NODE}", gpu="3"}}')
    assert sorted(labels["GPU_I_PROFILE"] for labels, _ in rows) == [
        "1g.10gb",
        "2g.20gb",
        "3g.40gb",
    ]
    assert len({value for _, value in rows}) == 1


def test_who_holds_a_device_alone_is_named_and_nobody_on_a_shared_one(prometheus):
    """dcgm-exporter #577, #272 (MIG), #587, #582 (shared)."""
    rows = prometheus.query(f'DCGM_FI_DEV_FB_USED{{job="honored", Hostname="{NODE}"}}')
    pods = [(labels["gpu"], labels.get("pod")) for labels, _ in rows]
    assert {pod for gpu, pod in pods if gpu in "013"} == {
        "train-0", "pipeline-0", "finetune-lora-8s2jd",
    }  # fmt: skip
    assert {pod for gpu, pod in pods if gpu in "567"} == {None}


def test_without_honor_labels_prometheus_renames_the_labels_of_the_pod(prometheus):
    """dcgm-exporter #340, #27, #85."""
    name = 'DCGM_FI_DEV_FB_USED{job="%s", gpu="0"}'
    ((honored, _),) = prometheus.query(name % "honored" + " and on (pod) gpu_tenant_info")
    ((renamed, _),) = prometheus.query(name % "renamed")
    assert (honored["pod"], honored["namespace"]) == ("train-0", "research")
    assert (renamed["exported_pod"], renamed["exported_namespace"]) == ("train-0", "research")
    assert (renamed["pod"], renamed["namespace"]) == ("exporter-0", "monitoring")


def test_promtool_complains_about_the_names_of_dcgm_exporter_only(mixed):
    """Capitals and counters without _total are its style, which is what is asked for."""
    found = complaints(mixed.get("/metrics"))
    assert found
    assert {line.partition("_")[0] for line in found} == {"DCGM"}
