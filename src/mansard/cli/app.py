"""All commands under one name."""

from typing import Annotated

import typer

from mansard.cli.bench import bench
from mansard.cli.compare import compare
from mansard.cli.demo import demo
from mansard.cli.doctor import doctor
from mansard.cli.history import history
from mansard.cli.import_ import import_
from mansard.cli.machines import machines
from mansard.cli.profile import CONTEXT, ProfileCommand, profile
from mansard.cli.report import report
from mansard.cli.study import study
from mansard.cli.validate import validate
from mansard.version import __version__

app = typer.Typer(
    name="mansard",
    help="Hierarchical Roofline analysis for NVIDIA GPUs and deep learning.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Rich would draw boxes around the help, and loads a Markdown parser for it: twice the time.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"mansard {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and stop."
        ),
    ] = False,
) -> None:
    """Hierarchical Roofline analysis for NVIDIA GPUs and deep learning."""


app.command("report")(report)
app.command("compare")(compare)
app.command("import")(import_)
app.command("bench")(bench)
app.command("machines")(machines)
app.command("validate")(validate)
app.command("profile", cls=ProfileCommand, context_settings=CONTEXT)(profile)
app.command("doctor")(doctor)
app.command("history")(history)
app.command("study")(study)
app.command("demo")(demo)
