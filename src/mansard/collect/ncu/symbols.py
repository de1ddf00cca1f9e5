"""Names of functions as the compiler made them, from a report: what a trace calls its kernels.

Two demanglers spell one C++ name in two ways, so launches of a report and of a trace are put
together by the name before demangling.
"""

from pathlib import Path

from mansard.errors import FormatError
from mansard.readers.ncu_rep.container import Container
from mansard.readers.ncu_rep.result import MetricValues, read_result
from mansard.readers.ncu_rep.unpack import open_plain
from mansard.readers.ncu_rep.wire import Message

#: Field of a result with the mangled name.
_MANGLED = 5


def symbols_in(report: Path) -> list[str]:
    """The name of each launch, in the order in which the reader gives them; empty if unknown."""
    found: list[str] = []
    with open_plain(report, name=report.name) as (file, size):
        container = Container(file, size, name=report.name)
        for block in container.blocks():
            for data, _ in container.results(block):
                try:
                    # The reader leaves out what it cannot decode; so must this.
                    read_result(data, MetricValues())
                except FormatError:
                    continue
                found.append(Message(data).text(_MANGLED) or "")
    return found
