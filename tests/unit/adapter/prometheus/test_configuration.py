"""Files of rules: their backends, what a fault in them costs, and how they are replaced."""

import asyncio
import os

import pytest

from adapter.sources.prometheus import query_result, readings
from adapter.sources.prometheus.backend import BackendConfig, Verb
from adapter.sources.prometheus.configuration import configuration
from adapter.sources.prometheus.credentials import Access
from adapter.sources.prometheus.files import RuleFiles, watched
from adapter.sources.prometheus.flags import backend_of_flags
from adapter.sources.prometheus.readings import Query
from adapter.sources.prometheus.rules import FaultyRulesError
from slicewatch.service.documents import DocumentError
from testbed.scripted_prometheus import failure, vector
from tests.unit.adapter.prometheus.scene import POD_RULE, PODS, QUEUE_RULE

BACKENDS = """
backends:
  thanos:
    url: https://thanos.example:9090/prefix/
    method: get
    timeout: 2s
    headers: {X-Scope-OrgID: team-a}
    bearerTokenFile: /var/run/token
    tls: {caFile: /ca.pem, certFile: /tls.crt, keyFile: /tls.key, serverName: thanos}
"""
METRIC = f"{PODS}/*/dcgm_utilization"


def faults(text, backend=None):
    return [str(fault) for fault in configuration([("rules.yaml", text)], backend).faults]


def test_a_backend_has_an_address_and_ways_to_be_entered():
    made = configuration([("rules.yaml", BACKENDS)])
    assert made.faults == ()
    assert made.backends["thanos"] == BackendConfig(
        name="thanos",
        url="https://thanos.example:9090/prefix",
        verb=Verb.GET,
        timeout_seconds=2.0,
        headers={"X-Scope-OrgID": "team-a"},
        access=Access(
            token_file="/var/run/token",  # noqa: S106 - a path
            ca_file="/ca.pem",
            certificate_file="/tls.crt",
            key_file="/tls.key",
            server_name="thanos",
        ),
    )
    assert made.default == "thanos"


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ("{url: thanos:9090}", "rules.yaml:1: backends.x.url: the URL must be http://"),
        ("{url: 'http://u:s3cret@h'}", "the URL has a password in it; use basicAuth"),
        ("{url: 'http://h', timeout: 5s}", "5 s are too long"),
        ("{url: 'http://h', method: PUT}", "'PUT' is no method; write POST or GET"),
        ("{url: 'http://h', tokenFile: x}", "there is no such key"),
        ("{url: 'http://h', tls: {certFile: x}}", "set certFile and keyFile"),
        ("{url: 'http://h', basicAuth: {username: x}}", "set username and passwordFile"),
    ],
)
def test_a_backend_that_cannot_be_used_is_refused_with_place_and_fix(section, text):
    found = faults(f"backends: {{x: {section}}}")
    assert len(found) == 1
    assert text in found[0]
    assert "s3cret" not in found[0]


def test_a_rule_without_a_backend_is_left_out_and_the_others_stay():
    other = POD_RULE + "  backend: mimir\n"
    made = configuration([("rules.yaml", f"{BACKENDS}rules:{POD_RULE}{other}")])
    assert [rule.name for rule in made.custom] == ["rules[0]"]
    assert "there is no backend mimir" in str(made.faults[0])
    assert "no default one" in faults(f"rules:{POD_RULE}")[0]


def test_several_files_are_one_configuration_and_rules_are_named_after_theirs():
    made = configuration([("a.yaml", BACKENDS), ("b.yaml", f"rules:{POD_RULE}")])
    assert made.faults == ()
    assert [rule.name for rule in made.custom] == ["b.yaml:rules[0]"]
    twice = configuration([("a.yaml", BACKENDS), ("b.yaml", BACKENDS)])
    assert "there is another backend thanos" in str(twice.faults[0])


def test_what_is_no_yaml_names_file_and_line():
    with pytest.raises(DocumentError, match=r"rules\.yaml: not YAML: .*line 2"):
        configuration([("rules.yaml", 'rules:\n- a: "x"y"\n')])


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"url": ""}, None),
        ({"url": "http://p:9090/", "headers": {"X-A": "b"}, "verb": "GET"},
         BackendConfig(name="default", url="http://p:9090", headers={"X-A": "b"}, verb=Verb.GET)),
        ({"url": "https://u:p%40@p"},
         BackendConfig(name="default", url="https://p", access=Access(username="u", password="p@"))),  # noqa: S106 - of nobody
    ],
)  # fmt: skip
def test_the_flags_of_prometheus_adapter_make_the_default_backend(flags, expected):
    assert backend_of_flags(**flags) == expected


