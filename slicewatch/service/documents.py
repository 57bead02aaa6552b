"""YAML and JSON that people wrote for us: read safely, and without any silent loss.

Plain YAML loaders keep the last of two equal keys, and let a few lines of aliases grow to
gigabytes when somebody walks through them. Here both are errors. No file is opened here.
"""

import json
from collections.abc import Hashable
from typing import Any

import yaml

# A ConfigMap holds a megabyte; no file of settings comes near a quarter of it.
MOST_CHARACTERS = 262_144
LARGEST_INTEGER = 2**64


class DocumentError(ValueError):
    """The text is not a document that can be used; says where and why."""


def parse_yaml(text: str, *, typed: bool = True) -> object:
    """Return what a YAML document says.

    Args:
        text: the document.
        typed: False leaves every scalar the text that was written, so that a user name ``yes``
            or ``0123`` stays what it is.

    Raises:
        DocumentError: not YAML, a key twice in one mapping, an alias of more than a scalar, too
            long or nested too deeply.
    """
    _check_length(text)
    try:
        # Both are SafeLoaders.
        return yaml.load(text, Loader=_Strict if typed else _StrictText)  # noqa: S506
    except yaml.YAMLError as error:
        raise DocumentError(f"not YAML: {_yaml_fault(error)}") from error
    except RecursionError as error:
        raise DocumentError("nested too deeply") from error
    except _NOT_OF_ITS_KIND as error:
        raise DocumentError(f"not YAML: {error}; put it in quotes") from error


def parse_json(text: str) -> object:
    """Return what a JSON document says.

    Raises:
        DocumentError: not JSON, a key twice in one object, NaN, too long or nested too deeply.
    """
    _check_length(text)
    try:
        return json.loads(
            text, object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_int=_json_int
        )
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError(f"not JSON: {error}") from error
    except RecursionError as error:
        raise DocumentError("nested too deeply") from error


# What PyYAML raises for dates and numbers that look like ones and are none, and for scalars that
# are not what their tag says, as in ``!!bool perhaps`` or ``{!!set x: 1}``.
_NOT_OF_ITS_KIND = (ValueError, TypeError, LookupError, AttributeError)


def _yaml_fault(error: yaml.YAMLError) -> str:
    """Return the problem and where it is, without PyYAML's drawing of the text around it."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return " ".join(str(error).split())
    context = f"{error.context}, " if error.context else ""
    mark = error.problem_mark
    return f"{context}{error.problem}, line {mark.line + 1}, column {mark.column + 1}"


def _check_length(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise DocumentError(f"longer than {MOST_CHARACTERS} characters")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DocumentError(f"the key {twice!r} is there twice; remove one")
    return made


def _bounded(number: int) -> int:
    """Return a number that can be written down and made a float, which larger ones cannot."""
    if abs(number) > LARGEST_INTEGER:
        raise ValueError(f"a number of {number.bit_length()} bits is too large")
    return number


def _json_int(text: str) -> int:
    return _bounded(int(text))


def _refuse_constant(name: str) -> object:
    raise DocumentError(f"{name} is not JSON")


class _Strict(yaml.SafeLoader):
    """A safe loader that loses nothing and expands nothing."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        alias = self.peek_event() if self.check_event(yaml.AliasEvent) else None  # type: ignore[no-untyped-call]
        node = super().compose_node(parent, index)
        if alias is not None and not isinstance(node, yaml.ScalarNode):
            raise yaml.composer.ComposerError(
                None, None, "an alias of a list or mapping; write it out", alias.start_mark
            )
        return node

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        number: int = super().construct_yaml_int(node)
        return _bounded(number)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue  # refused, or not, where the keys are made
            name = self.construct_object(key)
            if name in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} is there twice; remove one", key.start_mark
                )
            seen.add(name)
        return super().construct_mapping(node, deep=deep)


_Strict.add_constructor("tag:yaml.org,2002:int", _Strict.construct_yaml_int)


class _StrictText(_Strict):
    """The same, with every scalar as it was written."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own attribute
