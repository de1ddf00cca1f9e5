"""``mansard compare``: better or worse, and whether it is more than noise."""

import dataclasses
import functools
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from mansard.cli import PARTIAL
from mansard.cli.options import Chip, Counters, HalfWeights

if TYPE_CHECKING:
    from mansard.analysis.parts import Part
    from mansard.model.comparison import Comparison
    from mansard.model.run import Run
    from mansard.readers import ImportOptions

#: Exit code when a limit of --fail-if is broken.
FAILED = 1


class By(StrEnum):
    """What the rows of the table are."""

    KERNEL = "kernel"
    FAMILY = "family"
    PHASE = "phase"
    MODULE = "module"
    LAYER = "layer"
    OPERATOR = "operator"


def compare(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            help="Two runs or more, of any kind that Mansard reads; each is compared with the "
            "first. Machine files go to 'mansard machines'.",
            metavar="RUN",
            show_default=False,
        ),
    ] = None,
    by: Annotated[By, typer.Option("--by", help="Rows of the table.")] = By.KERNEL,
    phase_of: Annotated[
        Path | None,
        typer.Option("--phase-of", help="Compare two phases of this run: --phase-of RUN A B."),
    ] = None,
    rank_of: Annotated[
        Path | None,
        typer.Option("--rank-of", help="Compare two ranks of this run: --rank-of RUN 0 1."),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-if",
            help="Exit code 1 when this holds, e.g. 'gpu_time > +3%'; may be repeated.",
        ),
    ] = None,
    allow_unlike: Annotated[
        bool,
        typer.Option(
            "--allow-unlike", help="Compare runs of other GPUs, clocks, caches or counters, too."
        ),
    ] = False,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            help="Write .html, .png, .svg, .pdf, .md or .json instead; repeatable; "
            "- is stdout (JSON). Of machine files as 'mansard machines' does: no .md.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    top: Annotated[int, typer.Option("--top", min=1, help="Rows of the table.")] = 20,
    counters: Counters = None,
    chip: Chip = None,
    half_weights: HalfWeights = None,
) -> None:
    """Say what changed from one run to another.

    Values are means over ranks and steps; a change of time counts only beyond the noise of at
    least three repeats. Exit code 1: a limit is broken; 3: a part could not be read.
    """
    from mansard.analysis.compare import compare as compare_runs
    from mansard.analysis.compare import comparisons
    from mansard.analysis.limits import parse_limit
    from mansard.cli.write import PICTURES, check_targets
    from mansard.errors import UsageError
    from mansard.readers import ImportOptions

    items = sources or []
    if len(items) > 1 and not (phase_of or rank_of) and _all_machines(items):
        from mansard.cli.machines import machines

        machines(items, json=json, output=output)
        return
    if len(items) > 2 and any(target.suffix.lower() in PICTURES for target in output or ()):
        raise UsageError(
            f"a picture shows two runs and {len(items)} were given: write a page (-o x.html)"
        )
    limits = [parse_limit(text) for text in fail_if or ()]
    whole = phase_of or rank_of
    read = [str(whole)] if whole else items
    check_targets(output or (), read, (".html", *PICTURES, ".md", ".json"))
    # Standard output gets JSON.
    targets = [(target, target.suffix.lower() or ".json") for target in output or ()]
    options = ImportOptions(
        counters=counters, chip=chip, half_weights=half_weights.value if half_weights else None
    )
    first, *others = _sides(items, phase_of, rank_of, options)
    pages: list[tuple[Comparison, ...]] = []
    if any(suffix == ".html" for _, suffix in targets):
        # A page has room for all kinds of rows.
        pages = [
            comparisons(first, other, by=by.value, allow_unlike=allow_unlike) for other in others
        ]
        found = [page[0] for page in pages]
    else:
        found = [
            compare_runs(first, other, by=by.value, allow_unlike=allow_unlike) for other in others
        ]
    broken = [text for one in found for limit in limits if (text := limit.broken_by(one))]
    wanted = [*targets, *([(Path("-"), ".json")] if json else [])]
    _show(found, targets=wanted, top=top, pages=pages)
    for text in broken:
        sys.stderr.write(f"failed: {text}\n")
    if broken:
        raise typer.Exit(FAILED)
    if any(notice.partial for one in found for notice in one.notices):
        raise typer.Exit(PARTIAL)


def _all_machines(items: Sequence[str]) -> bool:
    from mansard.readers.sniff import FileKind, sniff

    files = [Path(item) for item in items]
    return all(file.is_file() and sniff(file) is FileKind.MACHINE for file in files)


def _sides(
    items: Sequence[str], phase_of: Path | None, rank_of: Path | None, options: "ImportOptions"
) -> "list[Part]":
    """What is compared, the baseline first."""
    from mansard import readers
    from mansard.analysis.parts import Part
    from mansard.errors import UsageError

    if phase_of is not None and rank_of is not None:
        raise UsageError("give --phase-of or --rank-of, not both")
    whole = phase_of or rank_of
    if len(items) < 2:
        what = "two names" if whole else "two runs"
        raise UsageError(f"give at least {what} to compare; the first is the baseline")
    if whole is None:
        return _under_own_names([readers.open(item, options=options) for item in items], items)
    run = readers.open(whole, options=options)
    if phase_of is not None:
        return [Part(run, phase=item) for item in items]
    wrong = next((item for item in items if not (item.isdecimal() and len(item) < 10)), None)
    if wrong is not None:
        raise UsageError(f"'{wrong[:40]}' is no rank: give whole numbers")
    return [Part(run, rank=int(item)) for item in items]


def _under_own_names(runs: "Sequence[Run]", items: Sequence[str]) -> "list[Part]":
    """The runs; files of one name in several folders get what of their paths tells them apart."""
    from mansard.analysis.parts import Part
    from mansard.cli.told_apart import told_apart

    labels = [run.label for run in runs]
    if len(set(labels)) < len(set(items)):
        labels = told_apart(items)
    return [
        Part(dataclasses.replace(run, label=label)) for run, label in zip(runs, labels, strict=True)
    ]


def _show(
    found: "Sequence[Comparison]",
    *,
    targets: Sequence[tuple[Path, str]],
    top: int,
    pages: "Sequence[tuple[Comparison, ...]]",
) -> None:
    from mansard.charts.compare_view import comparison_view
    from mansard.cli.write import PICTURES, write_whole

    for target, suffix in targets:
        if suffix in PICTURES:
            _draw(found[0], target, suffix)
        else:
            text = _text(found, suffix, top=top, pages=pages)
            write_whole(target, functools.partial(_put, text.encode()))
        if str(target) != "-":
            sys.stderr.write(f"wrote {target}\n")
    if not targets:
        from rich.console import Console

        console = Console(highlight=False)
        for one in found:
            console.print(comparison_view(one, top=top))


def _text(
    found: "Sequence[Comparison]",
    suffix: str,
    *,
    top: int,
    pages: "Sequence[tuple[Comparison, ...]]",
) -> str:
    if suffix == ".html":
        from mansard.charts.page import comparisons_page

        return comparisons_page(pages)
    from mansard.charts.compare_files import comparison_json, comparison_markdown

    return comparison_json(found) if suffix == ".json" else comparison_markdown(found, top=top)


def _draw(found: "Comparison", target: Path, suffix: str) -> None:
    from mansard.charts import static
    from mansard.cli.write import write_whole

    drawn = static.changes_figure(found)
    write_whole(target, lambda stream: static.save_figure(drawn, stream, suffix[1:]))


def _put(content: bytes, stream: IO[bytes]) -> None:
    stream.write(content)
