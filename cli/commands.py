"""The subcommands that people type, as typer shows them."""

import sys
from typing import Annotated

import typer

from cli.health.commands import health
from slicewatch import version as installed_version
from slicewatch.service import logs, tasks

# The demo takes ports up to this far above its first one.
LAST_PORT = 65_535 - 100

application = typer.Typer(
    name="slicewatch",
    help="Sees, scores and scales the slices of a GPU in Kubernetes.",
    # These never get here: cli.main starts them without typer.
    epilog="These have a --help of their own: slicewatch exporter, adapter, health and doctor.",
    no_args_is_help=True,
    add_completion=False,
)


@application.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"slicewatch {installed_version()}")


@application.command()
def demo(
    scenario: Annotated[
        str, typer.Option(help="Scenario file, or the name of a shipped one.")
    ] = "demo",
    port: Annotated[
        int, typer.Option(help="First of the ports on loopback.", min=1, max=LAST_PORT)
    ] = 9400,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Simulate even where there is an NVIDIA driver.")
    ] = False,
) -> None:
    """Run one exporter per node and an adapter on loopback, and print what to look at."""
    from cli.demo import run_demo
    from simulator.errors import ScenarioError

    logs.configure("warning")
    status = tasks.run(
        lambda: run_demo(scenario, port, simulated=simulated),
        name="slicewatch demo",
        user_errors=(ScenarioError, OSError),
    )
    raise typer.Exit(status)


@application.command()
def lint(
    files: Annotated[
        list[str],
        typer.Argument(help="Rules, values of the chart, ConfigMaps, HPAs; - is the input."),
    ],
    prometheus: Annotated[
        str, typer.Option(help="URL of a backend to ask about the series of the rules.")
    ] = "",
    token_file: Annotated[str, typer.Option(help="File with a bearer token for it.")] = "",
    ca_file: Annotated[str, typer.Option(help="Authorities (PEM) of its certificate.")] = "",
    scrape_interval: Annotated[
        str, typer.Option(help="Time between two samples, such as 30s, if nobody can be asked.")
    ] = "",
    output: Annotated[str, typer.Option("--output", "-o", help="table or json.")] = "table",
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="List each check that could not be made.")
    ] = False,
) -> None:
    """Say what is wrong with rules of prometheus-adapter and with HPAs, before they run.

    Exit status: 0 if nothing is an error, 1 if something is, 2 if that could not be found out.
    """
    from cli.lint import Options, run_lint

    if output not in {"table", "json"}:
        raise typer.BadParameter("must be table or json", param_hint="--output")
    options = Options(
        files=files, prometheus=prometheus, token_file=token_file, ca_file=ca_file,
        scrape_interval=scrape_interval, as_json=output == "json", verbose=verbose,
    )  # fmt: skip
    raise typer.Exit(run_lint(options, sys.stdout))


application.add_typer(health, name="health")

explain = typer.Typer(
    help="Say why something scales as it does, with your own rights.", no_args_is_help=True
)
application.add_typer(explain, name="explain")


@explain.command("hpa")
def explain_hpa(
    name: Annotated[str, typer.Argument(help="The HorizontalPodAutoscaler.")],
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Its namespace; of the context otherwise.")
    ] = "",
    kubeconfig: Annotated[
        str, typer.Option(help="As of kubectl: this file, $KUBECONFIG or ~/.kube/config.")
    ] = "",
    context: Annotated[str, typer.Option(help="A context of the kubeconfig.")] = "",
    output: Annotated[str, typer.Option("--output", "-o", help="text or json.")] = "text",
) -> None:
    """Explain an HPA: pods, values and their sources, what the controller computes from them.

    Exit status: 0 if it can scale, 1 if it cannot as things are (the last line says why), 2 if
    that could not be found out.
    """
    from cli.explain.cluster import CannotExplainError
    from cli.explain.command import Output, Wanted, run
    from slicewatch.kube.configuration import ConfigurationError

    if output not in set(Output):
        raise typer.BadParameter("must be text or json", param_hint="--output")
    logs.configure("error")
    wanted = Wanted(
        name=name, namespace=namespace, kubeconfig=kubeconfig, context=context,
        output=Output(output),
    )  # fmt: skip
    statuses: list[int] = []
    failed = tasks.run(
        lambda: run(wanted, statuses.append),
        name="slicewatch explain",
        user_errors=(CannotExplainError, ConfigurationError),
    )
    raise typer.Exit(failed or next(iter(statuses), 1))
