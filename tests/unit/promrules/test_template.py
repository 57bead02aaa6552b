"""Templates render as text/template does, and what they cannot do is said."""

import pytest

from slicewatch.promrules.template import Template
from slicewatch.promrules.template_nodes import TemplateError

FIELDS = ("Series", "LabelMatchers", "LabelValuesByName", "GroupBy", "GroupBySlice")
DATA = {
    "Series": "gpu",
    "LabelMatchers": 'namespace="ml"',
    "LabelValuesByName": {"namespace": "ml", "pod": "a|b"},
    "GroupBy": "pod",
    "GroupBySlice": ["pod", "container"],
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("up", "up"),
        ("avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
         'avg(gpu{namespace="ml"}) by (pod)'),
        ("<< .Series >>", "gpu"),
        ("<<$.Series>>", "gpu"),
        ("a  <<- .Series ->>  b", "agpub"),
        ("a<</* why */>>b", "ab"),
        ("a <<- /* why */ ->> b", "ab"),
        ('<<index .LabelValuesByName "namespace">>', "ml"),
        ("<<index .LabelValuesByName `pod`>>", "a|b"),
        ('<<index .LabelValuesByName "none">>', ""),
        ("<<.LabelValuesByName.pod>>", "a|b"),
        ("<<index .GroupBySlice 1>>", "container"),
        ("<<range .GroupBySlice>><<.>>,<<end>>", "pod,container,"),
        ("<<range .GroupBySlice>><<$.Series>>.<<.>> <<end>>", "gpu.pod gpu.container "),
        ("<<range .LabelValuesByName>><<.>> <<else>><<.Series>><<end>>", "ml a|b "),
        ("<<if .GroupBy>>yes<<end>>", "yes"),
        ('<<if eq .Series "cpu" "gpu">>yes<<else>>no<<end>>', "yes"),
        ('<<if ne .Series "gpu">>1<<else if eq .GroupBy "pod">>2<<else>>3<<end>>', "2"),
        ('<<if eq .Series "x">>1<<else if eq .GroupBy "y">>2<<else>>3<<end>>', "3"),
        ('<<if and .Series (not (eq .GroupBy "pod"))>>1<<else>>2<<end>>', "2"),
        ('<<if or false "x">>1<<end>>', "1"),
        ("<<if true>>1<<end>>", "1"),
        ("<<len .GroupBySlice>>", "2"),
        ('<<printf "%s{%s} %d%%" .Series .LabelMatchers 5>>', 'gpu{namespace="ml"} 5%'),
        ("<<printf `%q` .LabelMatchers>>", r'"namespace=\"ml\""'),
        ('<<.Series | printf "%s:%s" "a">>', "a:gpu"),
        ('<<index .LabelValuesByName "pod" | printf "%v">>', "a|b"),
        ("<<.GroupBySlice>>", "[pod container]"),
        ("<<.LabelValuesByName>>", "map[namespace:ml pod:a|b]"),
        ('<<"a\\"b">>', 'a"b'),
        ("<<eq .Series .Series>>", "true"),
        ("<<range .GroupBySlice>><<if eq . `pod`>>P<<else>>C<<end>><<end>>", "PC"),
    ],
)  # fmt: skip
def test_a_template_renders_as_in_go(text, expected):
    assert Template(text, FIELDS).render(DATA) == expected


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("<<.Serie>>", "did you mean Series"),
        ("<<.LabelMatchersByName>>", "the fields are .Series"),
        ('<<join .GroupBySlice ",">>', "join is not supported"),
        ("<<idnex .GroupBySlice 0>>", "did you mean index"),
        ("<<if .Series>>x", "never closed"),
        ("<<if .Series>>x<<else>>y", "never closed"),
        ("<<range .GroupBySlice>>", "never closed"),
        ("<<end>>", "<<end>> without"),
        ("<<else>>", "<<else>> without"),
        ("<<.Series", "never closed"),
        ("<<>>", "without a value"),
        ("<<$x := .Series>>", "not supported"),
        ("<<with .Series>>x<<end>>", "not supported"),
        ('<<template "x">>', "not supported"),
        ("<<.Series.x>>", "something without fields"),
        ("<<.LabelValuesByName.a.b>>", "something without fields"),
        ("<<(.Series>>", "never closed"),
        ("<<.Series)>>", "close what was opened"),
        ("<<.Series .GroupBy>>", "where a function should"),
        ("<<.Series | .GroupBy>>", "where a function should"),
        ('<<"\\x">>', "is not a text"),
        ("<<3.5>>", "not supported"),
        ("<<range .GroupBySlice>><<.Series>><<end>>", "write $.Series"),
        ("<<range .GroupBySlice>>x<<else if .Series>>y<<end>>", "never closed"),
    ],
)
def test_what_is_no_template_is_refused_and_said(text, part):
    with pytest.raises(TemplateError) as caught:
        Template(text, FIELDS)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "<<.>>", "<<index .Series 0>>", "<<index .GroupBySlice 7>>", "<<index .GroupBySlice>>",
        "<<len>>", "<<or>>", "<<and>>", "<<len 3>>", '<<printf "%z" .Series>>', '<<printf "%s">>', "<<eq>>",
        "<<range .Series>><<end>>",
    ],
)  # fmt: skip
def test_what_a_function_cannot_do_is_an_error_of_the_template(text):
    with pytest.raises(TemplateError):
        Template(text, FIELDS).render(DATA)
