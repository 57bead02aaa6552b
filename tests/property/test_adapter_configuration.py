"""Whatever a file of the adapter says, it is used, or refused in the words of a ``ValueError``.

Anything else would end the process that reads it again every few seconds.
"""

import contextlib

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.sources.prometheus.configuration import configuration
from adapter.sources.workloads.document import of_documents
from slicewatch.service.documents import DocumentError, parse_json, parse_yaml

KEYS = [
    "rules", "externalRules", "resourceRules", "backends", "workloadMetrics", "metrics", "interval",
    "seriesQuery", "seriesFilters", "metricsQuery", "resources", "overrides", "template", "name",
    "matches", "as", "is", "isNot", "group", "resource", "namespaced", "nanAs", "clampMin",
    "clampMax", "round", "maxAge", "backend", "url", "headers", "timeout", "tls", "labels", "window", "combine", "quantile", "scale", "idle", "clamp", "min", "max",
]  # fmt: skip
SCALARS = st.sampled_from([
    None, True, 0, -1, 10**400, -(10**400), 1e308, float("nan"), float("-inf"), "", "30s", "1e999",
    "x", "gauge", "quantile", "x{a!=\"\"}", "<<.Series>>", "<<", "{{if}}", "(", "^(.*)$", "$9",
    "http://x", "//", "\x00", "\u202e", "a" * 300, "pods",
])  # fmt: skip
VALUES = st.recursive(
    SCALARS | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=14,
)
RULE = st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS[7:26], VALUES))
METRIC = st.fixed_dictionaries({"series": st.just("x"), "type": SCALARS}, optional=dict.fromkeys(
    KEYS[28:], VALUES
))  # fmt: skip
FILES = st.fixed_dictionaries(
    {},
    optional={
        "rules": st.lists(RULE, max_size=2) | VALUES,
        "externalRules": st.lists(RULE, max_size=2) | VALUES,
        "backends": VALUES | st.dictionaries(st.text(max_size=3), RULE, max_size=2),
        "workloadMetrics": st.fixed_dictionaries(
            {"metrics": st.lists(METRIC, max_size=2)}, optional={"interval": SCALARS}
        )
        | VALUES,
    },
)


def read(text: str) -> None:
    """Read a file as the adapter does; whatever else than a ``ValueError`` fails the test."""
    with contextlib.suppress(ValueError):
        found = configuration([("file", text)])
        assert all(str(fault) for fault in found.faults)
        of_documents(found.documents)


@settings(deadline=None)
@given(FILES)
def test_any_values_of_known_keys_are_used_or_refused(content: object) -> None:
    read(dumped(content))


@settings(deadline=None)
@given(st.text("ab:-{}[]&*!?|>'\"%#\n \t,0.x", max_size=60))
def test_any_text_is_used_or_refused(text: str) -> None:
    read(text)
    read(f"rules:\n- seriesQuery: x\n  metricsQuery: {text}")


def dumped(content: object) -> str:
    """Return YAML without aliases, which are refused."""
    text: str = yaml.dump(content, Dumper=_Dumper)
    return text


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


@pytest.mark.parametrize("text", ["1" * 400, "9" * 5_000, "-0x" + "f" * 5_000, str(2**64 + 1)])
def test_a_number_that_nothing_could_hold_is_refused(text: str) -> None:
    """It could not be made a float, or not be written into the message about it."""
    with pytest.raises(DocumentError):
        parse_yaml(f"nanAs: {text}")
    if "x" not in text:
        with pytest.raises(DocumentError):
            parse_json(f'{{"nanAs": {text}}}')
    assert parse_yaml(f"nanAs: '{text}'") == {"nanAs": text}


@pytest.mark.parametrize("number", [0, -1, 2**63, 2**64, -(2**64)])
def test_numbers_of_ordinary_size_are_what_they_are(number: int) -> None:
    assert parse_yaml(str(number)) == parse_json(str(number)) == number


@pytest.mark.parametrize(
    "text",
    [
        "a: &x [1]\nrules: *x", "a: &a [*a]", "rules: []\nrules: []", "---\n{}\n---\n{}",
        "[" * 5_000, "rules: " + "[" * 900 + "]" * 900, "a: " + "x" * 300_000, "rules: \x00",
        "rules: !!python/name:os.system", "? [a]\n: b",
    ],
    ids=["alias", "itself", "twice", "two", "deep", "nested", "long", "nul", "python", "key"],
)  # fmt: skip
def test_bombs_are_no_rules(text: str) -> None:
    with pytest.raises(DocumentError) as caught:
        configuration([("file", text)])
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("text", ["\ufeffrules: []\n", "rules: []\r\nexternalRules: []\r\n"])
def test_marks_and_line_ends_of_other_editors_are_read(text: str) -> None:
    assert not configuration([("file", text)]).faults
