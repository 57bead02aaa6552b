"""Whatever users write into selectors, names and rules: it is quoted, refused or means the same."""

import contextlib
import json
import re

from hypothesis import assume, given
from hypothesis import strategies as st

from slicewatch.promrules.faults import RuleError
from slicewatch.promrules.loading import load
from slicewatch.promrules.matchers import among, label_name
from slicewatch.promrules.promql import is_label
from slicewatch.promrules.regex import Expansion, compile_re2, quote
from slicewatch.promrules.series import series_selector
from slicewatch.promrules.template import Template
from slicewatch.service.documents import DocumentError

texts = st.text(max_size=20)
# What expressions are made of, so that most of them are almost valid.
expressions = st.text(alphabet="ab01_.*+?()[]{}|^$\\,:<>=!-P&~ QEz", max_size=12)


@given(st.lists(texts, min_size=1, max_size=4))
def test_a_condition_is_read_back_as_the_values_that_it_was_made_of(values):
    (matcher,) = series_selector(f"x{{{among('label', values).text}}}").matchers
    if len(values) == 1:
        assert matcher.value == values[0]
        return
    pattern = compile_re2(f"^(?:{matcher.value})$")
    assert all(pattern.search(value) for value in values)


@given(st.lists(texts, min_size=2, max_size=4), texts)
def test_a_condition_takes_no_other_value(values, other):
    assume(other not in values)
    (matcher,) = series_selector(f"x{{{among('label', values).text}}}").matchers
    assert compile_re2(f"^(?:{matcher.value})$").search(other) is None


@given(st.text(min_size=1, max_size=20))
def test_every_key_becomes_a_label(key):
    assert is_label(label_name(key))


@given(texts, texts)
def test_a_quoted_text_matches_itself_alone(text, other):
    pattern = compile_re2(f"^{quote(text)}$")
    assert (pattern.search(other) is not None) == (text == other)


@given(expressions, st.text(alphabet="ab01_.", max_size=6))
def test_an_expression_is_taken_or_refused_and_never_fails_otherwise(expression, text):
    with contextlib.suppress(RuleError):
        compile_re2(expression).search(text)


@given(st.text(alphabet="ab_$", max_size=8), st.text(alphabet="{}$1x_", max_size=8))
def test_references_to_groups_that_exist_always_expand(series, as_):
    pattern = compile_re2("^(.*)$")
    expansion = Expansion(text=as_)
    assume(not expansion.unknown(pattern))
    expanded = expansion.of(re.search("^(.*)$", series))
    assert "$" in as_ or expanded == as_


@given(st.text(max_size=30))
def test_a_text_without_actions_is_itself(text):
    assume("<<" not in text)
    assert Template(text, ["Series"]).render({"Series": "x"}) == text


@given(st.text(alphabet='<>.Series "`()|index end range if 0', max_size=30))
def test_a_template_is_taken_or_refused_and_never_fails_otherwise(text):
    with contextlib.suppress(RuleError):
        Template(text, ["Series"]).render({"Series": "x"})


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "rules",
                    "externalRules",
                    "seriesQuery",
                    "metricsQuery",
                    "resources",
                    "overrides",
                    "template",
                    "name",
                    "matches",
                    "as",
                    "seriesFilters",
                    "is",
                    "nanAs",
                    "maxAge",
                    "custom",
                    "namespaced",
                    "resourceRules",
                    "other",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(documents)
def test_whatever_a_file_says_it_is_read_or_its_faults_have_a_line(document):
    try:
        read = load(json.dumps(document), file="rules.yaml")
    except DocumentError:
        return
    for fault in read.faults:
        assert fault.place.line == 1
        assert fault.what
        assert fault.fix
