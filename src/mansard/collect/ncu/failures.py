"""What went wrong in a run under ncu, as an error of ours with the remedy."""

import re
import shutil
from collections.abc import Sequence

from mansard.collect.cupti.failures import PERMISSION_REMEDY
from mansard.collect.ncu.count import Counting
from mansard.collect.ncu.installation import NcuTool
from mansard.collect.ncu.log import Log
from mansard.collect.ncu.process import Ended
from mansard.errors import (
    CollectError,
    DeviceError,
    InputError,
    MansardError,
    OutputError,
    PermissionDeniedError,
)
from mansard.model.notice import Notice
from mansard.readers.ncu_csv.messages import notices_of

#: A report needs more; less than this is a full disk.
_NO_ROOM_BYTES = 1 << 20
_DISK_FULL = re.compile(r"no space left|disk (is )?full|not enough (disk )?space", re.IGNORECASE)
_NO_KERNELS = (
    "ncu profiled no kernel. Either the program launches none on a GPU, or no launch passed the "
    "filters. PyTorch launches the backward pass from another thread, where a push/pop range does "
    "not reach: use start/end ranges (mansard.phase makes them) or --nvtx-scope process. "
    "--from-profiler-start counts nothing until the program calls cudaProfilerStart, and after "
    "cudaProfilerStop ncu profiles nothing at all"
)
#: By code of a message of ncu: class of the error, slug. The first that was said counts.
_KNOWN: dict[str, tuple[type[MansardError], str]] = {
    "ncu-counters-busy": (DeviceError, "other-profiler"),
    "ncu-driver": (DeviceError, "ncu-driver"),
    "ncu-metrics-unavailable": (CollectError, "ncu-metrics"),
    "ncu-launch-failed": (CollectError, "ncu-launch-failed"),
    "ncu-error": (CollectError, ""),
}


def program_code(ended: Ended, log: Log) -> int:
    """Exit code of the program itself; 0 where ncu ended it, or says nothing of it."""
    if log.exit_code is None or log.shut_down or ended.stopped_by is not None:
        return 0
    return log.exit_code if 0 <= log.exit_code <= 255 else 1


def failure(tool: NcuTool, counting: Counting, unread: InputError | None) -> MansardError:
    """The error for a run that gave no usable report.

    Args:
        tool: the ncu.
        counting: what came of the runs under it.
        unread: why a report that is there cannot be read.
    """
    ended, log, folder = counting.ended, counting.log, counting.folder
    notices = {notice.code: notice for notice in notices_of(log.messages)}
    said = "\n".join(log.messages)
    if "ncu-no-permission" in notices:
        return PermissionDeniedError(PERMISSION_REMEDY, slug="permission")
    if _DISK_FULL.search(said) or shutil.disk_usage(folder).free < _NO_ROOM_BYTES:
        return OutputError(
            f"the disk of {folder.parent} is full: make room, write the run elsewhere with -o, or "
            "count fewer launches (--sample, --launch-count)",
            slug="disk-full",
        )
    for known, (kind, slug) in _KNOWN.items():
        if known in notices:
            return kind(notices[known].message, slug=slug)
    code = program_code(ended, log)
    if code:
        return CollectError(f"the program ended with code {code} before a kernel was counted")
    if log.no_kernels:
        return CollectError(_NO_KERNELS, slug="no-launches")
    if ended.code < 0:
        return CollectError(
            f"{tool.label} was ended by signal {-ended.code} and left no report that can be read"
        )
    if ended.code:
        return CollectError(
            f"{tool.label} ended with code {ended.code} and left no report; what it said of it is "
            "above, if anything"
        )
    if unread is not None and log.step.kernels:
        return CollectError(
            f"ncu counted {log.step.kernels} launches, ranges or graphs, and none of them can be "
            f"read ({unread}). Its report is kept: ncu --import REPORT --csv --page raw prints it "
            "as a file that mansard report reads",
            slug="report-unread",
        )
    return CollectError(_NO_KERNELS, slug="no-launches")


def log_notices(log: Log) -> Sequence[Notice]:
    """What ncu warned of, explained."""
    return notices_of(log.messages)
