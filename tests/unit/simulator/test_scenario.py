"""Reading scenarios: what is accepted, and how errors help to fix one."""

from pathlib import Path

import pytest

from simulator import reading
from simulator.errors import ScenarioError
from simulator.scenario import Hang, Lost, SharingMode

FLEET = """
nodes:
  - name: n1
    gpus:
      - {model: H100-80GB, count: 2}
      - {model: A100-80GB, mig: [3g.40gb, ~, 1g.10gb]}
      - {model: T4, sharing: {mode: time_slicing, replicas: 4}}
"""


def holding(device):
    return f"workloads: [{{name: w, pods: [{{name: p, devices: [{device}]}}]}}]"


def error_of(text):
    with pytest.raises(ScenarioError) as caught:
        reading.parse(text)
    return caught.value.where, caught.value.what


def test_a_scenario_is_read_with_its_units():
    scenario = reading.parse(
        FLEET
        + """
workloads:
  - name: w
    namespace: team
    load: {wave: {low: 0.1, high: 0.9, period: 1h30m, phase: 250ms}}
    memory: 40GiB
    pods:
      - {name: p, container: c, from: 90s, until: 1d, pids: [7], devices: [{node: n1, gpu: 0}]}
faults:
  - {kind: lost, node: n1, gpu: 1, at: 5m, for: 30}
"""
    )
    workload = scenario.workloads[0]
    assert workload.load.wave.period == 5400
    assert workload.load.wave.phase == 0.25
    assert workload.memory == 40 * 2**30
    assert (workload.pods[0].begin, workload.pods[0].until) == (90, 86400)
    assert scenario.faults == (Lost(node="n1", gpu=1, at=300, lasts=30),)
    assert scenario.nodes[0].groups()[3].sharing.mode is SharingMode.TIME_SLICING


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("nodes: [", "line 1, column 9", "is not valid YAML"),
        ("- 1", "scenario", "expected `object`, got `array`"),
        ("node: []", "scenario", "no key 'node' here; did you mean nodes"),
        ("nodes: [{gpus: []}]", "nodes[0]", "the key 'name' is missing"),
        (
            "nodes: [{name: n, gpus: [{model: H100-80GB, mgi: []}]}]",
            "nodes[0].gpus[0]",
            "no key 'mgi' here; did you mean mig",
        ),
        (
            "nodes: [{name: n, gpus: [{model: H100}]}]",
            "nodes[0].gpus[0].model",
            "no GPU model 'H100'; did you mean H100-80GB",
        ),
        (
            "nodes: [{name: n, gpus: [{model: T4}, {model: H100-80GB, mig: [1g.5gb]}]}]",
            "nodes[0].gpus[1].mig",
            "H100-80GB has no MIG profile '1g.5gb'",
        ),
        (
            "nodes: [{name: n, gpus: [{model: T4, mig: [1g.5gb]}]}]",
            "nodes[0].gpus[0].mig",
            "T4 has no MIG",
        ),
        (
            "nodes: [{name: n, gpus: [{model: T4, sharing: {mode: mps}}]}]",
            "nodes[0].gpus[0].sharing.replicas",
            "above 1",
        ),
        (
            "nodes: [{name: n, gpus: [{model: T4, count: 33}]}]",
            "nodes[0].gpus",
            "at most 32 GPUs",
        ),
        ("nodes: [{name: n, gpus: []}, {name: n, gpus: []}]", "nodes[1].name", "already taken"),
    ],
)
def test_a_fleet_that_cannot_be_is_refused(text, where, what):
    found_where, found_what = error_of(text)
    assert found_where == where
    assert what in found_what


@pytest.mark.parametrize(
    ("workload", "where", "what"),
    [
        (holding("{node: n2, gpu: 0}"), "devices[0].node", "no node 'n2'; choose from n1"),
        (holding("{node: n1, gpu: 9}"), "devices[0].gpu", "n1 has GPUs 0 to 3"),
        (holding("{node: n1, gpu: 2, mig: 7}"), "devices[0].mig", "GPU 2 has 7 MIG indices"),
        (holding("{node: n1, gpu: 3}"), "devices[0].replica", "must be 0 to 3"),
        (holding("{node: n1, gpu: 3, replica: 4}"), "devices[0].replica", "must be 0 to 3"),
        (holding("{node: n1, gpu: 0, replica: 0}"), "devices[0].replica", "must be left out"),
        (
            holding("{node: n1, gpu: 0}, {node: n1, gpu: 0}"),
            "devices[1]",
            "is then held by pod p",
        ),
    ],
)
def test_a_pod_that_holds_what_it_cannot_is_refused(workload, where, what):
    found_where, found_what = error_of(FLEET + workload)
    assert found_where == f"workloads[0].pods[0].{where}"
    assert what in found_what


@pytest.mark.parametrize(
    ("given", "where", "what"),
    [
        ("load: 1.5", "load", "between 0 and 1, not 1.5"),
        ("load: {steps: [], wave: {low: 0, high: 1, period: 1s}}", "load", "exactly one of"),
        ("load: 1, demand: 2", "", "keep one"),
        (
            "load: {wave: {low: 0, high: 1, period: 5 minutes}}",
            "load.wave.period",
            "is not a valid duration",
        ),
        ("load: {steps: [{at: 5, level: 0}, {at: 5, level: 1}]}", "load.steps", "in the order"),
        ("memory: 4XB", "memory", "'4XB' is not a valid size"),
        ("demand: -1", "demand", "0 or more"),
    ],
)
def test_a_load_that_cannot_be_is_refused(given, where, what):
    found_where, found_what = error_of(f"{FLEET}workloads: [{{name: w, {given}, pods: []}}]")
    assert found_where == f"workloads[0].{where}".rstrip(".")
    assert what in found_what


