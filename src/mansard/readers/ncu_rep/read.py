"""Reading a report of Nsight Compute into a capture: the whole file, or what is left of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from mansard.engine import room_for
from mansard.errors import FormatError
from mansard.model.capture import Capture
from mansard.model.notice import Notice
from mansard.model.provenance import Provenance
from mansard.readers.ncu_rep.container import KNOWN_VERSION, Container
from mansard.readers.ncu_rep.findings import Findings, notices
from mansard.readers.ncu_rep.launches import LaunchColumns, launch_columns
from mansard.readers.ncu_rep.recording import Recording, read_recording
from mansard.readers.ncu_rep.table import Counters, counter_columns, create_table
from mansard.readers.ncu_rep.times import Timed, clear_times
from mansard.readers.ncu_rep.unpack import open_plain
from mansard.readers.ncu_rep.vocabulary import vocabulary
from mansard.readers.wanted import EVERYTHING, counter_filter

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_COLLECTOR = "Nsight Compute"


def read_ncu_rep(
    source: Path | str | IO[bytes],
    connection: "DuckDBPyConnection",
    table: str,
    *,
    name: str,
    keep: Sequence[str] = EVERYTHING,
) -> Capture:
    """Read a report of Nsight Compute, of 2019 or later, plain or compressed.

    Values come out in SI base units (s, Hz, byte, count), percentages in percent. Machine code
    is passed over unread. A damaged or cut file gives its whole launches.

    Args:
        source: a path, or a stream of bytes.
        connection: of the engine.
        table: name of the table to create.
        name: of the report, without folders, for messages and provenance.
        keep: patterns of the counters to read, beside those that a counter table has a use for.

    Returns:
        The capture. Its provenance says how many launches are lost, and has a notice for all
        that is unusual.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it is no report, or no launch is left in it.
    """
    with open_plain(source, name=name) as (file, size):
        container = Container(file, size, name=name)
        recording = read_recording(container)
        if not recording.results:
            raise _nothing_left(container, recording, name)
    is_wanted = counter_filter((*keep, *vocabulary().launch.values()))
    counters = counter_columns(
        recording.metrics, recording.names, file_bytes=size, is_wanted=is_wanted
    )
    launches = launch_columns(recording, counters)
    with room_for(connection, columns=len(counters.columns), rows=len(recording.results)):
        create_table(connection, table, launches=launches, counters=counters.columns)
    session = recording.session
    timed = Timed(
        table=table,
        counters=tuple(counters.columns),
        devices=session.device_list(),
        name=name,
        of_graphs=session.options.get("graph-profiling") == "graph",
    )
    found = _findings(container, recording, counters, launches)
    said = (*notices(found, name), *clear_times(connection, timed))
    return Capture(table, timed.counters, _provenance(recording, said, found.lost, name))


def _nothing_left(container: Container, recording: Recording, name: str) -> FormatError:
    if container.version is None:
        return container.not_a_report(name)
    if container.cut_at is not None or container.lost_results or recording.damaged:
        return FormatError(
            f"{name} is a report of Nsight Compute, but it is cut or damaged and no launch in it "
            "is whole: copy it again, or profile again"
        )
    return FormatError(
        f"{name} holds no launches: Nsight Compute profiled none. Check its filters (kernel name, "
        "launch count, NVTX ranges) and profile again",
        slug="no-launches",
    )


def _findings(
    container: Container, recording: Recording, counters: Counters, launches: LaunchColumns
) -> Findings:
    kinds = launches["kind"]
    shapes = zip(kinds, launches["block_x"], strict=True)
    version = container.version
    return Findings(
        launches=len(kinds),
        cut_at=container.cut_at,
        lost=None if container.lost_unknown else container.lost_results + recording.damaged,
        nameless=counters.nameless,
        left_out=counters.left_out,
        failed=sum(kind == "kernel" and block is None for kind, block in shapes),
        ranges=kinds.count("range"),
        graphs=kinds.count("graph"),
        unclear=kinds.count(None),
        no_magic=version is None,
        version=None if version in (None, KNOWN_VERSION) else version,
    )


def _provenance(
    recording: Recording, said: tuple[Notice, ...], lost: int | None, name: str
) -> Provenance:
    session = recording.session
    drivers = [result.driver for result in recording.results if result.driver]
    driver = f"{drivers[0]:.6g}" if drivers else None
    extra = {"recorded": session.created_text}
    return Provenance(
        sources=(name,),
        collector=_COLLECTOR,
        collector_version=session.collector_version,
        driver_version=session.versions.get("Display Driver Version", driver),
        cuda_version=session.versions.get("CUDA Version"),
        devices=session.device_list(),
        clock_control=session.options.get("clock-control"),
        cache_control=session.options.get("cache-control"),
        replay=session.options.get("replay-mode"),
        notices=said,
        lost_launches=lost,
        extra={key: value for key, value in extra.items() if value is not None},
    )