def test_in_cluster_authentication_is_the_service_accounts():
    access = backend_of_flags("https://p", in_cluster=True).access
    assert access.token_file.endswith("serviceaccount/token")
    assert access.ca_file.endswith("serviceaccount/ca.crt")


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ({"url": "http://u:s3cret@"}, "prometheus_url"),
        ({"url": "http://p", "verb": "PUT"}, "prometheus_verb"),
        ({"url": "http://p", "certificate_file": "x"}, "set both or neither"),
        ({"url": "http://u:s3cret@p", "token_file": "x"}, "keep one"),
        ({"url": "http://p", "auth_config": "kubeconfig"}, "prometheus_token_file"),
        ({"url": "http://p", "headers": {"a b": "c"}}, "'a b' is not a header"),
    ],
)
def test_flags_that_cannot_be_used_are_refused_without_the_password(flags, text):
    with pytest.raises(ValueError, match=text) as caught:
        backend_of_flags(**flags)
    assert "s3cret" not in str(caught.value)


async def test_a_rule_that_the_backend_refuses_costs_that_rule_alone(serve, prometheus):
    """prometheus-adapter #225, kube-prometheus #160: one bad series query made all metrics vanish."""
    bad = POD_RULE.replace("DCGM_FI_DEV_GPU_UTIL", "bad").replace("dcgm_", "bad_")
    third = POD_RULE.replace("dcgm_", "third_")
    prometheus.say = lambda one: (
        failure(400, "bad_data", "parse error")
        if "bad" in one.query
        else vector(({"pod": "a"}, 5))
    )
    async with serve(POD_RULE + bad + third) as served:
        prometheus.say, say = (
            lambda one: vector() if "timestamp" in one.query and "bad" not in one.query
            else say(one)
        ), prometheus.say  # fmt: skip
        assert await served.dcgm() == {"a": "5"}
        message = await served.ask.refusal(f"{PODS}/*/bad_utilization", 503)
        assert "the backend default refuses the query" in message
        assert "bad_data: parse error" in message
        assert await served.ask.values(f"{PODS}/*/third_utilization") == {"a": "5"}
        sample = served.port.metrics.registry.get_sample_value
        states = [
            sample("slicewatch_adapter_rule_success", {"rule": f"rules[{n}]"}) for n in range(3)
        ]
        assert states == [1.0, 0.0, 1.0]
        refused = {"backend": "default", "reason": "refused"}
        assert sample("slicewatch_adapter_backend_faults_total", refused) == 1.0


async def test_a_faulty_rule_is_left_out_and_named_and_its_neighbours_answer(serve, prometheus):
    async with serve(POD_RULE + "- {seriesQuery: x, metricsQuery: '<<.Nothing>>'}\n") as served:
        prometheus.values(({"pod": "a"}, 5))
        assert await served.dcgm() == {"a": "5"}
        state = served.port.metrics.registry.get_sample_value(
            "slicewatch_adapter_rule_success", {"rule": "rules[1]"}
        )
    assert state == 0.0


async def test_a_configured_metric_is_listed_whether_or_not_it_has_values(serve, prometheus):
    """prometheus-adapter #221, #332, distribution #394: nothing is fetched to know what is configured."""
    async with serve(POD_RULE, QUEUE_RULE) as served:
        await served.rules.refresh()
        listed = await served.ask("/apis/custom.metrics.k8s.io/v1beta2")
        external = await served.ask("/apis/external.metrics.k8s.io/v1beta1")
    assert b'"pods/dcgm_utilization"' in listed.body
    assert b'"Queue_Depth"' in external.body
    assert prometheus.asked == []