@pytest.mark.parametrize(
    ("fault", "where", "what"),
    [
        (
            "{kind: losst, node: n1, gpu: 0}",
            "kind",
            "no fault of kind 'losst'; did you mean lost",
        ),
        ("{kind: lost, node: n1, gpu: 4}", "gpu", "n1 has GPUs 0 to 3"),
        ("{kind: xid, node: n1, gpu: 0, xid: 79, for: 3s}", "for", "left out for an event"),
        ("{kind: hang, node: n1, gpu: 0, every: 1h}", "every", "needs a for"),
        ("{kind: row_remap, node: n1, gpu: 0, rows: 9, bank: same}", "rows", "1 to 8 of one bank"),
        ("{kind: failing, node: n1, gpu: 0, error: gone}", "error", "gone"),
        ("{kind: hang, node: n1, gpu: 0, for: 2h, every: 1h}", "every", "longer than its for"),
        ("{kind: mig_layout, node: n1, gpu: 3, mig: [1g.5gb]}", "mig", "T4 has no MIG"),
        (
            "{kind: mig_layout, node: n1, gpu: 0, mig: true}",
            "mig",
            "must be a list of profiles, or false",
        ),
    ],
)
def test_a_fault_that_cannot_be_is_refused(fault, where, what):
    found_where, found_what = error_of(f"{FLEET}faults: [{fault}]")
    assert found_where == f"faults[0].{where}"
    assert what in found_what


@pytest.mark.parametrize(
    ("workload", "where", "what"),
    [
        ("processes: 0, pods: []", "processes", "at least 1"),
        ("mix: {sm: 1.5}, pods: []", "mix.sm", "between 0 and 1"),
        ("mix: {smm: 1}, pods: []", "mix", "did you mean sm"),
        ("pods: [{name: p}]", "pods[0].devices", "at least one device"),
        (
            "pods: [{name: p, containers: [{name: c, devices: []}]}]",
            "pods[0].containers[0].devices",
            "at least one device",
        ),
        (
            "pods: [{name: p, devices: [{node: n1, gpu: 0}], containers: [{devices: []}]}]",
            "pods[0]",
            "also describes one itself",
        ),
        (
            "pods: [{name: p, containers: [{devices: [&d {node: n1, gpu: 0}]}, {devices: [*d]}]}]",
            "pods[0].containers[1].name",
            "'main' is already taken",
        ),
        (
            "processes: 2, pods: [{name: p, pids: [1], devices: [{node: n1, gpu: 0}]}]",
            "pods[0].pids",
            "every process of each device",
        ),
        (
            "pods: [{name: p, until: 1m, restarts: [2m], devices: [{node: n1, gpu: 0}]}]",
            "pods[0].restarts",
            "before until",
        ),
        (
            "host: true, pods: [{name: p, devices: [{node: n1, gpu: 3, replica: 1}]}]",
            "pods[0].devices[0].replica",
            "nobody allocates to the host",
        ),
        (
            "pods: [{name: p, containers: [&c {devices: [{node: n1, gpu: 0}]}, {<<: *c, name: b}]}]",
            "pods[0].containers[1].devices[0]",
            "held by pod p",
        ),
    ],
)
def test_pods_that_cannot_be_are_refused(workload, where, what):
    found_where, found_what = error_of(f"{FLEET}workloads: [{{name: w, {workload}}}]")
    assert found_where == f"workloads[0].{where}"
    assert what in found_what


def test_a_hint_names_a_key_that_may_stand_there():
    _, what = error_of("nodes: [{name: n, gpus: [{model: T4, mgi: []}]}]")
    assert "did you mean mig" in what
    _, what = error_of(f"{FLEET}workloads: [{{name: w, memori: 1GiB, pods: []}}]")
    assert "did you mean memory" in what


def test_the_host_may_use_what_a_pod_holds():
    scenario = reading.parse(
        FLEET
        + """
workloads:
  - {name: w, pods: [{name: p, devices: [{node: n1, gpu: 0}]}]}
  - {name: x, host: true, pods: [{name: display, devices: [{node: n1, gpu: 0}]}]}
"""
    )
    assert scenario.workloads[1].host


def test_two_pods_may_hold_one_device_after_each_other():
    scenario = reading.parse(
        FLEET
        + """
workloads:
  - name: w
    pods:
      - {name: early, until: 1m, devices: [{node: n1, gpu: 0}]}
      - {name: late, from: 1m, devices: [{node: n1, gpu: 0}]}
"""
    )
    assert len(scenario.workloads[0].pods) == 2


def test_a_scenario_is_read_from_a_file(tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text(f"{FLEET}faults: [{{kind: hang, node: n1, gpu: 0}}]")
    assert reading.named(str(file)).faults == (Hang(node="n1", gpu=0),)


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(ScenarioError, match=r"demmo: .*did you mean demo"):
        reading.named("demmo")
    with pytest.raises(ScenarioError, match="cannot be read"):
        reading.named(Path("/"))


@pytest.mark.parametrize("name", ["demo", "dense_mig", "faults", "mixed"])
def test_the_shipped_scenarios_are_sound(name):
    scenario = reading.named(name)
    assert scenario.nodes
    assert scenario.workloads


def test_the_mixed_node_shares_its_gpus_in_every_way():
    (node,) = reading.named("mixed").nodes
    modes = {group.sharing.mode for group in node.gpus}
    assert modes == set(SharingMode)
    assert len([group for group in node.gpus if group.mig]) == 2
    assert len([group for group in node.gpus if group.vgpus]) == 1
