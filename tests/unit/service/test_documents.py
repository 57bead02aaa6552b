"""Documents of people: nothing is lost without a word, and nothing grows."""

import contextlib
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.service.documents import (
    MOST_CHARACTERS,
    DocumentError,
    parse_json,
    parse_yaml,
)

SCALARS = st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.text(max_size=20)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)


@given(DOCUMENTS)
def test_what_has_no_trap_is_read_as_any_loader_reads_it(document):
    assert parse_json(json.dumps(document)) == document
    written = yaml.safe_dump(document)
    # What is one object in two places is written as an alias.
    if "&id" not in written:
        assert parse_yaml(written) == yaml.safe_load(written)


@given(st.text() | st.text(alphabet="{}[]&*!?:-,'\"#|>%@ \n\tab0~<", max_size=60))
def test_any_text_is_a_document_or_a_document_error(text):
    for parse in (parse_yaml, parse_json, lambda t: parse_yaml(t, typed=False)):
        with contextlib.suppress(DocumentError):
            parse(text)


def test_a_fault_of_the_syntax_says_where_it_is_and_draws_nothing():
    with pytest.raises(DocumentError) as refused:
        parse_yaml("rules:\n- a: b: c\n")
    assert str(refused.value) == "not YAML: mapping values are not allowed here, line 2, column 7"


@pytest.mark.parametrize(
    "text",
    ["{!!set x: 1}", "{!!map x: 1}", "a: !!bool perhaps", "a: !!int ''", "a: !!timestamp never"],
)
def test_a_scalar_that_is_not_what_its_tag_says_is_refused(text):
    with pytest.raises(DocumentError, match="not YAML"):
        parse_yaml(text)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_yaml, "labels: {}\nlog_level: info\nlabels: {a: b}\n"),
        (parse_yaml, "outer:\n  labels: 1\n  'labels': 2\n"),
        (parse_json, '{"labels": {}, "labels": {"a": "b"}}'),
    ],
)
def test_a_key_that_is_there_twice_is_refused_by_its_name(parse, text):
    with pytest.raises(DocumentError, match="the key 'labels' is there twice; remove one"):
        parse(text)


def test_lists_and_mappings_have_no_aliases_so_that_none_can_grow():
    bomb = "a: &a [x, x]\n" + "".join(
        f"{new}: &{new} [*{old}, *{old}]\n"
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    with pytest.raises(DocumentError, match="alias of a list or mapping; write it out"):
        parse_yaml(bomb)
    with pytest.raises(DocumentError, match="alias of a list or mapping"):
        parse_yaml("&a [*a]")


def test_a_scalar_may_be_named_once_and_used_twice():
    assert parse_yaml("a: &same secret\nb: *same\n") == {"a": "secret", "b": "secret"}


@pytest.mark.parametrize("parse", [parse_yaml, parse_json])
def test_what_is_too_long_or_too_deep_is_refused_at_once(parse):
    with pytest.raises(DocumentError, match=f"longer than {MOST_CHARACTERS}"):
        parse("x" * (MOST_CHARACTERS + 1))
    with pytest.raises(DocumentError, match="nested too deeply"):
        parse("[" * 50_000 + "]" * 50_000)


def test_without_types_every_scalar_is_what_was_written():
    text = "yes: no\n0123: 1e3\nnull: ~\n1:30: 2020-01-01\n"
    assert parse_yaml(text, typed=False) == {
        "yes": "no", "0123": "1e3", "null": "~", "1:30": "2020-01-01",
    }  # fmt: skip
    with pytest.raises(DocumentError, match="key 'yes' is there twice"):
        parse_yaml("yes: 1\n'yes': 2\n", typed=False)


def test_json_has_no_numbers_that_are_none():
    with pytest.raises(DocumentError, match="NaN is not JSON"):
        parse_json('{"tick_seconds": NaN}')


def test_a_date_that_does_not_exist_is_an_error_of_the_document():
    with pytest.raises(DocumentError, match="put it in quotes"):
        parse_yaml("label: 2024-02-31\n")
