"""Files that others recorded, read into runs: Parquet runs, ncu reports, ncu CSV, folders."""

import dataclasses
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mansard.engine import connect
from mansard.errors import FormatError, InputError, MansardError
from mansard.location import local_path, path_of
from mansard.model.capture import Capture
from mansard.model.notice import Notice
from mansard.model.run import Run
from mansard.readers.assemble import ImportOptions, assemble
from mansard.readers.metric_folder import is_metric_folder, read_metric_folder
from mansard.readers.ncu_csv import read_ncu_csv
from mansard.readers.ncu_rep import read_ncu_rep
from mansard.readers.sniff import FileKind, sniff
from mansard.readers.streams import on_disk
from mansard.store.run_file import open_run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["ImportOptions", "import_files", "open"]

#: A folder may hold this many files before we ask for a narrower choice.
MAX_FILES = 100_000

_RUN_SUFFIX = ".parquet"


class _Scratch:
    """A temporary folder that goes when nobody needs it any more, also when reading failed."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="mansard-run-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def open(  # noqa: A001  (the public name is mansard.open)
    *sources: Path | str, options: ImportOptions | None = None
) -> Run:
    """Open anything that Mansard reads as a run.

    Args:
        sources: Parquet runs (files or a folder of ranks), .ncu-rep, ncu CSV, or folders of
            them; ``-`` reads an ncu CSV or report from standard input. Runs may be URLs, too.
        options: how counters become columns; only for inputs that are not runs yet.

    Returns:
        The run. What had to be imported lies in a temporary folder that goes with the value.

    Raises:
        InputError: a source does not exist or nothing in it can be used.
    """
    if not sources:
        raise InputError("no input: give a run, a report, a CSV file or a folder")
    if any(local_path(str(source)) is None for source in sources):
        return _joined([open_run(source) for source in sources])
    scratch = _Scratch()
    paths = [on_disk(path_of(source), scratch.path) for source in sources]
    files = _expand(paths)
    kinds = {kind for _, kind in files}
    if kinds == {FileKind.RUN}:
        run = _joined([open_run(path) for path in paths])
    elif FileKind.RUN in kinds and kinds <= {FileKind.RUN, FileKind.OTHER, FileKind.MACHINE}:
        run = _beside_others(paths, files)
    else:
        run = _import(files, scratch.path / "run.parquet", options)
        run = dataclasses.replace(run, label=paths[0].name)
    return dataclasses.replace(run, owner=scratch)


def import_files(
    sources: Sequence[Path | str], output: Path, *, options: ImportOptions | None = None
) -> Run:
    """Read recorded files and write them as one run file.

    Args:
        sources: as for ``open``, but no Parquet runs.
        output: the Parquet file to write; it appears only when it is whole.
        options: counter table, chip, columns to keep.

    Raises:
        InputError: nothing could be read. A file among several that cannot be read becomes a
            notice instead, and the run is partial.
    """
    with tempfile.TemporaryDirectory(prefix="mansard-import-") as scratch:
        files = _expand([on_disk(path_of(source), Path(scratch)) for source in sources])
        return _import(files, output, options)


def _import(
    files: Sequence[tuple[Path, FileKind]], output: Path, options: ImportOptions | None
) -> Run:
    notices: list[Notice] = []
    with connect() as connection:
        keep = options.keep if options else ()
        captures = list(_captures(files, connection, notices, keep))
        if not captures:
            raise InputError(notices[0].message if notices else "nothing to import")
        provenance = assemble(captures, connection, output, options=options, notices=notices)
    return Run((output,), (provenance,), (), output.name)


def _beside_others(sources: Sequence[Path | str], files: Sequence[tuple[Path, FileKind]]) -> Run:
    """Runs in folders that hold other files too, which are named and left out."""
    given = {Path(source) for source in sources}
    notices = []
    for path, kind in files:
        if kind is FileKind.RUN or path.suffix == _RUN_SUFFIX:
            continue  # what claims to be a run and is none, open_run names
        if path in given:
            raise FormatError(_not_ours(path, kind))
        notices.append(Notice("file-skipped", f"left out: {_not_ours(path, kind)}"))
    run = _joined([open_run(Path(source)) for source in sources])
    return dataclasses.replace(run, notices=(*run.notices, *notices))


def _joined(runs: Sequence[Run]) -> Run:
    """Several runs as one of more ranks."""
    if len(runs) == 1:
        return runs[0]
    return Run(
        tuple(path for run in runs for path in run.files),
        tuple(origin for run in runs for origin in run.provenance),
        tuple(notice for run in runs for notice in run.notices),
        f"{runs[0].label} and {len(runs) - 1} more",
    )


def _captures(
    files: Sequence[tuple[Path, FileKind]],
    connection: "DuckDBPyConnection",
    notices: list[Notice],
    keep: Sequence[str],
) -> Iterable[Capture]:
    texts = [path for path, kind in files if kind is FileKind.NCU_CSV]
    if len(texts) > 1 and is_metric_folder(texts):
        yield read_metric_folder(texts, connection, "capture_metrics", keep=keep)
        files = [(path, kind) for path, kind in files if kind is not FileKind.NCU_CSV]
    for number, (path, kind) in enumerate(files):
        table = f"capture_{number}"
        try:
            if kind is FileKind.NCU_REPORT:
                yield read_ncu_rep(path, connection, table, name=path.name, keep=keep)
            elif kind is FileKind.NCU_CSV:
                yield read_ncu_csv(path, connection, table, name=path.name, keep=keep)
            else:
                raise FormatError(_not_ours(path, kind))
        except MansardError as error:
            if len(files) == 1:
                raise
            # In a folder of several, a file that is not ours at all does not make it partial.
            foreign = kind in (FileKind.OTHER, FileKind.MACHINE)
            notices.append(Notice("file-skipped", str(error), partial=not foreign))


def _not_ours(path: Path, kind: FileKind) -> str:
    if kind is FileKind.MACHINE:
        return f"{path} is a machine file: give it with --machine"
    if kind is FileKind.RUN:
        return f"{path} is a run already; it cannot be mixed with reports in one import"
    return (
        f"{path} is neither a run (Parquet), nor an Nsight Compute report (.ncu-rep), nor the "
        "output of ncu --csv"
    )


def _expand(sources: Sequence[Path]) -> list[tuple[Path, FileKind]]:
    """All regular files behind the sources, with what each one is."""
    if len(set(sources)) < len(sources):
        again = next(path for path in sources if sources.count(path) > 1)
        raise InputError(f"{again} is given twice, and would be counted twice")
    files: list[tuple[Path, FileKind]] = []
    for path in sources:
        if path.is_dir():
            try:
                inside = sorted(entry for entry in path.iterdir() if entry.is_file())
            except OSError as error:
                raise InputError(f"the folder {path} cannot be read: {error.strerror}") from error
            if not inside:
                raise InputError(f"the folder {path} holds no files")
            if len(inside) > MAX_FILES:
                raise InputError(f"the folder {path} holds more than {MAX_FILES} files")
            files.extend((entry, _sniff_or_other(entry)) for entry in inside)
        elif path.exists():
            files.append((path, sniff(path)))
        else:
            raise InputError(f"{path} does not exist")
    return files


def _sniff_or_other(path: Path) -> FileKind:
    try:
        return sniff(path)
    except InputError:
        return FileKind.OTHER
