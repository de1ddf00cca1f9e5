"""``mansard doctor``: why it does not work here, and what to do."""

from typing import Annotated

import typer


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Look at driver, GPU, CUPTI, permission and what else profiling needs.

    Exit code 3 means that something must be done before counters can be read.
    """
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


def _print(findings: "tuple[object, ...]") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    marks = {"ok": "ok", "warning": "!", "problem": "X", "unknown": "?"}
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("what", no_wrap=True)
    table.add_column("found")
    for finding in findings:
        table.add_row(
            marks[finding.state],  # type: ignore[attr-defined]
            finding.what,  # type: ignore[attr-defined]
            Text(
                finding.found  # type: ignore[attr-defined]
                + (f"\n-> {finding.remedy}" if finding.remedy else "")  # type: ignore[attr-defined]
            ),
        )
    console = Console(highlight=False)
    console.print(table)
