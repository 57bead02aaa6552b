"""The subcommands that people type, as typer shows them."""

from typing import Annotated

import typer

from slicewatch import version as installed_version
from slicewatch.service import logs, tasks

# The demo takes ports up to this far above its first one.
LAST_PORT = 65_535 - 100

application = typer.Typer(
    name="slicewatch",
    help="Sees, scores and scales the slices of a GPU in Kubernetes.",
    # These never get here: cli.main starts them without typer.
    epilog="These have a --help of their own: slicewatch exporter, adapter and doctor.",
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
