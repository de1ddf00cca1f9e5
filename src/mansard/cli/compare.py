"""``mansard compare``: better or worse, and whether it is more than noise."""

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
    from mansard.readers import ImportOptions

#: Exit code when a limit of --fail-if is broken.
FAILED = 1

_FORMATS = (".md", ".json")


class By(StrEnum):
    """What the rows of the table are."""

    KERNEL = "kernel"
    FAMILY = "family"
    PHASE = "phase"


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
        typer.Option("--output", "-o", help="Write .md or .json instead; repeatable; - is stdout."),
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
    from mansard.analysis.limits import parse_limit
    from mansard.readers import ImportOptions

    items = sources or []
    if len(items) > 1 and not (phase_of or rank_of) and _all_machines(items):
        from mansard.cli.machines import machines

        machines(items, json=json)
        return
    limits = [parse_limit(text) for text in fail_if or ()]
    targets = [(target, _format_of(target)) for target in output or ()]
    options = ImportOptions(
        counters=counters, chip=chip, half_weights=half_weights.value if half_weights else None
    )
    first, *others = _sides(items, phase_of, rank_of, options)
    found = [compare_runs(first, other, by=by.value, allow_unlike=allow_unlike) for other in others]
    broken = [text for one in found for limit in limits if (text := limit.broken_by(one))]
    _show(found, targets=[*targets, *([(Path("-"), ".json")] if json else [])], top=top)
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
        return [Part(readers.open(item, options=options)) for item in items]
    run = readers.open(whole, options=options)
    if phase_of is not None:
        return [Part(run, phase=item) for item in items]
    wrong = next((item for item in items if not (item.isdecimal() and len(item) < 10)), None)
    if wrong is not None:
        raise UsageError(f"'{wrong[:40]}' is no rank: give whole numbers")
    return [Part(run, rank=int(item)) for item in items]


def _format_of(target: Path) -> str:
    from mansard.errors import UsageError

    suffix = target.suffix.lower() if str(target) != "-" else ".json"
    if suffix not in _FORMATS:
        raise UsageError(
            f"cannot tell the format of '{target}': the name must end in {', '.join(_FORMATS)}"
        )
    return suffix


def _show(found: "Sequence[Comparison]", *, targets: Sequence[tuple[Path, str]], top: int) -> None:
    from mansard.charts.compare_files import comparison_json, comparison_markdown
    from mansard.charts.compare_view import comparison_view
    from mansard.cli.write import write_whole

    for target, suffix in targets:
        text = comparison_json(found) if suffix == ".json" else comparison_markdown(found, top=top)
        write_whole(target, functools.partial(_put, text.encode()))
        if str(target) != "-":
            sys.stderr.write(f"wrote {target}\n")
    if not targets:
        from rich.console import Console

        console = Console(highlight=False)
        for one in found:
            console.print(comparison_view(one, top=top))


def _put(content: bytes, stream: IO[bytes]) -> None:
    stream.write(content)
