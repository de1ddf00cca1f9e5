"""All that a report holds, in the order of the file: results, their owners, names, session."""

import dataclasses

from mansard.errors import FormatError
from mansard.readers.ncu_rep.container import Container, Listed
from mansard.readers.ncu_rep.result import MetricValues, Result, read_result
from mansard.readers.ncu_rep.session import Session


@dataclasses.dataclass(slots=True)
class Recording:
    """What was read; grows block by block.

    Attributes:
        session: facts of the whole recording.
        names: the table of metric names. Later blocks add names that earlier results use, so it
            is complete only at the end.
        results: in file order.
        owners: per result, the id of its process and the host.
        listed: per result, what the container lists it as.
        metrics: values of all results.
        damaged: results that could not be decoded.
    """

    session: Session = dataclasses.field(default_factory=Session)
    names: list[str] = dataclasses.field(default_factory=list)
    results: list[Result] = dataclasses.field(default_factory=list)
    owners: list[tuple[int | None, str | None]] = dataclasses.field(default_factory=list)
    listed: list[Listed] = dataclasses.field(default_factory=list)
    metrics: MetricValues = dataclasses.field(default_factory=MetricValues)
    damaged: int = 0


def read_recording(container: Container) -> Recording:
    """Read a report to its end, or to the place where it is cut."""
    recording = Recording()
    for block in container.blocks():
        recording.names.extend(block.strings)
        if block.details is not None:
            recording.session.add(block.details)
        owner = (block.process, block.host)
        for data, listed in container.results(block):
            try:
                result = read_result(data, recording.metrics)
            except FormatError:
                recording.damaged += 1
                continue
            recording.results.append(result)
            recording.owners.append(owner)
            recording.listed.append(listed)
    return recording
