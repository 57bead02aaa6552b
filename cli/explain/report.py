"""An explanation as text of at most 100 columns."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from advisor.autoscaler.behavior import Limit, Restraint
from advisor.autoscaler.proposal import Aim, Proposal, Verdict
from cli.explain.explanation import Explanation, MetricPart, PodRow
from cli.explain.wording import age, counted, decimal

COLUMNS: Final = 100
MOST_PODS: Final = 40
# Of an explanation that is none of pods, these say nothing that is not shown elsewhere.
_SHOWN_ELSEWHERE: Final = {"kind", "apiVersion", "metric", "labelSelector", "metricLabelSelector"}
_LIMITS: Final = {
    Limit.SCALE_UP_RATE: "at most {most} now, by the rate of scaling up",
    Limit.SCALE_DOWN_RATE: "at least {fewest} now, by the rate of scaling down",
    Limit.MOST: "at most {most}, by maxReplicas",
    Limit.FEWEST: "at least {fewest}, by minReplicas",
}


def show(explanation: Explanation, console: Console) -> None:
    """Write an explanation; its last line is the verdict."""
    console.print(
        f"[bold]HPA {explanation.namespace}/{explanation.name}[/] scales {explanation.target}: "
        f"{counted(explanation.decision.current, 'replica')} now"
    )
    console.print(
        f"selector {escape(explanation.selector)} matches {counted(explanation.matched_pods, 'pod')}"
    )
    for row in explanation.conditions:
        plain = f"{row.plain} " if row.plain else ""
        said = escape(f"{row.type} {row.status}: {plain}({row.reason}: {row.message})")
        console.print(_indented(said))
    for number, part in enumerate(explanation.metrics, start=1):
        console.print()
        _metric(number, part, explanation, console)
    console.print()
    for line in _decision(explanation):
        console.print(escape(line))
    if explanation.hints:
        console.print("\n[bold]Hints[/]")
        for hint in explanation.hints:
            console.print(_indented(f"- {escape(hint)}"))
    style = "bold" if explanation.works and not explanation.blind else "bold red"
    # On one line, however long: scripts take the last line.
    console.print(f"\n[{style}]{escape(explanation.verdict)}[/]", soft_wrap=True)


def _indented(content: str | Table, columns: int = 2) -> Padding:
    return Padding(content, (0, 0, 0, columns), expand=False)


def document(explanation: Explanation) -> str:
    """Return an explanation as JSON."""
    return msgspec.json.format(msgspec.json.encode(explanation)).decode() + "\n"


def _metric(number: int, part: MetricPart, whole: Explanation, console: Console) -> None:
    console.print(f"[bold]{number}. {escape(part.proposal.metric)}[/]")
    for line in _answer(part):
        console.print(_indented(escape(line)))
    # The odd ones first: of a thousand pods that count, a few will do.
    rows = sorted(part.pods, key=lambda row: row.counts == "counted")[:MOST_PODS]
    if rows:
        console.print(_indented(_pods(rows)))
    for line in (line for row in rows for line in _sources(row)):
        console.print(_indented(escape(line), 4))
    for line in (*_left_out(part), *_series(part), *_told(part.tree)):
        console.print(_indented(escape(line)))
    if not part.fault:  # It stands above, and nothing is computed from it.
        for line in _computation(part.proposal, whole.decision.current):
            console.print(_indented(escape(line)))


def _answer(part: MetricPart) -> Iterator[str]:
    if part.path:
        yield f"GET {part.path}"
    server = f" of {part.server}" if part.server else ""
    code = f"{part.code}{server}: " if part.code is not None else ""
    yield code + (part.denied or part.fault or counted(part.proposal.sources, "value"))


def _left_out(part: MetricPart) -> Iterator[str]:
    if (more := len(part.pods) - MOST_PODS) > 0:
        yield f"and {counted(more, 'more pod')}; --output json has all"


def _series(part: MetricPart) -> Iterator[str]:
    for one in part.series:
        labels = ", ".join(f"{key}={value}" for key, value in one.labels.items()) or "no labels"
        old = "" if one.age_seconds is None else f", {age(one.age_seconds)} old"
        yield f"{labels}: {decimal(one.value)}{old}"


def _pods(rows: Sequence[PodRow]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("pod", "node", "phase", "ready", "value", "age", "window", "counts as"):
        table.add_column(name, overflow="fold")
    for row in rows:
        window = "-" if row.window_seconds is None else f"{row.window_seconds} s"
        table.add_row(
            escape(row.name), escape(row.node or "-"), row.phase or "-",
            "yes" if row.ready else "no", "-" if row.value is None else decimal(row.value),
            age(row.age_seconds), window, row.counts,
        )  # fmt: skip
    return table


def _sources(row: PodRow) -> Iterator[str]:
    if row.why:
        yield f"{row.name}: {row.why}"
    for device in row.devices:
        found = " ".join(str(device[k]) for k in ("model", "profile", "uuid") if device.get(k))
        value, rule = device.get("value"), device.get("rule")
        why = device.get("why")
        made = f"{_value(value)} ({rule})" if rule else _value(value)
        inputs = device.get("inputs")
        if isinstance(inputs, dict):
            shares = ((k, inputs[k]) for k in ("W", "B", "m", "n") if k in inputs)
            made += "; " + ", ".join(f"{k} {_value(v)}" for k, v in shares)
        yield f"{row.name}: {found}: {why or made}"


def _told(tree: Mapping[str, Any] | None) -> Iterator[str]:
    """Say what a server tells besides of objects, such as a query."""
    for key, value in (tree or {}).items():
        if key not in _SHOWN_ELSEWHERE and isinstance(value, str | int | float) and value != "":
            yield f"{key}: {value}"


def _computation(proposal: Proposal, current: int) -> Iterator[str]:
    if proposal.fault:
        yield f"=> no replicas: {proposal.fault}"
        return
    scale = 1 if proposal.aim is Aim.UTILIZATION else 1000
    percent = " %" if proposal.aim is Aim.UTILIZATION else ""
    target = decimal((proposal.target or 0) / scale) + percent
    if proposal.usage is None or proposal.ratio is None:
        yield f"target {target} ({proposal.aim})"
    else:
        usage = decimal(proposal.usage / scale) + percent
        yield f"{usage} / target {target} ({proposal.aim}) = ratio {decimal(proposal.ratio)}"
    if proposal.tolerance is not None:
        down, up = 1 - proposal.tolerance.down, 1 + proposal.tolerance.up
        yield f"tolerance: {decimal(down)} to {decimal(up)} keeps the replicas"
    yield from _assumed(proposal)
    if proposal.verdict is not Verdict.SCALED:
        yield f"=> {counted(proposal.replicas or 0, 'replica')}: {proposal.verdict}"
    elif proposal.pods is None:
        yield f"=> {counted(proposal.replicas or 0, 'replica')}"
    else:
        ratio = proposal.ratio if proposal.assumed_ratio is None else proposal.assumed_ratio
        product = f"{decimal(ratio or 0.0)} x {counted(proposal.pods, 'pod')}"
        yield f"=> {product}, rounded up = {counted(proposal.replicas or 0, 'replica')} (now {current})"


def _assumed(proposal: Proposal) -> Iterator[str]:
    groups, ratio = proposal.groups, proposal.assumed_ratio
    if groups is None or ratio is None:
        return
    up = (proposal.ratio or 0.0) > 1
    assumed = [
        f"{counted(len(groups.missing), 'pod')} without a value as "
        + ("0" if up else "at the target")
    ]
    if up and groups.unready:
        assumed.append(f"{counted(len(groups.unready), 'pod')} not ready yet as 0")
    yield f"careful with {' and '.join(assumed)}: ratio {decimal(ratio)}"


def _decision(explanation: Explanation) -> Iterator[str]:
    decision = explanation.decision
    yield f"Decision: {decision.course}"
    if decision.winner is not None and len(decision.proposals) > 1:
        yield f"the largest proposal counts: {decision.proposals[decision.winner].metric}"
    restraint = decision.restraint
    if restraint is None:
        return
    yield f"recommended: {counted(restraint.recommended, 'replica')}"
    if restraint.limit in _LIMITS:
        bounds = {"most": restraint.most, "fewest": restraint.fewest}
        yield f"limited: {_LIMITS[restraint.limit].format_map(bounds)}"
    yield from _window(explanation, restraint)


def _window(explanation: Explanation, restraint: Restraint) -> Iterator[str]:
    """Say what the controller remembers and we cannot know."""
    current = explanation.decision.current
    if restraint.desired < current and restraint.down_window_seconds:
        now = "is holding" if explanation.held else "may hold"
        yield (
            f"scaling down waits until no recommendation of the last "
            f"{restraint.down_window_seconds} s was higher; the controller {now} the replicas"
        )
    if restraint.desired > current and restraint.up_window_seconds:
        yield (
            f"scaling up waits until no recommendation of the last "
            f"{restraint.up_window_seconds} s was lower"
        )


def _value(value: object) -> str:
    return decimal(value) if isinstance(value, int | float) else str(value)
