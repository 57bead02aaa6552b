"""Files of rules: what is read, what is refused with line and fix, and that the rest goes on."""

import math
import textwrap

import pytest

from slicewatch.promrules.faults import FaultKind
from slicewatch.promrules.loading import load
from slicewatch.promrules.rule import Adjustment, NamespaceChoice, QueryMode
from slicewatch.service.documents import DocumentError

OVERRIDES = "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}"
QUERY = "'avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'"


def file_of(*rules, section="rules"):
    body = "".join(
        f"- {textwrap.indent(textwrap.dedent(rule).strip(), '  ').strip()}\n" for rule in rules
    )
    return load(f"{section}:\n{body}", file="rules.yaml")


def rule_of(extra="", **replaced):
    keys = {"seriesQuery": "up", "resources": OVERRIDES, "metricsQuery": QUERY} | replaced
    lines = [f"{key}: {value}" for key, value in keys.items() if value]
    return "\n".join([*lines, *textwrap.dedent(extra).strip().splitlines()])


def only_rule(*arguments, **keywords):
    read = file_of(rule_of(*arguments, **keywords))
    assert read.faults == ()
    return read.custom[0]


def only_fault(text):
    read = file_of(text)
    assert read.custom == ()
    (fault,) = read.faults
    return fault


def test_a_broken_rule_costs_that_rule_alone():
    """prometheus-adapter #225: one bad rule took all the others with it."""
    read = file_of(rule_of(), rule_of(metricsQuery="'avg(<<.Serie>>)'"), rule_of("name: {as: x}"))
    assert [rule.name for rule in read.custom] == ["rules[0]", "rules[2]"]
    (fault,) = read.faults
    assert str(fault).startswith("rules.yaml:7: rules[1].metricsQuery: .Serie does not exist")
    assert "did you mean Series" in fault.what


def test_every_fault_of_a_rule_is_said_at_once():
    read = file_of(
        """
        seriesQuery: 'up{'
        seriesFilters: [{is: "(?=x)"}, {is: a, isNot: b}]
        name: {matches: "(.*)", as: $2}
        resources: {template: "<<.Kind>>"}
        metricsQuery: 'sum('
        maxAge: soon
        """
    )
    paths = {fault.place.path for fault in read.faults}
    assert paths == {
        "rules[0].seriesQuery", "rules[0].seriesFilters[0].is", "rules[0].seriesFilters[1]",
        "rules[0].name.as", "rules[0].resources.template", "rules[0].maxAge",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("extra", "line", "path", "hint"),
    [
        ("metricQuery: up", 5, "rules[0].metricQuery", "did you mean metricsQuery"),
        ("name: {match: x}", 5, "rules[0].name.match", "did you mean matches"),
        ("labelValueReplacement: []", 5, "rules[0].labelValueReplacement", "the keys here are"),
    ],
)
def test_an_unknown_key_is_named_with_its_line(extra, line, path, hint):
    fault = only_fault(rule_of(extra))
    assert fault.kind is FaultKind.UNKNOWN_KEY
    assert (fault.place.line, fault.place.path) == (line, path)
    assert hint in str(fault)


