"""Writes a report in the format that the file's suffix names, whole or not at all."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from mansard.errors import InputError, UsageError
from mansard.store.atomic import replacing

if TYPE_CHECKING:
    from mansard.model.analysis import Analysis
    from mansard.model.run import Run

PICTURES = (".png", ".svg", ".pdf")
FORMATS = (".html", *PICTURES, ".csv", ".json")


def write_report(
    analysis: "Analysis",
    target: Path,
    *,
    suffix: str | None = None,
    by: str = "kernel",
    figure: str = "roofline",
    run: "Run | None" = None,
) -> None:
    """Write one report file.

    Args:
        analysis: what to write.
        target: file whose suffix names the format, or ``-`` for standard output.
        suffix: format, when the target does not say; ``-`` alone means JSON.
        by: rows of a CSV.
        figure: which picture.
        run: what was analysed; the page reads the time line and the spread of launches from it.

    Raises:
        UsageError: the suffix is not one of FORMATS.
        OutputError: the file cannot be written; what stood there before is untouched.
    """
    wanted = (suffix or target.suffix or (".json" if str(target) == "-" else "")).lower()
    if wanted not in FORMATS:
        raise UsageError(_no_format(target, FORMATS))
    if wanted == ".json":
        from mansard.charts.json_report import report_json

        text = report_json(analysis)
        write_whole(target, lambda stream: stream.write(text.encode()))
    elif wanted == ".html":
        from mansard.charts.page import page_html, read_detail

        page = page_html(analysis, read_detail(run, analysis) if run else None)
        write_whole(target, lambda stream: stream.write(page.encode()))
    elif wanted == ".csv":
        from mansard.charts.csv_report import kernels_csv

        table = kernels_csv(analysis, by=by)
        write_whole(target, lambda stream: stream.write(table.encode()))
    else:
        from mansard.charts import static

        figures = {
            "roofline": static.roofline_figure,
            "floors": static.floors_figure,
            "time": static.time_figure,
        }
        if figure not in figures:
            raise UsageError(f"no figure '{figure}': choose one of {', '.join(figures)}")
        drawn = figures[figure](analysis)
        write_whole(target, lambda stream: static.save_figure(drawn, stream, wanted[1:]))


def write_whole(target: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file through a temporary one beside it, so that it is never half there.

    Args:
        target: the file, or ``-`` for standard output.
        write: gets the open binary stream.

    Raises:
        OutputError: the file cannot be written.
    """
    if str(target) == "-":
        write(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    with replacing(target) as part, part.open("wb") as stream:
        write(stream)


def check_targets(targets: Sequence[Path], sources: Sequence[str], formats: Sequence[str]) -> None:
    """Say before the work what would fail after it, or lose what cannot be made again.

    Args:
        targets: files to write, ``-`` for standard output.
        sources: what will be read.
        formats: suffixes that a target may have; any where there are none.

    Raises:
        UsageError: a target has another suffix, or is one of the sources.
    """
    for target in targets:
        if str(target) == "-":
            continue
        if formats and target.suffix.lower() not in formats:
            raise UsageError(_no_format(target, formats))
        for source in sources:
            if _is_read(target, Path(source)):
                raise UsageError(
                    f"{target} would replace what it is made from: give --output another name"
                )


def _no_format(target: Path, formats: Sequence[str]) -> str:
    return f"cannot tell the format of '{target}': the name must end in {', '.join(formats)}"


def _is_read(target: Path, source: Path) -> bool:
    """Whether a target is a source, or a recording in a folder that is one."""
    from mansard.readers.sniff import FileKind, sniff

    try:
        if target.samefile(source):
            return target.is_file()
        return target.parent.samefile(source) and sniff(target) is not FileKind.OTHER
    except (OSError, InputError):
        return False
