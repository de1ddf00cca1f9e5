"""Launches, reports and programs for the tests of the collection with ncu."""

import stat
import sys
from pathlib import Path

from mansard.collect.ncu.trace.trace import TracedLaunch

DATA = Path(__file__).parents[1]
GRAPH_NODES = DATA / "ncu_rep" / "graph-nodes.ncu-rep.gz"
if str(DATA / "ncu_rep") not in sys.path:
    sys.path.append(str(DATA / "ncu_rep"))

import report_writer as writer  # noqa: E402


def program_file(path, text):
    """An executable file."""
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def traced(symbol="add", *, number=0, duration_us=10, shape=(4, 1, 1, 128, 1, 1), **changes):
    """A launch of a trace; launches follow each other every 100 us."""
    start = 1_000_000 + number * 100_000
    fields = {
        "process": 77,
        "device": 0,
        "stream": 7,
        "kind": "kernel",
        "symbol": symbol,
        "name": f"void {symbol}(float *)",
        "start_ns": start,
        "end_ns": start + int(duration_us * 1000),
        "shape": shape,
        "shared_bytes": 0,
        "region": 1,
    }
    return TracedLaunch(**(fields | changes))


def in_order(*launches):
    """Launches as ``traced`` arguments, one after the other."""
    return [traced(**launch, number=number) for number, launch in enumerate(launches)]


#: Counters of the reports made up here: time in ns, bytes, thread instructions, bytes a block.
NAMES = (
    "gpu__time_duration.sum",
    "dram__bytes.sum",
    "sm__sass_thread_inst_executed_op_fadd_pred_on.sum",
    "sm__sass_thread_inst_executed_op_fmul_pred_on.sum",
    "sm__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "launch__shared_mem_per_block_dynamic",
)


def counted(symbol="add", *, adds=0, dram=0, time_us=12, shape=(4, 1, 1, 128, 1, 1), shared=0):
    """A result of a report: a launch with its counters."""
    values = (int(time_us * 1000), dram, adds, 0, 0, shared)
    return writer.result(
        name=f"void {symbol}(float *)",
        function=symbol,
        mangled=symbol,
        grid=shape[:3],
        threads=shape[3:],
        metrics=[writer.metric(number, value) for number, value in enumerate(values)],
    )


def report_of(path, *results):
    """Write a report of an H200."""
    attributes = [
        ("device__attribute_compute_capability_major", 9),
        ("device__attribute_compute_capability_minor", 0),
        ("device__attribute_chip", 384),
    ]
    details = writer.message((6, [writer.device(attributes=attributes)]), (8, writer.TOOL))
    path.write_bytes(writer.report(results, NAMES, details=details))
    return path
