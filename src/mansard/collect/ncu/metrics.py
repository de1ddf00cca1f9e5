"""Which counters ncu is asked for: those of the chip's table, in as few passes as will do."""

import contextlib
import re
import subprocess
from collections.abc import Mapping, Sequence

from mansard.collect.cupti.driver import load_driver
from mansard.collect.ncu.installation import NcuTool
from mansard.collect.ncu.options import NcuOptions, Tensor
from mansard.counters.plan import counter_groups, counters_for
from mansard.counters.table import CounterTable, table_for
from mansard.errors import DeviceError

_CAPABILITY = re.compile(r"\d+\.\d+")
#: A counter that replay, a range or a graph does not allow.
_REFUSED = re.compile(r"Metric (\S+) is not supported in")
#: Unit and first word of a counter: those that begin so come from one source.
_KIND = re.compile(r"[a-z0-9]+__[a-z0-9]+_")
_QUERY_S = 60.0
#: Nsight Compute makes these itself: they are in no list of the chip.
_TOOL_PREFIXES = ("launch__", "device__", "derived__", "profiler__")


def table_of(options: NcuOptions) -> CounterTable:
    """The counter table for the GPU that will run the program.

    Raises:
        DeviceError: no GPU is found, and no chip was named.
        CounterError: the table that was asked for does not exist or is for other chips.
    """
    chip, capability = _chip(options.chip)
    return table_for(name=options.counters, chip=chip, compute_capability=capability)


def wanted_counters(table: CounterTable, options: NcuOptions) -> tuple[str, ...]:
    """Vendor names of the counters, for the columns asked for or for all that are usual.

    What only tells whether tensor cores were used at all costs a pass, and says nothing more where
    their work is counted.

    Args:
        table: the definitions for the chip.
        options: columns, or how much tensor work.
    """
    prefer = "dense" if options.tensor is Tensor.DENSE else None
    if options.columns is not None:
        return counters_for(table, options.columns, prefer=prefer)
    found: dict[str, None] = {}
    for group in counter_groups(table):
        if group.name == "base" or _is_wanted(group.name, options.tensor):
            found |= dict.fromkeys(group.counters)
    needless = () if options.tensor is Tensor.NONE else table.evidence
    return tuple(counter for counter in found if counter not in needless)


def refused_counters(messages: Sequence[str], counters: Sequence[str]) -> tuple[str, ...]:
    """Counters that ncu refused, with those of their kind: it names one and does not start.

    Args:
        messages: what ncu said.
        counters: what it was asked for.
    """
    named = {found[1] for message in messages if (found := _REFUSED.search(message))}
    kinds = tuple(kind[0] for counter in named if (kind := _KIND.match(counter)))
    return tuple(each for each in counters if each in named or each.startswith(kinds))


def _is_wanted(group: str, tensor: Tensor) -> bool:
    if tensor is Tensor.NONE or not group.startswith("tensor "):
        return False
    return (group == "tensor dense") == (tensor is Tensor.DENSE)


def split_by_chip(
    tool: NcuTool, table: CounterTable, counters: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Counters that this ncu can collect on the chip, and those that it cannot.

    An ncu refuses the whole run for one name that it does not know. Where it cannot be asked,
    all are taken.
    """
    known = _listed(tool, table.chips[0]) if table.chips else frozenset[str]()
    if not known:
        return tuple(counters), ()
    lost = tuple(
        counter
        for counter in counters
        if counter.split(".", 1)[0] not in known and not counter.startswith(_TOOL_PREFIXES)
    )
    return tuple(counter for counter in counters if counter not in lost), lost


def _listed(tool: NcuTool, chip: str) -> frozenset[str]:
    if not (tool.options and {"query-metrics", "chips"} <= tool.options):
        return frozenset()
    command = [str(tool.path), "--query-metrics", "--chips", chip.lower()]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_QUERY_S,
            check=False,
        )
        if ended.returncode == 0:
            return metrics_in(ended.stdout.decode(errors="replace"))
    return frozenset()


def metrics_in(listing: str) -> frozenset[str]:
    """Names of metrics at the start of the lines of a listing: those with a unit before ``__``."""
    words = (line.split(maxsplit=1)[0] for line in listing.splitlines() if line.strip())
    return frozenset(word for word in words if "__" in word)


def _chip(named: str | None) -> tuple[str | None, str | None]:
    """Chip name and compute capability: as named, as the driver says, as nvidia-smi says."""
    if named is not None:
        return (None, named) if _CAPABILITY.fullmatch(named) else (named, None)
    with contextlib.suppress(DeviceError):
        driver = load_driver()
        if driver.device_count:
            major, minor = driver.compute_capability(0)
            return None, f"{major}.{minor}"
    capability = _from_smi(["nvidia-smi"])
    if capability is None:
        raise DeviceError(
            "no GPU was found: neither the driver nor nvidia-smi knows one. Check "
            "CUDA_VISIBLE_DEVICES and, in a container, --gpus. --chip names a GPU that is not "
            "visible here",
            slug="no-gpu",
        )
    return None, capability


def _from_smi(program: Sequence[str], environment: Mapping[str, str] | None = None) -> str | None:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        ended = subprocess.run(
            [*program, "--query-gpu=compute_cap", "--format=csv,noheader"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_QUERY_S,
            check=False,
            env=environment,
        )
        first = ended.stdout.decode(errors="replace").strip().splitlines()[:1]
        if first and _CAPABILITY.fullmatch(first[0].strip()):
            return first[0].strip()
    return None
