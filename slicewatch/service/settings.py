"""Settings: a frozen dataclass per process, filled from flags, environment and a file.

A setting is declared once, as a field made by ``setting``: flag, environment variable, file key,
help text and reference page follow from it. Flags beat the environment, the environment beats
the file, the file beats the default. An unknown flag or key is an error that names the closest
match, and so is a variable that is nearly one of ours; the errors of all sources are reported
together.
"""

import argparse
import dataclasses
import math
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from slicewatch.service.documents import DocumentError, parse_json, parse_yaml
from slicewatch.suggestion import closest, did_you_mean

ENVIRONMENT_PREFIX = "SLICEWATCH_"

S = TypeVar("S")
T = TypeVar("T")


class SettingsError(ValueError):
    """The settings cannot be used; one line per fault, with its source and what to do."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What a setting declares besides its type and default."""

    help: str
    parse: Callable[[Any], Any] | None
    variable: str | None


def setting(
    default: T,
    *,
    help: str,  # noqa: A002 - the word of argparse
    parse: Callable[[Any], T] | None = None,
    variable: str | None = None,
) -> T:
    """Declare a field of a settings dataclass.

    Args:
        default: used where no source provides the setting.
        help: one or two sentences: what it does, its unit, why that default.
        parse: turns what a source provides (text, or a value from the file) into the field's type;
            raises ``ValueError`` saying what is expected. Default: by the annotation.
        variable: environment variable, if not ``SLICEWATCH_`` and the field's name.
    """
    metadata = {"setting": Declaration(help=help, parse=parse, variable=variable)}
    if isinstance(default, dict | list | set):  # each instance its own, as dataclasses demand
        made: T = dataclasses.field(default_factory=lambda: copy(default), metadata=metadata)
        return made
    field: T = dataclasses.field(default=default, metadata=metadata)
    return field


def duration(value: object) -> float:
    """Return seconds of ``15``, ``"15s"``, ``"250ms"``, ``"1m30s"`` or ``"2h"``; never below 0.

    Raises:
        ValueError: it is none of these, negative or not finite.
    """
    text = str(value).strip()
    if _NUMBER.fullmatch(text):
        seconds = float(text)
    elif _DURATION.fullmatch(text):
        seconds = sum(float(n) * _UNIT_SECONDS[unit] for n, unit in _PART.findall(text))
    else:
        seconds = math.inf
    if not math.isfinite(seconds):
        raise ValueError(f"{value!r} is not a valid duration; write it like 15s, 250ms or 1m30s")
    return seconds


_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DIGITS = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"
_NUMBER = re.compile(rf"(?:{_DIGITS})(?:e[+-]?[0-9]+)?")
_PART = re.compile(rf"({_DIGITS})(ms|s|m|h|d)")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One setting, as every source sees it."""

    name: str
    annotation: Any
    default: Any
    declaration: Declaration

    @property
    def flag(self) -> str:
        """Return the command line flag."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """Return the environment variable."""
        return self.declaration.variable or ENVIRONMENT_PREFIX + self.name.upper()

    @property
    def default_text(self) -> str:
        """Return the default as it would be passed to the flag; empty for no default."""
        if isinstance(self.default, bool):
            return str(self.default).lower()
        if isinstance(self.default, dict):
            return ",".join(f"{key}={value}" for key, value in self.default.items())
        if isinstance(self.default, tuple | list):
            return ",".join(map(str, self.default))
        return "" if self.default is None else str(self.default)

    def read(self, value: object) -> Any:  # noqa: ANN401 - the type is the field's annotation
        """Return the value in the field's type; raise ``ValueError`` if it cannot be."""
        if hidden := next((text for text in _texts(value) if not text.isprintable()), None):
            # Bytes that are not UTF-8 arrive as surrogates, and no page could be rendered.
            raise ValueError(f"{hidden!r} has characters that cannot be shown")
        if self.declaration.parse is not None:
            return self.declaration.parse(value)
        try:
            return msgspec.convert(_shaped(value, self.annotation), self.annotation, strict=False)
        except msgspec.ValidationError as error:
            hint = "; write true or false" if self.annotation is bool else ""
            raise ValueError(f"{value!r} is not valid: {error}{hint}") from error


def fields(cls: type) -> tuple[Field, ...]:
    """Return the settings of a dataclass in the order of declaration."""
    hints = get_type_hints(cls)
    return tuple(
        Field(
            name=f.name,
            annotation=hints[f.name],
            default=f.default if f.default_factory is dataclasses.MISSING else f.default_factory(),
            declaration=f.metadata["setting"],
        )
        for f in dataclasses.fields(cls)
        if "setting" in f.metadata
    )


