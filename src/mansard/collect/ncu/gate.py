"""Shows ncu the chosen launches alone, through a library that is loaded into the program.

ncu chooses launches by a filter of names and numbers, with the same numbers for all names. That
fits a sample of the first launches of each kernel, but not one that was chosen by time.
"""

import contextlib
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path

from mansard.collect.ncu.installation import NcuTool
from mansard.collect.ncu.trace.build import build_library
from mansard.collect.ncu.trace.trace import ProgramTrace, TracedLaunch

#: The option of ncu that loads it, and the variable that names its list of launches.
OPTION, VARIABLE = "preload-library", "MANSARD_GATE"
_LIST, _OPENED = "gate.txt", "gate.txt.opened"
#: The loader takes these as ends of a path.
_SEPARATORS = re.compile(r"[\s:;$]")


def why_no_gate(tool: NcuTool, trace: ProgramTrace) -> str | None:
    """Why launches cannot be shown one by one; None where they can.

    Args:
        tool: the ncu.
        trace: everything that the program launched.
    """
    kernels = trace.kernels
    if OPTION not in tool.options:
        return f"this Nsight Compute has no --{OPTION}"
    if not trace.from_start:
        return "the trace does not hold what ran before the region"
    if len({each.process for each in kernels}) > 1:
        return "more than one process uses the GPU"
    if any(each.in_graph for each in kernels):
        return "the program launches CUDA graphs"
    if any(each.shape is None or each.shared_bytes is None for each in kernels):
        return "the trace does not tell the shared memory of launches"
    return None


def gate_text(trace: ProgramTrace, picked: Sequence[TracedLaunch]) -> str:
    """The list that the library reads: shapes, and which launches of each.

    Args:
        trace: everything that the program launched, in the order of its calls.
        picked: launches of it.
    """
    wanted = {id(launch) for launch in picked}
    launched: Counter[tuple[int, ...]] = Counter()
    numbers: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for launch in trace.kernels:
        shape = (*(launch.shape or ()), launch.shared_bytes or 0)
        launched[shape] += 1
        if id(launch) in wanted:
            numbers[shape].append(launched[shape])
    return "".join(f"{_joined(shape)} {_joined(numbers[shape])}\n" for shape in numbers)


@contextlib.contextmanager
def loadable_folder(folder: Path) -> Iterator[Path]:
    """A folder from which a library can be loaded before a program: this one, if it can.

    Args:
        folder: one that exists. Where its path has blanks or colons, one in the system's place for
            temporary files is made, and gone afterwards.
    """
    if _SEPARATORS.search(str(folder)) is None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="mansard-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def build_gate(
    folder: Path, text: str, environment: Mapping[str, str] | None = None
) -> Path | None:
    """Build the library into a folder, with its list; None where that does not work.

    Args:
        folder: it must allow programs to run from it, and have no blank or colon in its path.
        text: the list.
        environment: ``CC`` names the compiler, ``PATH`` is where it is looked for.
    """
    if _SEPARATORS.search(str(folder)):
        return None
    source = resources.files(__package__).joinpath("gate.c")
    library = build_library(source, folder / "libmansard_gate.so", environment)
    if library is not None:
        (folder / _LIST).write_text(text, encoding="ascii")
    return library


def gate_variables(library: Path) -> dict[str, str]:
    """What the library needs to be told."""
    return {VARIABLE: str(library.with_name(_LIST))}


def times_opened(library: Path) -> int:
    """How many launches it showed."""
    mark = library.with_name(_OPENED)
    return mark.stat().st_size if mark.exists() else 0


def _joined(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers))