async def test_files_are_followed_through_a_swapped_folder_and_faulty_ones_change_nothing(
    serve, prometheus, tmp_path
):
    """prometheus-adapter #104, #678, kube-prometheus #302: restarts; a ConfigMap swaps its folder."""

    def mount(generation, text):
        folder = tmp_path / generation
        folder.mkdir()
        (folder / "rules.yaml").write_text(text)
        (tmp_path / "next").symlink_to(generation)
        (tmp_path / "next").replace(tmp_path / "..data")

    mount("one", f"rules:{POD_RULE}")
    (tmp_path / "rules.yaml").symlink_to("..data/rules.yaml")
    async with serve() as served:
        made = BackendConfig(name="default", url=prometheus.url)
        watch = watched(RuleFiles([str(tmp_path / "rules.yaml")], made), served.rules)
        watch.start()
        prometheus.values(({"pod": "a"}, 5))
        assert await served.dcgm() == {"a": "5"}
        mount("two", f"rules:{POD_RULE.replace('dcgm_utilization', 'renamed')}")
        assert await watch.check()
        assert await served.ask.values(f"{PODS}/*/renamed") == {"a": "5"}
        await served.ask.refusal(METRIC, 404)
        mount("three", "rules:\n- {seriesQuery: x}\n")
        assert not await watch.check()
        assert "there is no query" in watch.fault
        assert await served.ask.values(f"{PODS}/*/renamed") == {"a": "5"}
        mount("four", "rules: [")
        assert not await watch.check()
        assert "not YAML" in watch.fault
        os.unlink(tmp_path / "..data")  # noqa: PTH108 - a link, whose folder stays
        assert not await watch.check()
        assert "cannot be read" in watch.fault
        assert await served.ask.values(f"{PODS}/*/renamed") == {"a": "5"}


async def test_a_backend_that_is_down_is_named_and_back_at_once(serve, prometheus):
    """kiosk-console #284: minutes of unknown after a restart."""
    async with serve(POD_RULE) as served:
        prometheus.say = lambda _: failure(500, "internal", "disk full")
        message = await served.ask.refusal(METRIC, 503)
        assert "the backend default failed: 500 Internal Server Error" in message
        assert "disk full" in message
        prometheus.values(({"pod": "a"}, 5))
        assert await served.dcgm() == {"a": "5"}


async def test_a_backend_that_hangs_is_a_timeout_for_which_others_do_not_wait_again(
    serve, prometheus
):
    async with serve(POD_RULE, timeout_seconds=0.05) as served:
        prometheus.gate.clear()
        message = await served.ask.refusal(METRIC, 504)
        assert "did not answer in time" in message
        prometheus.values(({"pod": "a"}, 5))
        prometheus.gate.set()
        queries = len(prometheus.queries)
        served.port.pass_seconds(4.9)
        assert await served.ask.refusal(METRIC, 504) == message
        assert len(prometheus.queries) == queries
        served.port.pass_seconds(0.2)
        assert await served.dcgm() == {"a": "5"}


async def test_who_asks_first_may_go_away_without_costing_the_others(serve, prometheus):
    async with serve(POD_RULE) as served:
        prometheus.gate.clear()
        offer = served.rules.custom["pods", "dcgm_utilization"]
        query = served.rules.query(offer, "x", "")
        first = asyncio.ensure_future(served.rules.read(offer, query))
        second = asyncio.ensure_future(served.rules.read(offer, query))
        async with asyncio.timeout(5):
            await prometheus.arrived.wait()
        first.cancel()
        prometheus.gate.set()
        assert (await second).query is query
        assert len(prometheus.queries) == 1


async def test_a_faulty_start_may_be_mended_rule_by_rule(serve, prometheus):
    broken = "- {seriesQuery: x, metricsQuery: '<<.Nothing>>'}\n"
    made = BackendConfig(name="default", url=prometheus.url)

    def text(*rules):
        return configuration([("rules.yaml", "rules:" + "".join(rules))], made)

    async with serve(POD_RULE + broken + broken) as served:
        served.rules.apply(text(POD_RULE, broken))
        assert len(served.rules.configuration.faults) == 1
        served.rules.apply(text(POD_RULE))
        with pytest.raises(FaultyRulesError, match="Nothing"):
            served.rules.apply(text(POD_RULE, broken))
        assert served.rules.configuration.faults == ()


async def test_readings_that_nobody_asks_for_any_more_are_forgotten(
    serve, prometheus, monkeypatch
):
    monkeypatch.setattr(readings, "MOST_KEPT", 2)
    async with serve(POD_RULE) as served:
        kept = [
            await served.rules.readings.get(Query(backend="default", text=text), 0.0)
            for text in ("a", "b", "c")
        ]
        current = [served.rules.readings.is_current(reading) for reading in kept]
    assert current == [False, True, True]


async def test_a_bug_here_costs_one_answer_and_is_logged(serve, prometheus, monkeypatch):
    def broken(_):
        raise KeyError("bug")

    monkeypatch.setattr(query_result, "result", broken)
    async with serve(POD_RULE) as served:
        assert "here: KeyError" in await served.ask.refusal(METRIC, 503)
        monkeypatch.undo()
        prometheus.values(({"pod": "a"}, 5))
        assert await served.dcgm() == {"a": "5"}
