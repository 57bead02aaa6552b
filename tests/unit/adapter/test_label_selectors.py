"""The grammar of label selectors: what parses, what does not, what matches, what is echoed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.api.label_selectors import (
    MOST_SAID,
    Operator,
    Requirement,
    SelectorError,
    parse,
)

GOOD = {
    "": (),
    "  ": (),
    "x": (("x", Operator.EXISTS, ()),),
    "!x": (("x", Operator.DOES_NOT_EXIST, ()),),
    "x=a": (("x", Operator.IN, ("a",)),),
    "x==a": (("x", Operator.IN, ("a",)),),
    "x != a": (("x", Operator.NOT_IN, ("a",)),),
    "x=": (("x", Operator.IN, ("",)),),
    "x= ,z=w": (("x", Operator.IN, ("",)), ("z", Operator.IN, ("w",))),
    "x in (a,b)": (("x", Operator.IN, ("a", "b")),),
    "x in()": (("x", Operator.IN, ("",)),),
    "x in (a,,)": (("x", Operator.IN, ("a", "")),),
    "x in (,b)": (("x", Operator.IN, ("", "b")),),
    "x notin (a, b )": (("x", Operator.NOT_IN, ("a", "b")),),
    "x>5,y<7": (("x", Operator.GREATER, ("5",)), ("y", Operator.LESS, ("7",))),
    "z,a": (("a", Operator.EXISTS, ()), ("z", Operator.EXISTS, ())),
    "in in (in)": (("in", Operator.IN, ("in",)),),
    "notin": (("notin", Operator.EXISTS, ()),),
    "notin=in": (("notin", Operator.IN, ("in",)),),
    "\tx\n=\ra ": (("x", Operator.IN, ("a",)),),
    "app.kubernetes.io/name=web": (("app.kubernetes.io/name", Operator.IN, ("web",)),),
    "x=" + "a" * 63: (("x", Operator.IN, ("a" * 63,)),),
}

BAD = [
    "x=a||y=b", "x==a==b", "!x=a", "x<a", "x,,y", ",x,y", "x,", "x nott in (y)", "a in (xyz),",
    "a in (xyz)b notin ()", "xin (a)", "x in(a)b", "x in ((a))", "a in (xyz abc)", "a notin(", "a (", "(", "x>=1", "x===a", "!",
    "=a", "x=-a", "x=a-", "-x", "x=" + "a" * 64, "a" * 64, "/x", "x/", "X_/y", "a/b/c", "x in a",
    "x>", "x>99999999999999999999", "x>" + "9" * 4000, "x=a b", "é=a",
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), GOOD.items(), ids=list(GOOD))
def test_a_selector_is_parsed(
    text: str, expected: tuple[tuple[str, Operator, tuple[str, ...]], ...]
) -> None:
    found = parse(text).requirements
    assert tuple((r.key, r.operator, r.values) for r in found) == expected


@pytest.mark.parametrize("text", BAD)
def test_an_invalid_selector_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse(text)
    assert repr(text[:MOST_SAID])[:-1] in str(caught.value)
    assert "expected" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("", {}, True),
        ("x=a", {"x": "a"}, True),
        ("x=a", {"x": "b"}, False),
        ("x=a", {}, False),
        ("x=", {"x": ""}, True),
        ("x=", {}, False),
        ("x!=a", {"x": "a"}, False),
        ("x!=a", {"x": "b"}, True),
        ("x!=a", {}, True),
        ("x in (a,b)", {"x": "b"}, True),
        ("x in (a,b)", {}, False),
        ("x notin (a,b)", {"x": "b"}, False),
        ("x notin (a,b)", {}, True),
        ("x", {"x": ""}, True),
        ("x", {}, False),
        ("!x", {}, True),
        ("!x", {"x": ""}, False),
        ("x>5", {"x": "6"}, True),
        ("x>5", {"x": "5"}, False),
        ("x>5", {"x": "six"}, False),
        ("x>" + "0" * 3000 + "5", {"x": "+006"}, True),
        ("x<5", {"x": "-0"}, True),
        ("x>5", {}, False),
        ("x<5", {"x": "-7"}, True),
        ("x<5", {"x": "99999999999999999999"}, False),
        ("x=a,y", {"x": "a"}, False),
        ("x=a,y", {"x": "a", "y": ""}, True),
    ],
)
def test_labels_match(text: str, labels: dict[str, str], matches: bool) -> None:
    assert parse(text).matches(labels) is matches


@pytest.mark.parametrize(
    ("text", "echo"),
    [
        ("", None),
        ("a=1,b==2", {"matchLabels": {"a": "1", "b": "2"}}),
        (
            "a=1,!b,c in (x,y),d!=z",
            {
                "matchLabels": {"a": "1"},
                "matchExpressions": [
                    {"key": "b", "operator": "DoesNotExist"},
                    {"key": "c", "operator": "In", "values": ["x", "y"]},
                    {"key": "d", "operator": "NotIn", "values": ["z"]},
                ],
            },
        ),
    ],
)
def test_a_selector_is_echoed_as_an_object(text: str, echo: dict[str, object] | None) -> None:
    assert parse(text).echo() == echo


def test_two_values_of_one_label_are_both_echoed() -> None:
    assert parse("a=1,a=2").echo() == {
        "matchLabels": {"a": "2"},
        "matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}],
    }


def test_reserved_keys_are_echoed_and_never_matched() -> None:
    whole = parse("a=1,!b,c=2")
    rest = whole.without({"b", "c", "z"})
    assert rest.matches({"a": "1", "b": ""})
    assert rest.equalities == (("a", "1"),)
    assert rest.echo() == whole.echo()
    assert rest.text == whole.text
    assert rest != whole


def test_a_comparison_of_numbers_cannot_be_echoed() -> None:
    with pytest.raises(SelectorError, match="use = or in"):
        parse("x>5").echo()


def test_only_what_every_match_carries_is_an_equality() -> None:
    assert parse("a=1,b in (2),c in (3,4),d!=5,e").equalities == (("a", "1"), ("b", "2"))


def test_a_requirement_counts_once_however_often_it_is_written() -> None:
    assert parse(",".join(["!a"] * 1000)).requirements == parse("!a").requirements


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (",".join(f"!l{n}" for n in range(65)), "64 requirements, not 65"),
        ("x=" + "a" * 32_767, "32768 characters, not 32769"),
    ],
    ids=["requirements", "characters"],
)
def test_a_selector_beyond_the_limits_is_refused_without_repeating_it(
    text: str, message: str
) -> None:
    with pytest.raises(SelectorError, match=message) as caught:
        parse(text)
    assert len(str(caught.value)) < 100


NAMES = st.from_regex(r"[a-z]([a-z0-9_.]{0,5}[a-z0-9])?", fullmatch=True)
LABELS = st.dictionaries(NAMES, NAMES, max_size=4)


@given(LABELS)
def test_the_selector_of_an_objects_own_labels_matches_it(labels: dict[str, str]) -> None:
    selector = parse(",".join(f"{key}={value}" for key, value in labels.items()))
    assert selector.matches(labels)
    assert dict(selector.equalities) == labels


@given(NAMES, st.lists(NAMES, min_size=1, max_size=3), LABELS)
def test_a_list_and_its_negation_never_agree(
    key: str, values: list[str], labels: dict[str, str]
) -> None:
    taken = parse(f"{key} in ({','.join(values)})").matches(labels)
    left = parse(f"{key} notin ({','.join(values)})").matches(labels)
    assert taken is not left


@given(st.text("abx=!<>(),/- \t", max_size=12))
def test_any_text_parses_or_is_refused_and_never_worse(text: str) -> None:
    try:
        found = parse(text)
    except SelectorError:
        return
    assert all(isinstance(r, Requirement) for r in found.requirements)
