"""``slicewatch health status``: what the monitors have written to nodes and to their budget.

Reads with the caller's rights and writes nothing. It says what is on the objects, not what a
monitor would find now; a condition that nobody keeps up is called old.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from health import book, names
from health.book import CONFIG_MAP_NAME, Book, BookError
from health.checks.model import Condition
from health.node import now_of
from slicewatch.kube.client import ApiServer
from slicewatch.kube.configuration import connect, namespace_of, users_kubeconfig
from slicewatch.kube.errors import KubeError, NotFoundError
from slicewatch.kube.nodes import WHOLE_NODE, NodeCondition, WholeNode
from slicewatch.kube.objects import CONFIG_MAP, Selection
from slicewatch.kube.protocol import Kube

WELL, ILL = 0, 1
"""Exit statuses; 2 is for what cannot be found out."""

PAGE: Final = 500
# Monitors renew conditions every five minutes.
OLD_SECONDS: Final = 900.0
OURS: Final = frozenset(Condition)


class NoStatusError(Exception):
    """The status cannot be read; the message says of what and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Whose status; an empty node means every one that a monitor has written to."""

    node: str = ""
    namespace: str = ""
    kubeconfig: str = ""
    context: str = ""


async def run(wanted: Wanted, finished: Callable[[int], None]) -> None:
    """Print the status, and report the exit status.

    Raises:
        ConfigurationError: the kubeconfig cannot be used.
        NoStatusError: the nodes cannot be read.
    """
    files = users_kubeconfig(wanted.kubeconfig)
    namespace = wanted.namespace or namespace_of(files, wanted.context)
    reconnect = partial(connect, files, wanted.context)
    server = ApiServer(await reconnect(), reconnect)
    try:
        status, text = await report(server, wanted.node, namespace, datetime.now(UTC))
    finally:
        await server.close()
    print(text, end="")
    finished(status)


async def report(kube: Kube, node: str, namespace: str, now: datetime) -> tuple[int, str]:
    """Return the exit status and what is to be printed.

    Args:
        kube: the cluster.
        node: empty for all that a monitor has written to.
        namespace: of the monitors.
        now: what the age of a condition is reckoned from.

    Raises:
        NoStatusError: the nodes cannot be read.
    """
    try:
        nodes = [await kube.get(WHOLE_NODE, node)] if node else await _monitored(kube)
    except KubeError as error:
        raise NoStatusError(str(error)) from error
    lines = [line for one in nodes for line in node_lines(one, now)]
    lines += await _budget_lines(kube, namespace)
    ill = any(_is_true(one, Condition.UNHEALTHY) or now_of(one).ours for one in nodes)
    return ILL if ill else WELL, "\n".join(lines) + "\n"


def node_lines(node: WholeNode, now: datetime) -> Iterator[str]:
    """Yield what monitors have written to a node."""
    yield f"{node.metadata.name}: {_cordon(node)}"
    marks = {
        names.HOLD: "on hold by a human",
        names.CLEAR: "faults are to be cleared",
    }
    for key, meaning in marks.items():
        if key in node.annotations:
            yield f"  {meaning} ({key}={node.annotations[key]})"
    ours = [condition for condition in node.status.conditions if condition.type in OURS]
    if not ours:
        yield "  no monitor has written a condition"
    for condition in ours:
        yield f"  {condition.type}={condition.status}{_facts(condition, now)}"


def budget_lines(book: Book, namespace: str) -> Iterator[str]:
    """Yield who holds slots of the budget, and what people have set in it."""
    yield f"Budget (ConfigMap {namespace}/{CONFIG_MAP_NAME}): slots held: {len(book.slots)}"
    for node in sorted(book.slots):
        slot = book.slot(node)
        if slot is not None:
            yield f"  {node} for {slot.check or 'an unknown check'}{_since(slot.since)}"
    if book.paused:
        yield f"  new cordons are paused: {book.paused_reason or 'no reason given'}"
    if book.paused_pools:
        yield f"  new cordons are paused for pools {', '.join(sorted(book.paused_pools))}"
    if book.allowed:
        yield f"  bursts are let through for {', '.join(sorted(book.allowed))}"


async def _monitored(kube: Kube) -> list[WholeNode]:
    found: list[WholeNode] = []
    more = ""
    while True:
        page = await kube.list(WHOLE_NODE, Selection(), limit=PAGE, more=more)
        found += (node for node in page.objects if _is_monitored(node))
        more = page.more
        if not more:
            return found


def _is_monitored(node: WholeNode) -> bool:
    return any(key.startswith(names.PREFIX) for key in node.annotations) or any(
        condition.type in OURS for condition in node.status.conditions
    )


async def _budget_lines(kube: Kube, namespace: str) -> Sequence[str]:
    try:
        data = (await kube.get(CONFIG_MAP, CONFIG_MAP_NAME, namespace)).data
        return list(budget_lines(book.read(data), namespace))
    except NotFoundError:
        return [f"Budget: no ConfigMap {namespace}/{CONFIG_MAP_NAME}, so no node holds a slot"]
    except (KubeError, BookError) as error:
        return [f"Budget: cannot be read: {error}"]


def _cordon(node: WholeNode) -> str:
    now = now_of(node)
    if now.ours:
        return f"cordoned by its monitor for {now.annotations[names.CORDONED] or 'unknown faults'}"
    if now.marked:
        return "uncordoned by a human after its monitor had cordoned it"
    return "cordoned by somebody else" if now.unschedulable else "not cordoned"


def _is_true(node: WholeNode, kind: Condition) -> bool:
    condition = node.condition(kind)
    return condition is not None and condition.status == "True"


def _facts(condition: NodeCondition, now: datetime) -> str:
    heard, changed = condition.last_heartbeat_time, condition.last_transition_time
    facts = f" {condition.reason}: {condition.message}" if condition.reason else ""
    if changed is not None:
        facts += f" (since {changed:%Y-%m-%d %H:%M} UTC)"
    if heard is not None and (now - heard).total_seconds() > OLD_SECONDS:
        facts += f" OLD: last written {heard:%Y-%m-%d %H:%M} UTC"
    return facts


def _since(seconds: float) -> str:
    if not seconds:
        return ""
    try:
        return f" since {datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):  # as somebody may have written, in milliseconds
        return f" since a time that cannot be: {seconds:g}"
