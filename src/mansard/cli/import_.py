"""``mansard import``: recorded files to one run file."""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from mansard.cli import PARTIAL
from mansard.cli.options import Chip, Counters, HalfWeights, Sources


def import_(
    sources: Sources,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Run file (Parquet, whatever the suffix) to write; - is standard output.",
            show_default=False,
        ),
    ],
    counters: Counters = None,
    chip: Chip = None,
    half_weights: HalfWeights = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", help="Vendor counters to keep, by pattern, e.g. 'launch__*'."),
    ] = None,
) -> None:
    """Read what others recorded and write it as one run (Parquet).

    Exit code 3 means that a part of a recording could not be read; what could be read is written.
    Files of a folder that are no recording (notes, tables of results) are named and left out; they
    are no part of the input.
    """
    from mansard.cli.write import check_targets, write_whole
    from mansard.readers import ImportOptions, import_files

    options = ImportOptions(
        counters=counters,
        chip=chip,
        keep=tuple(keep or ()),
        half_weights=half_weights.value if half_weights else None,
    )
    check_targets([output], sources, ())
    if str(output) == "-":
        with tempfile.TemporaryDirectory(prefix="mansard-import-") as folder:
            written = Path(folder) / "run.parquet"
            run = import_files(list(sources), written, options=options)
            with written.open("rb") as content:
                write_whole(output, lambda stream: shutil.copyfileobj(content, stream))
            launches = _launches(written)
    else:
        run = import_files(list(sources), output, options=options)
        launches = _launches(output)
    origin = run.provenance[0]
    for notice in run.all_notices:
        sys.stderr.write(f"{notice.code}: {notice.message}\n")
    names = ", ".join(dict.fromkeys(device.name or "?" for device in origin.devices))
    joined = f", joined {origin.join}" if origin.join else ""
    typer.echo(
        f"{output}: {launches} launches, {names or 'GPU unknown'}, "
        f"counter table {origin.counter_table}{joined}",
        err=str(output) == "-",
    )
    if run.partial:
        raise typer.Exit(PARTIAL)


def _launches(path: Path) -> int:
    from mansard.engine import connect, literal

    with connect() as connection:
        row = connection.execute(
            f"SELECT count(*) FROM read_parquet({literal(str(path))})"
        ).fetchone()
    return int(row[0]) if row else 0
