"""``slicewatch explain hpa``: connects, reads, computes, writes, and returns the exit status."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial

from rich.console import Console

from cli.explain import report
from cli.explain.cluster import Reader
from cli.explain.evidence import CannotScaleError, collect
from cli.explain.explanation import explanation
from slicewatch.kube.client import ApiServer
from slicewatch.kube.configuration import connect, namespace_of, users_kubeconfig

EXPLAINED, CANNOT_SCALE, CANNOT_EXPLAIN = 0, 1, 2
"""Exit statuses."""


class Output(StrEnum):
    """Forms of an explanation."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be explained, and where. Empty fields are as kubectl would have them."""

    name: str
    namespace: str = ""
    kubeconfig: str = ""
    context: str = ""
    output: Output = Output.TEXT


async def run(wanted: Wanted, finished: Callable[[int], None]) -> None:
    """Explain, write to standard output, and report the exit status.

    Raises:
        ConfigurationError: the kubeconfig cannot be used.
        CannotExplainError: something that is needed cannot be read.
    """
    files = users_kubeconfig(wanted.kubeconfig)
    namespace = wanted.namespace or namespace_of(files, wanted.context)
    reconnect = partial(connect, files, wanted.context)
    server = ApiServer(await reconnect(), reconnect)
    try:
        finished(await explain(server, wanted, namespace))
    finally:
        await server.close()


async def explain(
    reader: Reader,
    wanted: Wanted,
    namespace: str,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    console: Console | None = None,
) -> int:
    """Write an explanation and return the exit status.

    Raises:
        CannotExplainError: something that is needed cannot be read.
    """
    out = console or _console()
    try:
        found = explanation(await collect(reader, namespace, wanted.name, now()))
    except CannotScaleError as error:
        out.print(f"HPA {namespace}/{wanted.name} cannot scale: {error}", markup=False,
                  soft_wrap=True)  # fmt: skip
        return CANNOT_SCALE
    if wanted.output is Output.JSON:
        out.file.write(report.document(found))
    else:
        report.show(found, out)
    if found.blind:
        return CANNOT_EXPLAIN
    return EXPLAINED if found.works else CANNOT_SCALE


def _console() -> Console:
    console = Console(highlight=False)
    if console.width > report.COLUMNS or not console.is_terminal:
        console.width = report.COLUMNS
    return console
