"""From YAML to a scenario that is known to make sense, or an error that helps to fix it.

An error names the place (``nodes[0].gpus[1].mig``), what is wrong and what to write instead.
"""

import re
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any, Final, get_args

import msgspec
import yaml

from simulator.checking import check
from simulator.errors import ScenarioError
from simulator.language import Bytes, Part, Seconds
from simulator.scenario import Fault, Scenario
from slicewatch.service.settings import duration
from slicewatch.suggestion import choices, did_you_mean

BYTES_OF: Final = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "MB": 10**6,
                   "GB": 10**9}  # fmt: skip
SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")


def named(name: Path | str) -> Scenario:
    """Read a scenario that is shipped, such as ``demo``, or else a file.

    Raises:
        ScenarioError: there is neither, or it is not a valid scenario.
    """
    folder = resources.files("simulator") / "scenarios"
    names = sorted(
        Path(file.name).stem for file in folder.iterdir() if file.name.endswith(".yaml")
    )
    if isinstance(name, str) and name in names:
        return parse((folder / f"{name}.yaml").read_text(encoding="utf-8"))
    try:
        return parse(Path(name).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        hint = choices(str(name), names)
        raise ScenarioError(str(name), f"no such file or shipped scenario{hint}") from error
    except OSError as error:
        raise ScenarioError(str(name), f"cannot be read: {error.strerror}") from error


def parse(text: str) -> Scenario:
    """Read a scenario from YAML text.

    Raises:
        ScenarioError: it is not YAML, or not a valid scenario.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "the text"
        raise ScenarioError(where, f"is not valid YAML: {error.problem}") from error
    try:
        # Not strict, since YAML 1.1 takes 1e-3 for text.
        scenario = msgspec.convert(document, Scenario, strict=False, dec_hook=_convert)
    except msgspec.ValidationError as error:
        raise _explained(str(error)) from error
    check(scenario)
    return scenario


def _convert(wanted: type, value: Any) -> Any:  # noqa: ANN401 - msgspec's hook: any YAML value
    if wanted is Seconds:
        return Seconds(duration(value))
    if wanted is Bytes:
        return bytes_in(value)
    raise NotImplementedError(f"the scenario language has no {wanted.__name__}")


def bytes_in(value: object) -> Bytes:
    """Return the size that a number or text such as ``40GiB`` states.

    Raises:
        ValueError: it is not a size.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return Bytes(value)
    match = SIZE.fullmatch(value) if isinstance(value, str) else None
    if match and match[2] in BYTES_OF:
        return Bytes(float(match[1]) * BYTES_OF[match[2]])
    raise ValueError(
        f"{value!r} is not a valid size; write bytes, or for example 512MiB, 40GiB, 16GB"
    )


# msgspec has no structured errors; these are the shapes of its messages.
PLACE: Final = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<where>[^`]*)`)?", re.DOTALL)
UNKNOWN_KEY: Final = re.compile(r"Object contains unknown field `(.*)`")
MISSING_KEY: Final = re.compile(r"Object missing required field `(.*)`")
NAME: Final = re.compile(r"[a-z_]+")
WRONG_TAG: Final = re.compile(r"Invalid value '(.*)'")


def _explained(message: str) -> ScenarioError:
    match = PLACE.fullmatch(message)
    what, where = (match["what"], match["where"] or "scenario") if match else (message, "scenario")
    if unknown := UNKNOWN_KEY.fullmatch(what):
        hint = did_you_mean(unknown[1], _keys_at(where)) or "; remove it"
        return ScenarioError(where, f"no key {unknown[1]!r} here{hint}")
    if missing := MISSING_KEY.fullmatch(what):
        return ScenarioError(where, f"the key {missing[1]!r} is missing; add it")
    if (tag := WRONG_TAG.fullmatch(what)) and where.endswith(".kind"):
        kinds = [str(fault.__struct_config__.tag) for fault in get_args(Fault)]
        return ScenarioError(where, f"no fault of kind {tag[1]!r}{choices(tag[1], kinds)}")
    return ScenarioError(where, what[:1].lower() + what[1:])


def _keys_at(where: str) -> set[str]:
    """Return the keys that a scenario can have at a place such as ``nodes[0].gpus[1]``."""
    parts = {Scenario} if where == "scenario" else _walk({Scenario}, NAME.findall(where))
    return {field.encode_name for part in parts for field in msgspec.structs.fields(part)}


def _walk(parts: Iterable[type[Part]], names: Iterable[str]) -> set[type[Part]]:
    for name in names:
        fields = [field for part in parts for field in msgspec.structs.fields(part)]
        parts = set().union(*(_parts(f.type) for f in fields if f.encode_name == name))
    return set(parts)


def _parts(annotation: object) -> set[type[Part]]:
    """Return the parts of the language that a type is made of."""
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return {annotation}
    return set().union(*map(_parts, get_args(annotation)))
