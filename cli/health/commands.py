"""The subcommands of ``slicewatch health`` that people type, as typer shows them."""

from pathlib import Path
from typing import Annotated

import typer

from slicewatch.service import logs, tasks

health = typer.Typer(
    help="Ask the health monitors of nodes; without a subcommand, run the monitor of this node.",
    no_args_is_help=True,
)


@health.command()
def status(
    node: Annotated[
        str, typer.Argument(help="One node; without it, each that a monitor has written to.")
    ] = "",
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Of the monitors; of the context otherwise.")
    ] = "",
    kubeconfig: Annotated[
        str, typer.Option(help="As of kubectl: this file, $KUBECONFIG or ~/.kube/config.")
    ] = "",
    context: Annotated[str, typer.Option(help="A context of the kubeconfig.")] = "",
) -> None:
    """Say what the monitors have found, whose the cordons are, and who holds the budget.

    Exit status: 0 if no node is unhealthy, 1 if one is, 2 if that could not be found out.
    """
    from cli.health.status import NoStatusError, Wanted, run
    from slicewatch.kube.configuration import ConfigurationError

    logs.configure("error")
    wanted = Wanted(node=node, namespace=namespace, kubeconfig=kubeconfig, context=context)
    statuses: list[int] = []
    failed = tasks.run(
        lambda: run(wanted, statuses.append),
        name="slicewatch health status",
        user_errors=(NoStatusError, ConfigurationError),
    )
    raise typer.Exit(failed or next(iter(statuses), 1))


@health.command()
def simulate(
    file: Annotated[
        str,
        typer.Argument(
            help="Answers of /evidence, one per line (.jsonl), or a scenario of the simulator."
        ),
    ],
    node: Annotated[str, typer.Option(help="Of the scenario; its first otherwise.")] = "",
    interval: Annotated[str, typer.Option(help="Time between two polls.")] = "60s",
    duration: Annotated[
        str, typer.Option("--for", help="How much of the scenario to play.")
    ] = "1h",
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print each poll, not only what changes.")
    ] = False,
) -> None:
    """Play what happens to a node, and print every decision with its time; writes nothing.

    Takes the thresholds from the same environment variables as the monitor. Exit status: 0, or 2
    if the file cannot be played.
    """
    from cli.health.replay import PlayedError, Wanted, run

    logs.configure("error")
    try:
        run(Wanted(file=file, node=node, interval=interval, duration=duration, verbose=verbose))
    except PlayedError as error:
        raise typer.Exit(
            tasks.refuse("slicewatch health simulate", str(error).splitlines())
        ) from error


@health.command()
def evidence(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The archive to write, such as gpu-3.tar.gz.")
    ],
    socket: Annotated[
        str, typer.Option(help="The exporter's evidence_socket on this node.")
    ] = "/run/slicewatch/evidence.sock",
    gpu: Annotated[
        str, typer.Option(help="UUID, index or PCI bus id of the GPU; all otherwise.")
    ] = "",
    kernel_log: Annotated[
        str, typer.Option(help="Where the kernel's log is read, or a file with it.")
    ] = "/dev/kmsg",
) -> None:
    """Write an archive for the vendor of a GPU that failed: serials, counters, events, versions.

    It names no pods. Exit status: 0, or 2 if there is nothing to write or nowhere to write it.
    """
    from cli.health.archive import Wanted, run
    from cli.health.dossier import NoSuchGpuError
    from health.source import SilenceError

    logs.configure("error")
    wanted = Wanted(socket=socket, output=output, gpu=gpu, kernel_log=kernel_log)
    status = tasks.run(
        lambda: run(wanted),
        name="slicewatch health evidence",
        user_errors=(SilenceError, NoSuchGpuError, OSError),
    )
    raise typer.Exit(status)
