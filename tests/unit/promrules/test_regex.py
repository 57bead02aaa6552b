"""Expressions mean what they mean to RE2, and references expand as Go expands them."""

import re

import pytest

from slicewatch.promrules.faults import RuleError
from slicewatch.promrules.regex import Expansion, compile_re2, literal, quote


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^container_(.*)_total$", "container_cpu_total", True),
        ("_total$", "cpu_total\n", False),  # to Python alone, $ also stands before a line's end
        (r"cpu\z", "cpu", True),
        (r"\Qa.b\E+", "a.bb", True),
        (r"\Qa.b", "axb", False),
        ("[[:alpha:]_]+$", "a_b", True),
        ("^[[:digit:]]$", "x", False),
        ("^[]a]$", "]", True),
        ("^[^]a]$", "]", False),
        ("^[a&&b]$", "&", True),
        (r"^\x{47}PU$", "GPU", True),
        ("^a{,2}$", "a{,2}", True),  # to RE2, not a repetition
        ("^a{2,}$", "aaa", True),
        ("(?i)gpu", "GPU", True),
        ("(?P<name>gpu)", "gpu", True),
        ("(?<name>gpu)", "gpu", True),
        ("(?:a|b)c", "bc", True),
        (r"^\w$", "ä", False),  # words are ASCII
        ("a+?$", "aa", True),
        (r"[\]-]$", "-", True),
        ("x{", "x{", True),
    ],
)
def test_an_expression_matches_what_it_matches_in_go(pattern, text, matches):
    assert (compile_re2(pattern).search(text) is not None) == matches


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", r"(a)\1", "(?P=a)", "(?>a)", "a++", "a*+", r"a\Z",
        "(", "[a", "a**", r"\p{Greek}", r"\C", "a(?i)b", "(?U)a+", "(?#x)", r"\x{110000}",
        "[[:letters:]]", r"[\b]", r"[\Qa\E]", "[+--]", "*a", "(?P<1a>x)", "a{2,1}",
    ],
)  # fmt: skip
def test_what_re2_does_not_have_is_refused_with_the_expression(pattern):
    with pytest.raises(RuleError) as caught:
        compile_re2(pattern)
    assert repr(pattern) in str(caught.value)


@pytest.mark.parametrize(
    ("as_", "expected"),
    [
        ("${1}_per_second", "cpu_per_second"),
        ("$1", "cpu"),
        ("$1-x", "cpu-x"),
        ("$what", "cpu"),
        ("${what}s", "cpus"),
        ("$0", "container_cpu_total"),
        ("$$1", "$1"),
        ("a$", "a$"),
        ("${", "${"),
        ("fixed", "fixed"),
    ],
)
def test_references_expand_as_in_go(as_, expected):
    match = re.search("container_(?P<what>.*)_total", "container_cpu_total")
    assert Expansion(text=as_).of(match) == expected


@pytest.mark.parametrize(
    ("as_", "unknown"), [("$1_x", ["1_x"]), ("$2", ["2"]), ("$01", ["01"]), ("${1}_$what", [])]
)
def test_a_reference_to_a_group_that_does_not_exist_is_known(as_, unknown):
    assert Expansion(text=as_).unknown(compile_re2("(?P<what>.*)")) == unknown


@pytest.mark.parametrize(
    ("pattern", "only"),
    [("^gpu_util$", "gpu_util"), ("gpu", "gpu"), ("gpu.*", None), ("a|b", None), (r"a\$", None)],
)
def test_an_expression_for_one_text_only_is_recognised(pattern, only):
    assert literal(pattern) == only


def test_a_quoted_text_is_written_as_go_writes_it():
    assert quote("a.b-c_d|e") == r"a\.b-c_d\|e"
