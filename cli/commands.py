"""The subcommands that people type, as typer shows them."""

from typing import Annotated

import typer

from slicewatch import version as installed_version
from slicewatch.service import logs, tasks

application = typer.Typer(
    name="slicewatch",
    help="Sees, scores and scales the slices of a GPU in Kubernetes.",
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
    port: Annotated[int, typer.Option(help="First of the ports on loopback.")] = 9400,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Simulate even where an NVIDIA driver is there.")
    ] = False,
) -> None:
    """Run an exporter per node and an adapter on loopback, and say what to look at."""
    from cli.demo import run_demo
    from simulator.errors import ScenarioError

    logs.configure("warning")
    try:
        status = tasks.run(
            lambda: run_demo(scenario, port, simulated=simulated),
            mendable=(ScenarioError, OSError),
        )
    except (ScenarioError, OSError) as error:
        typer.echo(f"slicewatch demo: {error}", err=True)
        status = 2
    raise typer.Exit(status)


@application.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
def exporter() -> None:
    """Read the GPUs of this node and publish them (``exporter --help`` lists its settings)."""


@application.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
def adapter() -> None:
    """Serve the metrics APIs that HorizontalPodAutoscalers read (``adapter --help``)."""
