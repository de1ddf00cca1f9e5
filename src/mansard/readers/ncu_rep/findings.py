"""What the reader must tell the user about a report, as notices."""

import dataclasses

from mansard.model.notice import Notice


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Counts of what is unusual in a report.

    Attributes:
        launches: results that were read.
        cut_at: byte at which the file ends too early or is damaged beyond reading on.
        lost: results known to be missing; None when that is unknown.
        nameless: values of metrics whose name is not in the file.
        left_out: counters left out to bound the table.
        failed: launches that failed and have no values.
        ranges: results of ranges.
        graphs: results of whole graphs.
        unclear: results of unknown kind.
        no_magic: whether the file starts without its file header.
        version: container version where it is not the known one, else None.
    """

    launches: int
    cut_at: int | None = None
    lost: int | None = 0
    nameless: int = 0
    left_out: int = 0
    failed: int = 0
    ranges: int = 0
    graphs: int = 0
    unclear: int = 0
    no_magic: bool = False
    version: int | None = None


def notices(found: Findings, name: str) -> tuple[Notice, ...]:
    """Put the findings into words.

    Args:
        found: the findings.
        name: of the report.
    """
    said: list[Notice] = []
    if found.cut_at is not None:
        lost = "an unknown number of launches" if found.lost is None else _launches(found.lost)
        said.append(
            Notice(
                "report-cut",
                f"{name} ends early or is damaged at byte {found.cut_at}: "
                f"{_launches(found.launches)} read, {lost} lost, and whether more followed is not "
                "known. Copy the file again, or profile again",
                partial=True,
            )
        )
    elif found.lost:
        said.append(
            Notice(
                "report-damaged",
                f"{name} is damaged inside: {_launches(found.launches)} read, "
                f"{_launches(found.lost)} lost. Copy the file again, or profile again",
                partial=True,
            )
        )
    if found.nameless:
        said.append(
            Notice(
                "counter-names-missing",
                f"{name} does not hold the names of {found.nameless} values; they are left out",
                partial=True,
            )
        )
    if found.left_out:
        said.append(
            Notice(
                "counters-left-out",
                f"{name} has more counters than can be read at once; the {found.left_out} that the "
                "fewest launches have are left out. Ask for fewer (--keep)",
                partial=True,
            )
        )
    if found.failed:
        said.append(
            Notice(
                "launch-failed",
                f"{_launches(found.failed)} of {name} failed while profiled and have no values "
                "(often out of memory, or the program ended); their row is kept",
            )
        )
    if found.ranges or found.graphs:
        said.append(
            Notice(
                "not-kernels",
                f"{name} has {_whole(found)}: each of these rows sums several kernels. Profile "
                "with --replay-mode kernel --graph-profiling node to see them one by one",
            )
        )
    if found.unclear:
        said.append(
            Notice(
                "unknown-result-kind",
                f"{name} has {found.unclear} results that are neither kernels nor known to be "
                "ranges or graphs; they are kept without a kind",
            )
        )
    if found.no_magic or found.version is not None:
        what = "has no file header" if found.no_magic else f"is of version {found.version}"
        said.append(
            Notice(
                "report-version",
                f"{name} {what}: it is read as the known version 7. Compare a few numbers with "
                "those that ncu shows",
            )
        )
    return tuple(said)


def _whole(found: Findings) -> str:
    counts = ((found.ranges, "range"), (found.graphs, "graph"))
    return " and ".join(
        f"{count} whole {noun}{'' if count == 1 else 's'}" for count, noun in counts if count
    )


def _launches(count: int) -> str:
    return f"{count} launch" if count == 1 else f"{count} launches"
