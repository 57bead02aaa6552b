"""``seriesQuery``: a selector of series, and what it says about them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from slicewatch.promrules.faults import FaultKind, RuleError
from slicewatch.promrules.promql import NAME_LABEL, Token, tokens, unquoted
from slicewatch.promrules.regex import compile_re2, literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """A condition on a label: ``=``, ``!=``, ``=~`` or ``!~``."""

    label: str
    sign: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesSelector:
    """Which series a rule is about.

    Attributes:
        text: as it was written; what discovery asks for.
        name: of the only metric that it selects; None if it may be several.
        matchers: without those on the name that ``name`` stands for.
    """

    text: str
    name: str | None
    matchers: tuple[Matcher, ...]

    def demands(self, label: str) -> bool:
        """Tell whether every series that it selects has a label."""
        return any(matcher.label == label and _never_empty(matcher) for matcher in self.matchers)


def _never_empty(matcher: Matcher) -> bool:
    match matcher.sign:
        case "=":
            return matcher.value != ""
        case "!=":
            return matcher.value == ""
    matches_empty = compile_re2(f"^(?:{matcher.value})$").search("") is not None
    return matches_empty if matcher.sign == "!~" else not matches_empty


def series_selector(text: str) -> SeriesSelector:
    """Return the selector that a ``seriesQuery`` is.

    Raises:
        RuleError: it is none.
    """
    found = tokens(text)
    if not found:
        raise _no_selector(text, "it is empty")
    names = [found[0].text] if found[0].kind == "word" else []
    rest = found[len(names) :]
    matchers: list[Matcher] = []
    if rest:
        if rest[0].text != "{" or rest[-1].text != "}":
            raise _no_selector(text, "conditions stand in braces, and nothing after them")
        for condition in _conditions(rest[1:-1]):
            _add(condition, names, matchers, text)
    name = names[0] if names else None
    return SeriesSelector(text=text, name=name, matchers=tuple(matchers))


def _conditions(query: Sequence[Token]) -> Iterator[Sequence[Token]]:
    start = 0
    for at, token in enumerate(query):
        if token.text == ",":
            yield query[start:at]
            start = at + 1
    if start < len(query):
        yield query[start:]


def _add(condition: Sequence[Token], names: list[str], matchers: list[Matcher], text: str) -> None:
    match [token.kind for token in condition]:
        case ["text"]:
            names.append(unquoted(condition[0].text))
            return
        case ["word" | "text", "sign", "text"]:
            label, sign, value = (unquoted(token.text) for token in condition)
        case _:
            written = " ".join(token.text for token in condition)
            raise _no_selector(text, f'{written!r} is no condition such as pod!=""')
    if sign not in {"=", "!=", "=~", "!~"}:
        raise _no_selector(text, f"{sign} does not compare labels")
    if sign in {"=~", "!~"}:
        compile_re2(value)
    only = {"=": value, "=~": literal(value)}.get(sign) if label == NAME_LABEL else None
    if only:
        names.append(only)
    else:
        matchers.append(Matcher(label=label, sign=sign, value=value))


def _no_selector(text: str, why: str) -> RuleError:
    return RuleError(
        FaultKind.SERIES,
        f"{text!r} does not select series: {why}",
        "write a selector such as 'gpu_utilization{pod!=\"\"}', in single quotes",
    )
