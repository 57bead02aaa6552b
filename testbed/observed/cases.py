"""The cases of ``alerts/tests``, as series with times: each in a cluster of its own.

promtool evaluates them on a clock of its own. Here they become the past of a real Prometheus, all at
once, which shows besides that no rule mixes clusters.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

TESTS: Final = Path(__file__).parents[2] / "alerts" / "tests"
# The longest range of a rule is a day.
PAST_SECONDS: Final = 90_000.0
_UNIT_SECONDS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PART: Final = re.compile(r"(?P<first>_|stale|-?[\d.]+)(?P<step>[+-][\d.]+)?(?:x(?P<times>\d+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One alert in one situation.

    Attributes:
        cluster: the label that its series get.
        fires: with which labels, beside those of the alert itself; empty where it stays silent.
        series: by name and labels, the values every ``step_seconds``; None for no sample.
        at_seconds: when it is looked at, after the first sample.
    """

    alert: str
    cluster: str
    fires: tuple[dict[str, str], ...]
    series: tuple[tuple[str, tuple[float | None, ...]], ...]
    step_seconds: float
    at_seconds: float


def cases() -> list[Case]:
    """Return the cases of alerts in all files."""
    found: list[Case] = []
    for file in sorted(TESTS.glob("*_test.yaml")):
        for test in yaml.safe_load(file.read_text())["tests"]:
            found += [
                _case(test, rule, f"{file.stem}-{len(found) + number}")
                for number, rule in enumerate(test.get("alert_rule_test", ()))
            ]
    return found


def _case(test: dict[str, Any], rule: dict[str, Any], cluster: str) -> Case:
    return Case(
        alert=rule["alertname"],
        cluster=cluster,
        fires=tuple(expected["exp_labels"] for expected in rule.get("exp_alerts") or ()),
        series=tuple((s["series"], tuple(expand(s["values"]))) for s in test["input_series"]),
        step_seconds=seconds(test["interval"]),
        at_seconds=seconds(rule["eval_time"]),
    )


def seconds(text: str) -> float:
    """Return the seconds of a duration such as ``15m``."""
    return float(text[:-1]) * _UNIT_SECONDS[text[-1]]


def expand(values: str) -> Iterator[float | None]:
    """Yield the values of promtool's notation: ``1x5`` is six of them, ``0+30x9`` rises by 30.

    Raises:
        ValueError: it is another notation.
    """
    for word in values.split():
        part = _PART.fullmatch(word)
        if part is None:
            raise ValueError(f"{word!r}: no value of promtool's that this program reads")
        times = int(part["times"] or 0) + (part["first"] != "_" or not part["times"])
        for number in range(times):
            if part["first"] in {"_", "stale"}:
                yield None
            else:
                yield float(part["first"]) + number * float(part["step"] or 0)


def openmetrics(found: list[Case], now: float) -> str:
    """Return the samples of the cases as OpenMetrics, each looked at now, in seconds since 1970."""
    lines: list[str] = []
    for case in found:
        for name, values in case.series:
            labelled = _labelled(name, case.cluster)
            for number, value in enumerate(values):
                at = number * case.step_seconds - case.at_seconds
                if value is not None and at >= -PAST_SECONDS:
                    lines.append(f"{labelled} {_moment(name, value, now, case)} {now + at:.3f}")
    return "\n".join([*lines, "# EOF", ""])


def _labelled(name: str, cluster: str) -> str:
    bare, _, labels = name.partition("{")
    inside = labels.rstrip("}")
    return f'{bare}{{cluster="{cluster}"{"," if inside else ""}{inside}}}'


def _moment(name: str, value: float, now: float, case: Case) -> float:
    """Return a value; what is a moment counts from the first sample in promtool, where that is 0."""
    return value + now - case.at_seconds if "_timestamp_seconds" in name else value
