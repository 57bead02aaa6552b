"""From YAML to a scenario that is known to make sense, or an error that helps to write one.

An error says where (``nodes[0].gpus[1].mig``), what is wrong and what to write instead.
"""

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

import msgspec
import yaml

from simulator.checking import check
from simulator.errors import ScenarioError
from simulator.scenario import FAULTS, Bytes, Part, Scenario, Seconds
from slicewatch.hardware import suggest
from slicewatch.service.settings import duration

BYTES_OF: Final = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "MB": 10**6,
                   "GB": 10**9}  # fmt: skip
SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")


class _Loader(yaml.SafeLoader):
    """Takes ``1e-3`` for a number, as YAML 1.2 does; 1.1 wants a point in it."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+"),
    list("-+0123456789"),
)


def load(source: Path | str) -> Scenario:
    """Read a scenario from a file (a path), or from YAML text (a string).

    Raises:
        ScenarioError: the file cannot be read, is no YAML, or describes no possible fleet.
    """
    if isinstance(source, str):
        return parse(source)
    try:
        text = source.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError(str(source), f"cannot be read: {error.strerror}") from error
    return parse(text)


def named(name: Path | str) -> Scenario:
    """Read a scenario that comes with this project, such as ``demo``, or else a file.

    Raises:
        ScenarioError: there is neither, or it describes no possible fleet.
    """
    folder = resources.files("simulator") / "scenarios"
    names = sorted(
        Path(file.name).stem for file in folder.iterdir() if file.name.endswith(".yaml")
    )
    if isinstance(name, str) and name in names:
        return parse((folder / f"{name}.yaml").read_text(encoding="utf-8"))
    path = Path(name)
    if not path.exists():
        raise ScenarioError(
            str(name), f"no such file, nor is it shipped{suggest(str(name), names)}"
        )
    return load(path)


def parse(text: str) -> Scenario:
    """Read a scenario from YAML text.

    Raises:
        ScenarioError: it is no YAML, or describes no possible fleet.
    """
    try:
        document = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "the text"
        raise ScenarioError(where, f"is no YAML: {error.problem}") from error
    try:
        scenario = msgspec.convert(document, Scenario, dec_hook=_convert)
    except msgspec.ValidationError as error:
        raise _explained(str(error)) from error
    check(scenario)
    return scenario


def _convert(wanted: type, value: Any) -> Any:  # noqa: ANN401 - msgspec's hook: any YAML value
    if wanted is Seconds:
        return seconds_in(value)
    if wanted is Bytes:
        return bytes_in(value)
    raise NotImplementedError(f"the scenario language has no {wanted.__name__}")


def seconds_in(value: object) -> Seconds:
    """Return the time that a number or text such as ``1m30s`` states.

    Raises:
        ValueError: it is no time.
    """
    return Seconds(duration(value))


def bytes_in(value: object) -> Bytes:
    """Return the size that a number or text such as ``40GiB`` states.

    Raises:
        ValueError: it is no size.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return Bytes(value)
    match = SIZE.fullmatch(value) if isinstance(value, str) else None
    if match and match[2] in BYTES_OF:
        return Bytes(float(match[1]) * BYTES_OF[match[2]])
    raise ValueError(f"{value!r} is no size; write bytes, or such as 512MiB, 40GiB, 16GB")


# msgspec has no structured errors; these are the shapes of its messages.
PLACE: Final = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<where>[^`]*)`)?", re.DOTALL)
UNKNOWN_KEY: Final = re.compile(r"Object contains unknown field `(.*)`")
MISSING_KEY: Final = re.compile(r"Object missing required field `(.*)`")
WRONG_TAG: Final = re.compile(r"Invalid value '(.*)'")


def _explained(message: str) -> ScenarioError:
    match = PLACE.fullmatch(message)
    what, where = (match["what"], match["where"] or "scenario") if match else (message, "scenario")
    if unknown := UNKNOWN_KEY.fullmatch(what):
        return ScenarioError(
            where, f"no key {unknown[1]!r} here{_nearest(unknown[1], _keys_at(where))}"
        )
    if missing := MISSING_KEY.fullmatch(what):
        return ScenarioError(where, f"the key {missing[1]!r} is missing; add it")
    if (tag := WRONG_TAG.fullmatch(what)) and where.endswith(".kind"):
        kinds = [str(fault.__struct_config__.tag) for fault in FAULTS]
        return ScenarioError(where, f"no kind of fault {tag[1]!r}{suggest(tag[1], kinds)}")
    return ScenarioError(where, what[:1].lower() + what[1:])


def _nearest(key: str, keys: list[str]) -> str:
    found = suggest(key, keys)
    return found if found.startswith("; did you mean") else "; leave it out"


def _keys_at(where: str) -> list[str]:
    parts: set[type[Part]] = {Scenario}
    for step in [] if where == "scenario" else where.split("."):
        key = step.partition("[")[0]
        parts = {inner for part in parts for inner in _parts_behind(part, key)}
    return sorted({key for part in parts for key in part.__struct_encode_fields__})


def _parts_behind(part: type[Part], key: str) -> Iterator[type[Part]]:
    fields = dict(zip(part.__struct_encode_fields__, part.__struct_fields__, strict=True))
    if key in fields:
        yield from _parts_in(get_type_hints(part)[fields[key]])


def _parts_in(annotation: Any) -> Iterator[type[Part]]:  # noqa: ANN401 - any annotation
    if isinstance(annotation, type) and issubclass(annotation, Part):
        yield annotation
    for inner in get_args(annotation):
        yield from _parts_in(inner)