@pytest.mark.parametrize(
    ("text", "kind", "part"),
    [
        (rule_of(seriesQuery=""), FaultKind.SERIES, "empty"),
        (rule_of(metricsQuery=""), FaultKind.TEMPLATE, "no query"),
        (rule_of(metricsQuery="'<<len>>'"), FaultKind.TEMPLATE, "arguments"),
        (rule_of(resources=""), FaultKind.RESOURCES, "which label names the objects"),
        (rule_of(resources="{overrides: {pod: {resource: pod}}}"), FaultKind.RESOURCES, "no label has the namespace"),
        (rule_of(resources="{overrides: {a-b: {resource: pod}}}"), FaultKind.RESOURCES, "no label"),
        (rule_of(resources="{overrides: {pod: {group: apps}}}"), FaultKind.RESOURCES, "no resource"),
        (rule_of("name: {matches: '(a)(b)'}"), FaultKind.NAME_REFERENCE, "2 groups"),
        (rule_of("name: {matches: '^gpu'}"), FaultKind.SERIES, "leave out"),
        (rule_of("queryMode: group"), FaultKind.QUERY_MODE, "did you mean grouped"),
        (rule_of("queryMode: grouped", metricsQuery="'avg(<<.Series>>)'"), FaultKind.QUERY_MODE, "cannot be grouped"),
        (rule_of("maxAge: 0s"), FaultKind.BAD_VALUE, "no time"),
        (rule_of("round: 2"), FaultKind.BAD_VALUE, "true or false"),
        (rule_of("nanAs: zero"), FaultKind.BAD_VALUE, "a number"),
        (rule_of("nanAs: true"), FaultKind.BAD_VALUE, "a number"),
        (rule_of("{clampMin: 5, clampMax: 1}".strip("{}").replace(", ", "\n")), FaultKind.BAD_VALUE, "exchange"),
        (rule_of("namespace: Kube System"), FaultKind.BAD_VALUE, "no namespace"),
        ("just text", FaultKind.BAD_VALUE, "a mapping"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_said(text, kind, part):
    fault = only_fault(text)
    assert fault.kind is kind
    assert part in str(fault)


def test_what_metrics_server_serves_is_refused_and_the_rest_goes_on():
    text = (
        f"resourceRules: {{cpu: {{}}}}\nrules:\n- {rule_of().replace(chr(10), chr(10) + '  ')}\n"
    )
    read = load(text, file="rules.yaml")
    assert len(read.custom) == 1
    (fault,) = read.faults
    assert fault.kind is FaultKind.RESOURCE_RULES
    assert (fault.place.line, "metrics-server" in fault.fix) == (1, True)


def test_keys_at_the_top_that_others_read_are_not_unknown():
    text = "backends: {}\nbackend: {}\nrules: []"
    read = load(text, file="rules.yaml", others=("backends",))
    assert [fault.place.path for fault in read.faults] == ["backend"]


def test_a_file_without_rules_has_none():
    read = load("externalRules:\nrules:\n", file="rules.yaml")
    assert (read.custom, read.external, read.faults) == ((), (), ())


def test_a_file_that_is_a_list_says_what_is_expected():
    (fault,) = load("- a", file="rules.yaml").faults
    assert "externalRules:" in fault.fix


def test_values_of_the_chart_are_recognised():
    text = textwrap.dedent(
        f"""\
        replicas: 1
        prometheus: {{url: http://x}}
        rules:
          default: true
          existing: my-rules
          custom:
          - seriesQuery: up
            resources: {OVERRIDES}
            metricsQuery: {QUERY}
          external:
          - seriesQuery: queue
            metricsQuery: sum(queue)
          resource: {{cpu: {{}}}}
        """
    )
    read = load(text, file="values.yaml")
    assert [rule.name for rule in (*read.custom, *read.external)] == [
        "rules.custom[0]",
        "rules.external[0]",
    ]
    assert {(fault.place.line, fault.kind) for fault in read.faults} == {
        (4, FaultKind.ELSEWHERE),
        (5, FaultKind.ELSEWHERE),
        (13, FaultKind.RESOURCE_RULES),
    }


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('rules:\n- metricsQuery: "sum(x{container!="POD"})"\n', "line 2, column 36"),
        ("rules:\n- resources:\n    overrides:\n      pod: {resource: pod},\n", "line 4"),
        ("rules: []\nrules: []\n", "line 2"),
    ],
)
def test_what_is_no_yaml_is_refused_with_line_and_column(text, where):
    """The first two stand like that in prometheus-adapter's own sample."""
    with pytest.raises(DocumentError, match=where):
        load(text, file="rules.yaml")


def test_lines_are_those_of_the_file_that_the_text_is_part_of():
    read = load("rules: [{}]\nnonsense: 1", file="configmap.yaml", first_line=7)
    assert {fault.place.line for fault in read.faults} == {7, 8}


def test_keys_of_our_own_are_read():
    rule = only_rule(
        """
        maxAge: 1m30s
        nanAs: 0
        clampMin: -1.5
        clampMax: 100
        round: true
        backend: mimir
        namespace: monitoring
        queryMode: exact
        """
    )
    assert rule.max_age_seconds == 90
    assert rule.backend == "mimir"
    assert rule.adjustment == Adjustment(nan_as=0, smallest=-1.5, largest=100, whole=True)
    assert rule.namespace == NamespaceChoice(requested=False, fixed="monitoring")
    assert rule.mode is QueryMode.EXACT


def test_without_them_values_are_served_as_they_are():
    rule = only_rule()
    assert (rule.max_age_seconds, rule.backend) == (None, "")
    assert rule.adjustment == Adjustment()
    assert rule.namespace == NamespaceChoice()
    assert rule.mode is QueryMode.GROUPED


@pytest.mark.parametrize(
    ("adjustment", "value", "served"),
    [
        (Adjustment(), 87.5, 87.5),
        (Adjustment(), -1.5, -1.5),
        (Adjustment(), math.nan, None),
        (Adjustment(), math.inf, None),
        (Adjustment(largest=100), math.inf, None),
        (Adjustment(nan_as=0), math.nan, 0),
        (Adjustment(nan_as=0, smallest=1), math.nan, 1),
        (Adjustment(smallest=0), -1.5, 0),
        (Adjustment(largest=100), 250.0, 100),
        (Adjustment(whole=True), 19.6, 20),
        (Adjustment(whole=True), 2.5, 2),
    ],
)
def test_a_value_is_adjusted_only_where_the_rule_says_so(adjustment, value, served):
    """prometheus-adapter #280, #394 and #431: NaN and infinity are no numbers to scale on.

    dcgm-exporter #269: whoever wants whole numbers can have them.
    """
    assert adjustment.of(value) == served


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [("Queue", "queue", ["Queue"]), ("queue", "queue", ["queue", "queue"])],
)
def test_external_metrics_that_differ_in_case_only_are_refused(first, second, names):
    """k8s #72996: clients lower the names of external metrics."""
    rules = [f"seriesQuery: {name}\nmetricsQuery: sum({name})" for name in (first, second)]
    read = file_of(*rules, section="externalRules")
    assert [rule.names[0] for rule in read.external] == names
    assert [fault.kind for fault in read.faults] == [FaultKind.SAME_NAME] * (2 - len(names))
