"""``mansard doctor``: why it does not work here, and what to do."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mansard.doctor import Finding


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            metavar="CODE",
            help="Say what a warning or error means, e.g. other-machine, and stop.",
        ),
    ] = None,
) -> None:
    """Look at driver, GPU, CUPTI, permission and what else profiling needs.

    Exit code 3 means that something must be done before counters can be read.
    """
    if explain is not None:
        from mansard.cli.explain import explained

        typer.echo(explained(explain))
        return
    from mansard.cli import PARTIAL
    from mansard.doctor import doctor as examine

    findings = examine()
    if json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(findings), indent=2).decode())
    else:
        _print(findings)
    if any(finding.state == "problem" for finding in findings):
        raise typer.Exit(PARTIAL)


def _print(findings: "tuple[Finding, ...]") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    marks = {"ok": "ok", "warning": "!", "problem": "X", "unknown": "?"}
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("what", no_wrap=True)
    table.add_column("found")
    for finding in findings:
        # Text, not markup: brackets in names and paths are no formatting.
        told = Text(finding.found + (f"\n-> {finding.remedy}" if finding.remedy else ""))
        table.add_row(marks[finding.state], Text(finding.what), told)
    Console(highlight=False).print(table)
