"""Decisions over a scenario and over a recording, as people read them."""

import msgspec
import pytest

from cli.health import replay, tape
from cli.health.replay import PlayedError, Wanted
from cli.health.staging import Staged
from health.settings import HealthSettings
from simulator.fleet import Fleet
from slicewatch.wire.evidence import encode
from testbed import evidence

SCENARIO = """
seed: replay
nodes:
  - {name: first, gpus: [{model: H100-80GB, count: 2}]}
  - {name: second, gpus: [{model: L40S}]}
faults:
  - {kind: lost, node: first, gpu: 1, at: 180s, for: 5m}
  - {kind: driver_gone, node: first, at: 20m, for: 2m}
  - {kind: hang, node: first, gpu: 0, at: 40m, for: 2m}
"""


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    return path


def printed(capsys, **wanted):
    replay.run(Wanted(**wanted))
    return capsys.readouterr().out.splitlines()


def starting(lines, word):
    return [line for line in lines if line[9:].startswith(word)]


def test_a_fault_of_a_scenario_cordons_the_node_until_it_is_well_again(scenario, capsys):
    lines = printed(capsys, file=str(scenario), duration="20m")
    (raised,) = [line for line in starting(lines, "raised") if "gpu_lost" in line]
    assert raised.startswith("00:03:00 raised     GPU 1: gpu_lost")
    node = [line[20:] for line in starting(lines, "node")]
    assert "cordoned for GPU 1: gpu_lost" in node
    assert node.index("uncordoned") > node.index("cordoned for GPU 1: gpu_lost")


def test_what_does_not_change_is_said_only_to_whoever_wants_each_poll(scenario, capsys):
    brief = printed(capsys, file=str(scenario), node="second", duration="30m")
    whole = printed(capsys, file=str(scenario), node="second", duration="30m", verbose=True)
    assert len(starting(whole, "poll")) == 31
    assert not starting(brief, "poll")
    assert not starting(whole, "raised")


def test_a_suspicion_names_the_gpu_as_a_fault_does(tmp_path, capsys):
    path = tmp_path / "short.yaml"
    path.write_text(
        "seed: short\nnodes: [{name: n, gpus: [{model: H100-80GB, count: 2}]}]\nfaults:\n"
        "  - {kind: row_remap, node: n, gpu: 1, at: 60s, for: 30s}\n"
        "  - {kind: driver_gone, node: n, at: 180s, for: 30s}\n"
    )
    suspected = starting(printed(capsys, file=str(path), duration="5m"), "suspect")
    assert [line[20:] for line in suspected] == [
        "GPU 1: row_remap_pending",
        "node: driver_not_ready",
    ]


def test_the_same_scenario_is_decided_the_same_way(scenario, capsys):
    first, second = (printed(capsys, file=str(scenario)) for _ in range(2))
    assert first == second


def test_a_staged_node_tells_what_its_exporter_would():
    fleet = Fleet.load(SCENARIO)
    polls = dict(Staged(fleet, fleet.nodes[0], 1000).polls(3600, 60))
    assert all(gpu.readings for gpu in polls[0].gpus)
    assert polls[180].gpus[1].silent == "gpu_is_lost"
    assert (polls[1200].driver.down, polls[1200].driver.starts) == ("no_driver", 1)
    assert (polls[1320].driver.down, polls[1320].driver.starts) == ("", 2)
    assert polls[2400].gpus[0].call
    assert not polls[2520].gpus[0].silent
    assert polls[60].uptime_seconds == 1060


def recording(tmp_path, *answers):
    path = tmp_path / "node.jsonl"
    path.write_bytes(b"\n".join(encode(answer) for answer in answers) + b"\n")
    return path


def test_an_event_that_is_recorded_again_and_again_is_played_once(tmp_path):
    """Whoever asks the exporter without a number is told of all that it keeps each time."""
    first, second = evidence.event(79, number=1), evidence.event(48, number=2)
    path = recording(
        tmp_path,
        evidence.evidence(events=[first]),
        evidence.evidence(events=[first, second]),
        evidence.evidence(events=[first, second]),
        evidence.evidence(events=[first], run="run-2"),
    )
    told = [[event.number for event in one.events] for _, one in tape.played(path, 60)]
    assert told == [[1], [2], [], [1]]


def test_a_recording_is_played_by_the_node_s_own_uptime(tmp_path, capsys):
    lost = [evidence.gpu(0, silent="gpu_is_lost", silent_seconds=30)]
    path = recording(
        tmp_path,
        evidence.evidence([evidence.gpu(0)], uptime_seconds=10_000),
        evidence.evidence(lost, uptime_seconds=10_090),
    )
    (raised,) = starting(printed(capsys, file=str(path)), "raised")
    assert raised.startswith("00:01:30 raised     GPU 0: gpu_lost")


def test_a_boot_in_a_recording_counts_as_one_interval(tmp_path):
    before = evidence.evidence([evidence.gpu(0)], uptime_seconds=10_000)
    after = msgspec.structs.replace(before, boot_id="boot-2", uptime_seconds=40.0)
    path = recording(tmp_path, before, after)
    polls = replay._polls(Wanted(file=str(path)), 60.0, 0.0)
    assert [at for at, _ in polls] == [0.0, 60.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no line in it"),
        ('{"version":1}\n', "node.jsonl:1: not what /evidence answers"),
        ("\n\n{\n", "node.jsonl:3: not what /evidence answers"),
    ],
)
def test_a_recording_that_is_none_is_refused_with_its_line(text, said, tmp_path):
    path = tmp_path / "node.jsonl"
    path.write_text(text)
    with pytest.raises(PlayedError, match=said):
        replay.run(Wanted(file=str(path)))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"interval": "0"}, "--interval"),
        ({"interval": "soon"}, "--interval: 'soon' is not a valid duration"),
        ({"duration": "20x"}, "--for: '20x' is not a valid duration"),
        ({"node": "third"}, "no node 'third'"),
        ({"file": "nowhere.yaml"}, "nowhere"),
        ({"file": "nowhere.jsonl"}, "nowhere"),
    ],
)
def test_what_cannot_be_played_says_why(wanted, said, scenario):
    with pytest.raises(PlayedError, match=said):
        replay.run(Wanted(**({"file": str(scenario)} | wanted)))


def test_the_monitor_s_own_variables_hold(scenario, capsys, monkeypatch):
    monkeypatch.setenv("AUTO_CORDON", "false")
    lines = printed(capsys, file=str(scenario), duration="10m")
    assert not [line for line in starting(lines, "node") if "cordoned for" in line]
    monkeypatch.setenv("AUTO_CORDON", "perhaps")
    with pytest.raises(PlayedError, match="AUTO_CORDON"):
        replay.run(Wanted(file=str(scenario)))


def test_each_moment_knows_the_one_before_and_no_more():
    polls = [(at * 60.0, evidence.evidence([evidence.gpu(0)])) for at in range(4)]
    *_, last = replay.play(polls, HealthSettings(node_name="n"))
    assert last.before.at == 120.0
    assert last.before.before is None