def load(cls: type[S], arguments: Sequence[str], environment: Mapping[str, str]) -> S:
    """Return settings from all sources.

    Raises:
        SettingsError: with every fault that was found.
        SystemExit: 0 after ``--help``.
    """
    known = fields(cls)
    flags, faults = _from_flags(cls, known, arguments)
    values: dict[str, Any] = {}
    if path := flags.pop("config", None) or environment.get(ENVIRONMENT_PREFIX + "CONFIG"):
        values |= _from_file(Path(path), known, faults)
    faults += _mistyped_variables(known, environment)
    variables = {f.name: environment[f.variable] for f in known if f.variable in environment}
    values |= _read(known, variables, lambda f: f"environment {f.variable}", faults)
    values |= _read(known, flags, lambda f: f"flag {f.flag}", faults)
    if faults:
        raise SettingsError(faults)
    try:
        return cls(**values)
    except SettingsError:
        raise
    except ValueError as error:
        raise SettingsError([str(error)]) from error


def _from_flags(
    cls: type, known: Sequence[Field], arguments: Sequence[str]
) -> tuple[dict[str, Any], list[str]]:
    summary = (cls.__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(
        prog="slicewatch " + cls.__name__.removesuffix("Settings").lower(),
        description=summary, allow_abbrev=False, argument_default=argparse.SUPPRESS,
        exit_on_error=False,
    )  # fmt: skip
    parser.add_argument("--config", metavar="FILE", help="YAML or JSON file with settings")
    for field in known:
        text = (
            f"{field.declaration.help} [{field.variable}; default {field.default_text or 'none'}]"
        )
        bare: dict[str, Any] = {"nargs": "?", "const": "true"} if field.annotation is bool else {}
        parser.add_argument(field.flag, metavar="VALUE", help=text.replace("%", "%%"), **bare)
    try:
        values, unknown = parser.parse_known_args(list(arguments))
    except argparse.ArgumentError as error:
        return {}, [f"flag {error.argument_name}: {error.message}"]
    flags = [f.flag for f in known] + ["--config"]
    faults = [f"unknown argument {a}{did_you_mean(a.partition('=')[0], flags)}" for a in unknown]
    return dict(vars(values)), faults


def _mistyped_variables(known: Sequence[Field], environment: Mapping[str, str]) -> list[str]:
    """Refuse near misses only: the prefix is also used by our other processes and the kubelet."""
    variables = {f.variable for f in known} | {ENVIRONMENT_PREFIX + "CONFIG"}
    names = {v.removeprefix(ENVIRONMENT_PREFIX): v for v in variables}
    faults = []
    ours = (v for v in environment if v.startswith(ENVIRONMENT_PREFIX))
    for variable in sorted(v for v in ours if not _SERVICE_LINK.search(v)):
        name = variable.removeprefix(ENVIRONMENT_PREFIX)
        close = closest(name, names, cutoff=0.8)
        if variable not in variables and close:
            faults.append(
                f"environment {variable}: unknown variable; did you mean {names[close]}?"
            )
    return faults


# The kubelet announces each service of the namespace to every pod in such variables, ours too:
# the Service slicewatch-exporter becomes SLICEWATCH_EXPORTER_SERVICE_HOST and so on.
_SERVICE_LINK = re.compile(
    r"_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$"
)


def _from_file(path: Path, known: Sequence[Field], faults: list[str]) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        # YAML does not allow tabs, with which JSON may be indented.
        content = parse_json(text) if path.suffix == ".json" else parse_yaml(text)
    except OSError as error:
        faults.append(f"file {path}: cannot be read: {error.strerror}")
        return {}
    except UnicodeDecodeError as error:
        faults.append(f"file {path}: not text in UTF-8: {error}")
        return {}
    except DocumentError as error:
        faults.append(f"file {path}: {error}")
        return {}
    if content is None:
        return {}
    if not isinstance(content, dict):
        faults.append(f"file {path}: must map names to settings, not {type(content).__name__}")
        return {}
    names = {f.name for f in known}
    unknown = [key for key in content if key not in names]
    faults += [f"file {path}: unknown key {k!r}{did_you_mean(str(k), names)}" for k in unknown]
    values = {key: value for key, value in content.items() if key in names}
    return _read(known, values, lambda f: f"file {path}: {f.name}", faults)


def _read(
    known: Sequence[Field],
    values: Mapping[str, Any],
    where: Callable[[Field], str],
    faults: list[str],
) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for field in known:
        if field.name in values:
            try:
                read[field.name] = field.read(values[field.name])
            except (ValueError, TypeError) as error:
                faults.append(f"{where(field)}: {error}")
    return read


def _texts(value: object) -> list[str]:
    """Return the text that a source provides, or those of the list or mapping in a file."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    parts = value if isinstance(value, list) else [value]
    return [part for part in parts if isinstance(part, str)]


def _shaped(value: object, annotation: object) -> object:
    """Split the text of a flag or variable for the container types; leave anything else."""
    if isinstance(annotation, types.UnionType):
        annotation = next(a for a in get_args(annotation) if a is not types.NoneType)
    if not isinstance(value, str):
        return value
    if get_origin(annotation) is tuple:
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if get_origin(annotation) is dict:
        return dict(_pair(part) for part in value.split(",") if part.strip())
    return value.strip()


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} is not a valid pair; write it like name=value,name=value")
    return key.strip(), value.strip()
