"""Cost and correctness of ``mansard profile --with ncu``, full and sampled, on a GPU.

    python benchmarks/ncu_sampled.py [--output ncu_sampled.json] [--budget 560]
    python benchmarks/ncu_sampled.py --summary docs/validation/ncu-sampled-h200.json RESULT...

Needs an NVIDIA GPU with counter permission, ncu, nvcc, a C compiler, PyTorch and torchvision.
One training step of DeepLabv3-ResNet50 (about a thousand kernels) is counted in full by ncu, in
samples, and inside the process; totals and wall times are set against each other. Small programs
of known work and shape show what ncu's filters, graphs, ranges, errors and signals do. Each stage
is a process of its own with a time limit; what is not reached is named. One small JSON comes out.
"""

import argparse
import collections
import contextlib
import csv
import itertools
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

PROGRAMS = Path(__file__).with_name("ncu_programs")
#: FP32 operations of one round of known.cu: fused multiply-adds 2, adds and muls 1.
ROUND_FLOP = (2 * 1024 * 2 + 2 * 2048 + 64 + 128) * 128 * 256 + 2 * 1024 * 256 * 256
#: The compiler moves a constant by an instruction for half pairs in five of the launches' blocks.
ROUND_MOVES = 4 * 5 * 128 * 256
ROUND_CONFIGURATIONS = ROUND_LAUNCHES = 7
COPY_BYTES = 2 * (256 << 20)


def execute(command, **options):
    return subprocess.run(command, check=False, capture_output=True, **options)


def short(text, most=900):
    text = text if isinstance(text, str) else text.decode(errors="replace")
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


class Place:
    """A folder for what the stages make."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.binary = self.folder / "known work"
        #: What comes back beside the numbers.
        self.kept = self.folder / "kept"
        self.kept.mkdir(exist_ok=True)

    def python(self, name, *arguments):
        return (sys.executable, str(PROGRAMS / f"{name}.py"), *map(str, arguments))

    def known(self, *arguments):
        return (str(self.binary), *map(str, arguments))


def totals(run):
    from mansard.engine import connect, parquet
    from mansard.model.columns import WORK_COLUMNS

    flop = " + ".join(f"coalesce({c.name}, 0)" for c in WORK_COLUMNS if c.name.startswith("flop"))
    tensor = " + ".join(
        f"coalesce({c.name}, 0)" for c in WORK_COLUMNS if c.name.startswith("flop_tensor")
    )
    sums = {
        "kernels": "count(*)",
        "shapes": "count(DISTINCT (name, grid_x, grid_y, grid_z, block_x, block_y, block_z))",
        "time_s": "sum(duration_s)",
        "flop": f"sum({flop})",
        "tensor": f"sum({tensor})",
        "shared": "sum(bytes_shared)",
        "l1": "sum(bytes_l1)",
        "l2": "sum(bytes_l2)",
        "dram": "sum(bytes_dram)",
        "known": "count(bytes_dram)",
        "measured": "count(*) FILTER (counters_from = 'measured')",
        "inferred": "count(*) FILTER (counters_from = 'inferred')",
        "kinds": "list(DISTINCT kind)",
    }
    kernels = f"FROM {parquet(run.files)} WHERE kind NOT IN ('memcpy', 'memset')"
    with connect() as connection:
        row = connection.execute(f"SELECT {', '.join(sums.values())} {kernels}").fetchone()
        phases = connection.execute(
            f"SELECT coalesce(phase, '-'), count(*) {kernels} GROUP BY 1 ORDER BY 1"
        ).fetchall()
    return dict(zip(sums, row, strict=True)) | {"phases": dict(phases)}


def collected(program, output, options):
    """Run the product's function; its outcome, its cost, and how often the log grew."""
    from mansard.collect.ncu import collect_with_ncu

    steps = collections.Counter()
    begin = time.perf_counter()
    result = collect_with_ncu(
        program, output, options, watch=lambda p: steps.update([f"{p.stage} {p.step.kernels}"])
    )
    found = {
        "wall_s": round(time.perf_counter() - begin, 2),
        "seconds": {k: round(v, 2) for k, v in result.seconds.items()},
        "program_code": result.program_code,
        "stopped_by": result.stopped_by,
        "failure": short(str(result.failure), 600) if result.failure else None,
        "progress_states": len(steps),
    }
    if result.report is not None:
        found["report_mb"] = round(result.report.stat().st_size / 1e6, 2)
    if result.run is not None:
        origin = result.run.provenance[0]
        found |= {
            "totals": totals(result.run),
            "extra": origin.extra,
            "table": origin.counter_table,
        }
        found["notices"] = {n.code: short(n.message, 300) for n in result.run.all_notices}
    return found


def options(**changes):
    from mansard.collect.ncu import NcuOptions, Selection

    selection = Selection(**changes.pop("selection", {}))
    return NcuOptions(selection=selection, **changes)


def raw_line(place, name, program, *extra, counters=("gpu__time_duration.sum",), **changes):
    """The command line of the product, with more options before the program."""
    from mansard.collect.ncu import Selection
    from mansard.collect.ncu.command import Job, command_line
    from mansard.collect.ncu.installation import find_ncu

    job = Job(
        program=(),
        report=place.folder / f"{name}.ncu-rep",
        log=place.folder / f"{name}.log",
        counters=counters,
        selection=Selection(collectives=True),
        **changes,
    )
    return [*command_line(find_ncu(), job), *extra, *program], job


def raw(place, name, program, *extra, variables=None, limit_s=120, **changes):
    """Run ncu as it is: code, log, output, cost, what the report holds."""
    line, job = raw_line(place, name, program, *extra, **changes)
    for old in (job.report, job.log):
        old.unlink(missing_ok=True)
    begin = time.perf_counter()
    ended = execute(line, timeout=limit_s, env={**os.environ, **(variables or {})})
    found = {
        "code": ended.returncode,
        "wall_s": round(time.perf_counter() - begin, 2),
        "out": short(ended.stdout, 300),
        "err": short(ended.stderr, 300),
        "log": short(job.log.read_text(errors="replace")) if job.log.exists() else None,
    }
    if job.report.exists():
        found["report_mb"] = round(job.report.stat().st_size / 1e6, 3)
        with contextlib.suppress(Exception):
            found |= in_report(job.report)
    return found


def timed(place, name, program, *extra, counters, variables=None, limit_s=60):
    """Run ncu and watch its log: when each launch was done, in how many passes, first values."""
    line, job = raw_line(place, name, program, *extra, counters=counters)
    for old in (job.report, job.log):
        old.unlink(missing_ok=True)
    begin, done = time.perf_counter(), []
    child = subprocess.Popen(
        line,
        env={**os.environ, **(variables or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while child.poll() is None:
            now = time.perf_counter() - begin
            if now > limit_s:
                child.send_signal(signal.SIGINT)
                child.wait(20)
                break
            count = job.log.read_bytes().count(b" pass") if job.log.exists() else 0
            done += [now] * (count - len(done))
            time.sleep(0.002)
    finally:
        child.kill()
    wall = time.perf_counter() - begin
    log = job.log.read_text(errors="replace") if job.log.exists() else ""
    lines = [each for each in log.splitlines() if "Profiling" in each]
    steps = [(b - a) * 1e3 for a, b in itertools.pairwise(done)]
    copies = [ms for ms, each in zip(steps, lines[1:], strict=False) if '"copy' in each]
    others = [ms for ms, each in zip(steps, lines[1:], strict=False) if '"copy' not in each]
    found = {
        "code": child.returncode,
        "wall_s": round(wall, 2),
        "first_s": round(done[0], 2) if done else None,
        "after_last_s": round(wall - done[-1], 2) if done else None,
        "launches": len(done),
        "median_ms": round(statistics.median(others), 1) if others else None,
        "least_ms": round(min(others), 1) if others else None,
        "most_ms": round(max(others), 1) if others else None,
        "copy_ms": [round(ms, 1) for ms in copies],
    }
    if child.returncode or not done:
        found["log"] = short(log, 700)
    if job.report.exists():
        found["report_mb"] = round(job.report.stat().st_size / 1e6, 3)
        with contextlib.suppress(Exception):
            found |= first_values(job.report, counters)
    return found


def first_values(report, counters):
    """Values of the first launch of a report, and the passes of all."""
    from mansard.collect.ncu.vocabulary import vocabulary
    from mansard.engine import connect, identifier
    from mansard.readers.ncu_rep import read_ncu_rep

    with connect() as connection:
        capture = read_ncu_rep(report, connection, "t", name=report.name)
        here = [name for name in counters if name in capture.counters]
        columns = ", ".join(identifier(f"counter.{name}") for name in here)
        row = connection.execute(f"SELECT {columns} FROM t ORDER BY row LIMIT 1").fetchone()
        passes = connection.execute(
            f'SELECT DISTINCT "counter.{vocabulary().passes}" FROM t ORDER BY 1'
        ).fetchall()
    return {
        "passes": [int(each) for (each,) in passes if each is not None],
        "missing": [name for name in counters if name not in here],
        "values": dict(zip(here, row, strict=True)) if len(here) <= 14 else None,
    }


def in_report(report):
    """Results of a report, by what makes a configuration."""
    from mansard.collect.ncu.symbols import symbols_in
    from mansard.collect.ncu.vocabulary import vocabulary
    from mansard.engine import connect
    from mansard.readers.ncu_rep import read_ncu_rep

    names = vocabulary()
    with connect() as connection:
        capture = read_ncu_rep(report, connection, "t", name=report.name)
        shared, passes = (
            f'"counter.{name}"' if name in capture.counters else "NULL"
            for name in (names.shared_bytes, names.passes)
        )
        rows = connection.execute(
            f"SELECT grid_x, block_x, {shared}, phase, {passes} FROM t ORDER BY row"
        ).fetchall()
    keys = collections.Counter(
        (symbol, *row[:3]) for symbol, row in zip(symbols_in(report), rows, strict=True)
    )
    few = {" ".join(map(str, key))[-60:]: count for key, count in keys.items()}
    return {
        "results": len(rows),
        "configurations": len(keys),
        "by_configuration": few if len(few) <= 12 else None,
        "phases": dict(collections.Counter(str(row[3]) for row in rows)),
        "passes": dict(collections.Counter(str(row[4]) for row in rows)),
    }


# --- stages: each returns what goes into the JSON ---


def stage_setup(place):
    from mansard.collect.cupti.library import find_cupti
    from mansard.collect.ncu.installation import find_ncu
    from mansard.collect.ncu.metrics import split_by_chip, table_of, wanted_counters
    from mansard.collect.ncu.options import NcuOptions
    from mansard.collect.ncu.trace.build import build_injection

    seconds = {}

    def timed(name, function, *arguments):
        begin = time.perf_counter()
        result = function(*arguments)
        seconds[name] = round(time.perf_counter() - begin, 2)
        return result

    nvcc = ["nvcc", "-O2", "-arch=native", "-o", str(place.binary), str(PROGRAMS / "known.cu")]
    built = timed("nvcc", execute, nvcc)
    plain = execute(place.known(3, 5))
    tool = timed("find ncu", find_ncu)
    table = table_of(NcuOptions())
    counters = wanted_counters(table, NcuOptions())
    kept, lost = timed("query metrics", split_by_chip, tool, table, counters)
    injection = timed("build injection", build_injection, place.folder)
    smi = execute(["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm", "--format=csv"])
    return {
        "gpu": short(smi.stdout),
        "nvcc": (built.returncode, short(built.stderr, 400)),
        "plain": (plain.returncode, short(plain.stdout)),
        "ncu": (str(tool.path), tool.version),
        "options": sorted(tool.options),
        "table": table.name,
        "counters": (len(kept), lost),
        "injection": str(injection),
        "cupti": find_cupti(13),
        "seconds": seconds,
    }


def counter_subsets(table):
    """Counters of a collection in parts, to see which of them cost a pass."""
    from mansard.collect.ncu.metrics import wanted_counters
    from mansard.collect.ncu.options import NcuOptions, Tensor
    from mansard.counters.plan import counter_groups

    groups = {group.name: group.counters for group in counter_groups(table)}
    every = tuple(dict.fromkeys((*groups["base"], *groups["tensor dense"])))
    patched = tuple(name for name in every if "_sass_" in name)
    plain = tuple(name for name in groups["base"] if name not in (*patched, *table.evidence))
    dense = groups["tensor dense"]
    bf16 = tuple(name for name in dense if "bf16" in name)
    fewer = tuple(name for name in dense if "_imma_" not in name)
    alone = tuple(name for name in plain if "tma" not in name)
    return {
        "every": every,
        "patched": patched,
        "plain": plain,
        "plain, bf16": plain + bf16,
        "plain, no imma": plain + fewer,
        "plain, dense": plain + dense,
        "plain, evidence": plain + tuple(table.evidence),
        "one pass": alone,
        "without tensor": wanted_counters(table, NcuOptions(tensor=Tensor.NONE)),
    }


WITHOUT_PRE_PASS = {"NV_COMPUTE_PROFILER_DISABLE_SW_PRE_PASS": "1"}


def stage_passes(place):
    """Passes and seconds of a launch by what is counted; what memory and options add."""
    from mansard.collect.ncu.metrics import table_of
    from mansard.collect.ncu.options import NcuOptions

    sets = counter_subsets(table_of(NcuOptions()))
    sass = "sm__sass_thread_inst_executed_op_ffma_pred_on.sum"
    sub = sass.replace("sm__", "smsp__")
    both = "sm__sass_thread_inst_executed_ops_fadd_fmul_ffma_pred_on.sum"
    pipes = tuple(
        f"sm__{kind}_executed_pipe_{name}.sum"
        for kind, name in (
            *(("thread_inst", f"{pipe}_pred_on") for pipe in ("fma", "fma_type_fp16", "fp64")),
            *(("inst", pipe) for pipe in ("fma", "fp64", "tensor", "tensor_op_hmma")),
        )
    )
    time_alone = ("gpu__time_duration.sum",)
    known, quiet = place.known(1), ("--check-exit-code", "no")
    ways = {
        "every": (sets["every"], {}),
        "every, no pre-pass": (sets["every"], {"variables": WITHOUT_PRE_PASS}),
        "plain, no imma": (sets["plain, no imma"], {}),
        "time": (time_alone, {}),
        "patched": (sets["patched"], {}),
        "patched, no pre-pass": (sets["patched"], {"variables": WITHOUT_PRE_PASS}),
        "one pass": (sets["one pass"], {}),
        "plain, dense": (sets["plain, dense"], {}),
        "plain, no imma, patched, no pre-pass": (
            sets["plain, no imma"] + sets["patched"],
            {"variables": WITHOUT_PRE_PASS},
        ),
        "every, 24 GB": (sets["every"], {"program": place.known(1, 0, 24000)}),
        "plain, no imma, 24 GB": (sets["plain, no imma"], {"program": place.known(1, 0, 24000)}),
        "smsp sass": ((sub,), {}),
        "sums of sass": ((both,), {}),
        "pipes": (pipes, {}),
        "time, one sass": ((*time_alone, sass), {"variables": WITHOUT_PRE_PASS}),
    }
    found = {}
    for number, (name, (counters, changes)) in enumerate(ways.items()):
        program = changes.pop("program", known)
        with contextlib.suppress(subprocess.TimeoutExpired, OSError):
            found[name] = timed(
                place, f"pass{number}", program, *quiet, counters=counters, limit_s=25, **changes
            )
        # What was reached is kept when the time of the stage is up.
        (place.folder / "passes.json").write_text(json.dumps(found))
    return found


def stage_filters(place):
    """Which launches each way of sampling counts; 3 rounds of 7 configurations are there."""
    shapes = ("--filter-mode", "per-launch-config")
    mangled = ("--kernel-name-base", "mangled")
    first, third = "::regex:ILi1024E:1", "::regex:ILi2048E:3"
    ways = {
        "mangled 1": (*shapes, *mangled, "--kernel-id", ":::1"),
        "mangled 1|3": (*shapes, *mangled, "--kernel-id", ":::1|3"),
        "mangled, two ids": (*shapes, *mangled, "--kernel-id", first, "--kernel-id", third),
        "mangled, regex": (*shapes, *mangled, "--kernel-id", "::regex:^(?!.*adds).*$:^(2)$"),
        "mangled, count 1": (*shapes, *mangled, "--launch-count", "1"),
        "mangled, global 2": (*mangled, "--kernel-id", ":::2"),
        "base 1, two ids": (*shapes, "--kernel-id", "::c_adds:1", "--kernel-id", "::c_muls:3"),
    }
    found = {}
    for name, extra in ways.items():
        found[name] = raw(place, "filters", place.known(3), *extra)
        (place.folder / "filters.json").write_text(json.dumps(found))
    return found


def stage_gate(place):
    """Launches chosen by their time, shown to ncu one by one; the same work as in full."""
    rounds = 5
    # Of fp32 alone, so without the moves by half pairs.
    found = {"flop": rounds * ROUND_FLOP, "launches": rounds * ROUND_LAUNCHES}
    for sample in (1, 3):
        chosen = options(
            selection={"sample": sample}, columns=("duration_s", "flop_vector_fp32", "bytes_dram")
        )
        found[f"sample {sample}"] = collected(
            place.known(rounds), place.folder / f"gate {sample}.parquet", chosen
        )
        (place.folder / "gate.json").write_text(json.dumps(found, default=str))
    if "sampled-by-number" in found["sample 1"].get("notices", {}):
        found["why"] = gate_by_itself(place)
    return found


def gate_by_itself(place):
    """How often the gate opens for two launches: without ncu, through its option, by the loader."""
    from mansard.collect.ncu.gate import build_gate, gate_variables, times_opened

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        gate = build_gate(Path(folder), "128 1 1 256 1 1 0 1 3\n")
        opened = gate_variables(gate)
        loaded = opened | {"LD_PRELOAD": str(gate)}
        off = ("--profile-from-start", "off")
        before = 0
        for name, variables, extra in (
            ("without ncu", loaded, None),
            ("option", opened, ("--preload-library", str(gate), *off)),
            ("loader", loaded, off),
        ):
            if extra is None:
                execute(place.known(1), env={**os.environ, **variables})
                found[name] = {}
            else:
                found[name] = raw(place, "why", place.known(1), *extra, variables=variables)
            found[name]["opened"] = times_opened(gate) - before
            before = times_opened(gate)
    return found


def stage_sample_one(place):
    """A sample in one run: what a person gets who asks for no more than one pass."""
    columns = ("duration_s", "sm_clock_hz", "flop_tensor_bf16", "bytes_l2", "bytes_dram")
    return of_the_step(place, "sample one", 1, columns=columns)


def stage_groups(place):
    """The groups of one pass that CUPTI proposes: whether ncu agrees, and what a launch costs."""
    from mansard.collect.ncu.metrics import table_of, wanted_counters
    from mansard.collect.ncu.options import NcuOptions
    from mansard.collect.ncu.passes import groups_for

    table = table_of(NcuOptions())
    begin = time.perf_counter()
    groups, left_out = groups_for(table, wanted_counters(table, NcuOptions()))
    found = {"plan_s": round(time.perf_counter() - begin, 3), "left_out": left_out}
    parts = {f"group {number}": group for number, group in enumerate(groups, start=1)}
    first = parts["group 1"]
    parts |= {
        f"group 1, {unit} alone": tuple(n for n in first if n.startswith(("gpu__time", unit)))
        for unit in ("dram__", "lts__", "l1tex__", "sm__")
    }
    parts["instructions by opcode"] = (
        "sass__inst_executed_per_opcode_with_modifier_all",
        "sass__thread_inst_executed_true_per_opcode",
    )
    for number, (name, counters) in enumerate(parts.items()):
        way = timed(place, f"group{number}", place.known(1), counters=counters, limit_s=20)
        if name.startswith("instructions") and (place.folder / f"group{number}.ncu-rep").exists():
            shutil.copy(place.folder / f"group{number}.ncu-rep", place.kept / "opcodes.ncu-rep")
        found[name] = way | {"counters": counters}
        (place.folder / "groups.json").write_text(json.dumps(found, default=str))
    return found


def stage_known(place):
    """A C++ program of known work through the product: full, traced, sampled."""
    from mansard.collect.ncu import Times

    rounds = 5
    found = {
        "flop": rounds * (ROUND_FLOP + ROUND_MOVES),
        "launches": rounds * ROUND_LAUNCHES,
        "configurations": ROUND_CONFIGURATIONS,
        "bytes of copies": rounds * COPY_BYTES,
    }
    for name, chosen in (
        ("sample 1", options(selection={"sample": 1}, keep_report=place.folder / "s1.ncu-rep")),
        ("sample 3", options(selection={"sample": 3})),
        ("full", options(keep_report=place.folder / "full.ncu-rep")),
        ("full, traced", options(times=Times.TRACE)),
    ):
        found[name] = collected(place.known(rounds), place.folder / "k n.parquet", chosen)
    return found


def stage_graph(place):
    """Replays of a graph of PyTorch as a whole; the report is kept."""
    from mansard.collect.ncu import Graphs
    from mansard.collect.ncu.options import Conditions

    program, folder = place.python("graph"), place.folder
    region = {"from_start": False}
    graph = Conditions(graphs=Graphs.GRAPH)
    report = place.kept / "graph-whole.ncu-rep"
    chosen = options(selection=region, conditions=graph, keep_report=report)
    return {
        "whole": collected(program, folder / "g2.parquet", chosen),
        "rows": rows_of(folder / "g2.parquet"),
        "csv": exported(report),
    }


def stage_nodes(place):
    """The same replays kernel by kernel, in full and as a sample."""
    program, folder = place.python("graph"), place.folder
    region = {"from_start": False}
    sampled = options(selection={**region, "sample": 1})
    return {
        "nodes": collected(program, folder / "g.parquet", options(selection=region)),
        "nodes, sample 1": collected(program, folder / "g1.parquet", sampled),
    }


def exported(report):
    """What ncu prints of a report, kept beside it: what each row is, its time and its clock."""
    page = execute(["ncu", "--import", str(report), "--csv", "--page", "raw"])
    report.with_suffix(".csv").write_bytes(page.stdout)
    lines = list(csv.reader(page.stdout.decode(errors="replace").splitlines()))
    wanted = ("Kernel Name", "gpu__time_duration.sum", "sm__cycles_elapsed.avg.per_second")
    if len(lines) < 3 or not set(wanted) <= set(lines[0]):
        return short(page.stdout, 300)
    places = [lines[0].index(name) for name in wanted]
    return [" ".join(f"{row[at]} {lines[1][at]}" for at in places) for row in lines[2:]]


def rows_of(run):
    """What rows of a run are, and a few of their values; None without a run."""
    from mansard.engine import connect, parquet

    if not run.exists():
        return None
    values = "kind, name, phase, duration_s, sm_clock_hz, flop_vector_fp32, bytes_l2, bytes_dram"
    with connect() as connection:
        return connection.execute(
            f"SELECT {values} FROM {parquet([run])} ORDER BY launch"
        ).fetchall()


def stage_threads(place):
    """Phases of a backward pass, which another thread launches, as the report alone tells them."""
    report = place.kept / "threads.ncu-rep"
    chosen = options(columns=("duration_s", "bytes_dram"), keep_report=report)
    found = collected(place.python("ranges"), place.folder / "t.parquet", chosen)
    rows = rows_of(place.folder / "t.parquet") or []
    return found | {"phases": collections.Counter(str(row[2]) for row in rows)}


def stage_ranges(place):
    """Whether ranges reach the backward pass, which another thread launches."""
    from mansard.collect.ncu import NvtxScope
    from mansard.collect.ncu.options import Conditions

    program = place.python("ranges")
    found = {}
    for scope in NvtxScope:
        how = Conditions(nvtx_scope=scope)
        found[scope.value] = raw(place, "ranges", program, conditions=how)
        include = ("--nvtx-include", "backward/")
        found[f"{scope.value}, backward/"] = raw(place, "ranges", program, *include, conditions=how)
    chosen = options(selection={"sample": 1, "nvtx_include": ("backward/",)})
    found["sample in backward/"] = collected(program, place.folder / "r.parquet", chosen)
    return found


#: Of kinds.cu: additions of the range and of each replay of the graph, and bytes that they write.
RANGE_ADDS, GRAPH_ADDS = 128 * 128 * (10 + 20), 3 * 64 * 128 * 100
RANGE_BYTES, GRAPH_BYTES = 2 * 4 * 128 * 128, 3 * 4 * 64 * 128
#: Makes the kernels of kinds.cu milliseconds long.
LONG = 50_000


def stage_kinds(place):
    """Ranges and whole graphs: what a report says of them, and what their times are worth."""
    from mansard.collect.ncu import Times
    from mansard.collect.ncu.metrics import table_of
    from mansard.collect.ncu.options import Conditions, Graphs, NcuOptions, Replay

    binary = place.folder / "kinds"
    built = execute(["nvcc", "-O2", "-arch=native", "-o", str(binary), str(PROGRAMS / "kinds.cu")])
    counters = counter_subsets(table_of(NcuOptions()))["plain, no imma"]
    timed = ("gpu__time_duration.sum", "sm__cycles_elapsed.avg.per_second")
    whole = {
        "graph": ("--graph-profiling", "graph"),
        "range": ("--replay-mode", "range"),
        "app-range": ("--replay-mode", "app-range"),
        "kernels": (),
    }
    ways = {name: (counters, extra, ()) for name, extra in whole.items()}
    ways |= {f"long {name}": (timed, extra, (str(LONG),)) for name, extra in whole.items() if extra}
    found = {
        "nvcc": (built.returncode, short(built.stderr, 400)),
        "adds": {"range": RANGE_ADDS, "graph": GRAPH_ADDS},
        "bytes": {"range": RANGE_BYTES, "graph": GRAPH_BYTES},
    }
    common = ("ncu", "--clock-control", "none", "--cache-control", "none", "--force-overwrite")
    for name, (chosen, extra, arguments) in ways.items():
        report = place.kept / f"kind-{name.replace(' ', '-')}.ncu-rep"
        line = [*common, "--metrics", ",".join(chosen), *extra, "--export", str(report)]
        try:
            ended = execute([*line, str(binary), *arguments], timeout=30)
        except subprocess.TimeoutExpired as error:
            found[name] = {"error": "stopped after 30 s", "out": short(error.stdout or "", 400)}
            continue
        found[name] = {"code": ended.returncode, "out": short(ended.stdout, 700)}
        found[name]["csv"] = exported(report)
        # What was reached is kept when the time of the stage is up.
        (place.folder / "kinds.json").write_text(json.dumps(found))
    for name, changes in (
        ("graph", {"conditions": Conditions(graphs=Graphs.GRAPH)}),
        ("range", {"conditions": Conditions(replay=Replay.RANGE)}),
        ("app-range", {"conditions": Conditions(replay=Replay.APP_RANGE)}),
        (
            "named range",
            {
                "conditions": Conditions(replay=Replay.RANGE),
                "selection": {"nvtx_include": ("pair/",)},
                "keep_report": place.kept / "kind-named-range.ncu-rep",
            },
        ),
        ("kernels", {"times": Times.TRACE}),
    ):
        output = place.folder / f"kind {name}.parquet"
        found[f"product, {name}"] = collected((str(binary),), output, options(**changes))
        found[f"product, {name}"]["rows"] = rows_of(output)
        (place.folder / "kinds.json").write_text(json.dumps(found, default=str))
    output = place.folder / "kind long.parquet"
    long = options(times=Times.TRACE, columns=("duration_s", "sm_clock_hz"))
    found["product, long kernels"] = collected((str(binary), str(LONG)), output, long)
    found["product, long kernels"]["rows"] = rows_of(output)
    return found


def stage_errors(place):
    """What ncu says and how it ends when things go wrong."""
    wrong = ("gpu__time_duration.sum", "sm__no_such_thing.sum")
    program = place.known(1)
    return {
        "program fails": raw(place, "e1", place.known(1, 7)),
        "program aborts": raw(place, "e2", place.known(1, -1)),
        "no kernels": raw(place, "e3", program, "--profile-from-start", "off"),
        "unknown metric": raw(place, "e4", program, counters=wrong),
        "unknown option": raw(place, "e5", program, "--no-such-option"),
        "bad expression": raw(place, "e6", program, "--kernel-name", "regex:("),
        "no such program": raw(place, "e7", ("/nowhere/app",)),
        "disk full": raw_on_small_disk(place),
        "through the product": collected(place.known(1, 7), place.folder / "e.parquet", options()),
    }


def raw_on_small_disk(place):
    """A file system of 64 KiB, where this may be mounted."""
    folder = place.folder / "small"
    folder.mkdir(exist_ok=True)
    mounted = execute(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)])
    if mounted.returncode:
        return {"skipped": short(mounted.stderr, 200)}
    try:
        return raw(argparse.Namespace(folder=folder), "full", place.known(3))
    finally:
        execute(["umount", str(folder)])


def stage_interrupt(place):
    """Ctrl-C in the middle of a long collection."""
    output = place.folder / "interrupted.parquet"
    child = subprocess.Popen(
        [sys.executable, __file__, "--stage", "interrupted", "--folder", str(place.folder)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    time.sleep(9)
    child.send_signal(signal.SIGINT)
    begin = time.perf_counter()
    try:
        out, _ = child.communicate(timeout=90)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, _ = child.communicate()
    left = execute(["pgrep", "-fc", str(place.binary)])
    return {
        "ended_after_s": round(time.perf_counter() - begin, 2),
        "result": json.loads(out.splitlines()[-1]) if out.strip() else None,
        "programs_left": short(left.stdout),
        "run_written": output.exists(),
    }


def stage_interrupted(place):
    return collected(place.known(100000), place.folder / "interrupted.parquet", options())


def stage_plain(place):
    """The step without any profiler."""
    begin = time.perf_counter()
    ended = execute(place.python("step", "counted"))
    return {
        "code": ended.returncode,
        "wall_s": round(time.perf_counter() - begin, 2),
        "err": short(ended.stderr, 300),
    }


def of_the_step(place, name, sample=None, **changes):
    report = place.folder / f"{name}.ncu-rep"
    chosen = options(
        selection={"sample": sample, "from_start": False}, keep_report=report, **changes
    )
    return collected(place.python("step", "counted"), place.folder / f"{name}.parquet", chosen)


def stage_sample_1(place):
    return of_the_step(place, "sample 1", 1)


def stage_sample_2(place):
    return of_the_step(place, "sample 2", 2)


def stage_full(place):
    from mansard.collect.ncu import Times

    return of_the_step(place, "full", times=Times.TRACE)


def stage_inside(place):
    """The same step by the collector inside the process."""
    from mansard.store.run_file import open_run

    output = place.folder / "inside.parquet"
    begin = time.perf_counter()
    ended = execute(place.python("step", "inside", output))
    found = {
        "code": ended.returncode,
        "wall_s": round(time.perf_counter() - begin, 2),
        "err": short(ended.stderr, 600),
    }
    if output.exists():
        run = open_run(output)
        found |= {"totals": totals(run), "extra": run.provenance[0].extra}
    return found


def stage_costs(place):
    """What makes a sample dear: variations of the run under ncu alone, a sample of 1."""
    from mansard.collect.ncu.metrics import table_of, wanted_counters
    from mansard.collect.ncu.options import Conditions, NcuOptions, Replay, Tensor

    table = table_of(NcuOptions())
    dense = wanted_counters(table, NcuOptions())
    none = wanted_counters(table, NcuOptions(tensor=Tensor.NONE))
    region = ("--profile-from-start", "off")
    one = (*region, "--filter-mode", "per-launch-config", "--kernel-id", ":::1")
    again = Conditions(replay=Replay.APPLICATION)
    without = {"NV_COMPUTE_PROFILER_DISABLE_SW_PRE_PASS": "1"}
    ways = {
        "one launch": ((*region, "--launch-count", "1"), {}),
        "time alone": (one, {}),
        "without tensor work": (one, {"counters": none}),
        "by application replay": (one, {"counters": dense, "conditions": again}),
        "with machine code": ((*one, "--import-sass", "yes"), {"counters": dense}),
        "without the pre-pass": (one, {"counters": dense, "variables": without}),
    }
    found = {}
    for number, (name, (extra, changes)) in enumerate(ways.items()):
        with contextlib.suppress(subprocess.TimeoutExpired):
            program = place.python("step", "counted")
            found[name] = raw(place, f"cost{number}", program, *extra, **changes)
        # What was reached is kept when the time of the stage is up.
        (place.folder / "costs.json").write_text(json.dumps(found))
    return found


#: Name of a stage, and the most seconds that it may take; the most telling ones first.
STAGES = (
    ("setup", 90),
    ("passes", 60),
    ("filters", 40),
    ("gate", 40),
    ("groups", 40),
    ("sample_1", 150),
    ("sample_one", 60),
    ("inside", 90),
    ("kinds", 100),
    ("errors", 60),
    ("known", 90),
    ("full", 330),
    ("plain", 60),
    ("graph", 60),
    ("nodes", 60),
    ("threads", 40),
    ("ranges", 90),
    ("interrupt", 60),
    ("sample_2", 150),
    ("costs", 200),
)


def run_stage(name, folder):
    place = Place(folder)
    try:
        return globals()[f"stage_{name}"](place)
    except Exception:  # noqa: BLE001  (a stage that fails must not take the others with it)
        return {"error": short(traceback.format_exc(), 1500)}


def in_child(name, folder, limit_s):
    output = Path(folder) / f"{name}.stage.json"
    child = subprocess.Popen(
        [
            *(sys.executable, __file__, "--stage", name),
            *("--folder", str(folder), "--result", str(output)),
        ],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        _, err = child.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        # A collection ends ncu and its program by itself, and keeps what it has.
        child.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=45)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        _, err = child.communicate()
        partial = output if output.exists() else Path(folder) / f"{name}.json"
        kept = json.loads(partial.read_text()) if partial.exists() else {}
        return {"error": f"stopped after {limit_s:.0f} s", "stderr": short(err, 600), **kept}
    except BaseException:
        # It has a session of its own: without this it would go on and hold the counters.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        raise
    if output.exists():
        return json.loads(output.read_text())
    return {"error": f"ended with code {child.returncode}", "stderr": short(err, 1000)}


TOTALS = ("kernels", "time_s", "flop", "tensor", "shared", "l1", "l2", "dram")


def compared(found, to="full"):
    """Totals of the sampled and the inner run over those of the full one, or of another."""
    full = found.get(to, {}).get("totals") or {}
    ratios = {}
    for name in ("sample_first", "sample_1", "sample_one", "sample_2", "inside"):
        other = found.get(name, {}).get("totals") or {}
        ratios[name] = {
            key: round(other[key] / full[key], 5)
            for key in TOTALS
            if full.get(key) and other.get(key)
        }
    return ratios


def repeats(parts, name):
    """Wall time and totals of a stage, each time that it ran."""
    return [
        {"wall_s": part[name]["wall_s"]}
        | {key: part[name]["totals"].get(key) for key in (*TOTALS, "measured")}
        for part in parts
        if (part.get(name) or {}).get("totals")
    ]


#: Factors of the units that ncu chooses for times, to microseconds.
TO_US = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}


def printed_us(line):
    """The time in a line of ``exported``."""
    *_, value, unit, _, _ = line.split()
    return float(value) * TO_US[unit]


def added_us(lines, busy_s):
    """What ncu's time of each row has beside the time in which something of it ran."""
    if not isinstance(lines, list) or len(lines) != len(busy_s):
        return None
    return [round(printed_us(line) - s * 1e6, 1) for line, s in zip(lines, busy_s, strict=True)]


def ranges_and_graphs(found):
    """Rows of ranges and whole graphs: times of ncu and of a trace, what differs, known bytes."""
    kinds, pytorch = found.get("kinds", {}), found.get("graph", {})
    rows = {name: (kinds.get(f"product, {name}") or {}).get("rows") or [] for name in SHORT}
    busy = {name: [row[3] for row in rows[name]] for name in SHORT}
    one_by_one = [row[3] for row in (kinds.get("product, long kernels") or {}).get("rows") or []]
    if len(one_by_one) == 2 * 3 + 2:
        pair = one_by_one[6:]
        busy["long graph"] = [sum(one_by_one[:3]), sum(one_by_one[3:6]), *pair]
        busy["long range"] = busy["long app-range"] = [sum(pair)]
    lines = {name: kinds.get(name, {}).get("csv") for name in (*SHORT, *busy)}
    lines["PyTorch graph"], rows["PyTorch graph"] = pytorch.get("csv"), pytorch.get("rows") or []
    busy["PyTorch graph"] = [row[3] for row in rows["PyTorch graph"]]
    nodes = found.get("nodes", {}).get("nodes", {})
    return {
        "bytes_written": kinds.get("bytes"),
        "ways": {
            name: {
                "ncu": shown,
                "trace_us": [round(s * 1e6, 3) for s in busy.get(name, [])],
                "added_us": added_us(shown, busy.get(name, [])),
            }
            | ({"bytes_l2": [row[6] for row in rows[name]]} if rows.get(name) else {})
            for name, shown in lines.items()
            if shown
        },
        "pytorch_whole": (pytorch.get("whole") or {}).get("totals"),
        "pytorch_nodes": nodes.get("totals"),
        "phases_without_a_trace": found.get("threads", {}).get("phases"),
    }


#: Ways in which kinds.cu is counted, both as it is and with long kernels.
SHORT = ("graph", "range", "app-range", "kernels")
#: What is kept of a collection of the training step.
KEPT = ("wall_s", "seconds", "totals", "table", "notices")


def summary(found):
    """The step in full, sampled and inside the process, and what a launch costs: small enough."""
    setup = found.get("setup", {})
    steps = {
        name: {key: found[name][key] for key in KEPT if key in found[name]}
        | {"passes": (found[name].get("extra") or {}).get("passes")}
        for name in ("full", "sample_first", "sample_1", "sample_one", "sample_2", "inside")
        if (found.get(name) or {}).get("totals")
    }
    return {
        "program": "benchmarks/ncu_programs/step.py: a training step of DeepLabv3-ResNet50, bf16",
        "gpu": (setup.get("gpu") or "").strip().splitlines()[-1:],
        "ncu": (setup.get("ncu") or [None, None])[1],
        "plain_wall_s": found.get("plain", {}).get("wall_s"),
        "steps": steps,
        "ratios_to_full": compared(found),
        "ratios_to_inside": compared(found, "inside"),
        "a_launch": {
            name: {key: way.get(key) for key in ("passes", "median_ms", "copy_ms", "wall_s")}
            for name, way in [*found.get("passes", {}).items(), *found.get("groups", {}).items()]
            if isinstance(way, dict)
        },
        "repeats": found.get("repeats"),
        "ranges_and_graphs": ranges_and_graphs(found),
        "filters": {
            name: way.get("by_configuration") or way.get("results")
            for name, way in found.get("filters", {}).items()
            if isinstance(way, dict)
        },
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("ncu_sampled.json"))
    parser.add_argument("--budget", type=float, default=560, help="seconds for everything")
    parser.add_argument("--keep", type=Path, help="archive of the small reports, KEEP.tar.xz")
    parser.add_argument("--only", nargs="*", help="names of stages")
    parser.add_argument("--summary", type=Path, help="write a summary of these results instead")
    parser.add_argument("results", nargs="*", type=Path, help="results to sum up, latest last")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.stage:
        text = json.dumps(run_stage(arguments.stage, arguments.folder), default=str)
        if arguments.result:
            arguments.result.write_text(text)
        else:
            print(text)
        return
    if arguments.summary:
        parts = [json.loads(path.read_text()) for path in arguments.results]
        for part in parts:
            # Results of before launches were grouped by time.
            if "groups" not in part.get("sample_1", {}).get("extra", {"groups": ""}):
                part["sample_first"] = part.pop("sample_1")
            # And of before whole graphs and their nodes were stages of their own.
            if "nodes" in part.get("graph", {}):
                part["nodes"] = part["graph"]
        merged = {name: stage for part in parts for name, stage in part.items()}
        merged["repeats"] = {name: repeats(parts, name) for name in ("sample_1", "inside")}
        arguments.summary.write_text(json.dumps(summary(merged), indent=1) + "\n")
        return
    begin = time.perf_counter()
    found = {}
    with tempfile.TemporaryDirectory(prefix="mansard ncu ") as folder:
        try:
            for name, limit_s in STAGES:
                if arguments.only and name not in arguments.only and name != "setup":
                    continue
                left = arguments.budget - (time.perf_counter() - begin)
                if left < 20:
                    found[name] = {"error": "not reached: the time was up"}
                    continue
                start = time.perf_counter()
                found[name] = in_child(name, folder, min(limit_s, left))
                spent = time.perf_counter() - start
                error = found[name].get("error", "")
                print(
                    f"{name:10} {spent:7.1f} s  {error.splitlines()[-1] if error else 'done'}",
                    flush=True,
                )
                found["ratios to full"] = compared(found)
                found["ratios to inside"] = compared(found, "inside")
                arguments.output.write_text(json.dumps(found, indent=1, default=str))
        finally:  # also when Ctrl-C ends it
            if arguments.keep and (kept := Path(folder, "kept")).exists():
                shutil.make_archive(str(arguments.keep.with_suffix("")), "xztar", kept)
    walls = {
        n: found.get(n, {}).get("wall_s")
        for n in ("plain", "sample_1", "sample_one", "sample_2", "full", "inside")
    }
    print("wall s:", walls)
    print("ratios to full:", json.dumps(found["ratios to full"]))
    print("ratios to inside:", json.dumps(found["ratios to inside"]))
    for name, way in found.get("filters", {}).items():
        if isinstance(way, dict):
            print(f"filter {name}: {way.get('results')} results, {way.get('configurations')} of 7")
    for name, way in [*found.get("passes", {}).items(), *found.get("groups", {}).items()]:
        if isinstance(way, dict):
            print(
                f"passes {name}: {way.get('passes')} passes, {way.get('median_ms')} ms a "
                f"launch, copies {way.get('copy_ms')} ms, {way.get('wall_s')} s in all"
            )
    print("wrote", arguments.output, f"({shutil.disk_usage('.').free >> 30} GiB free)")


if __name__ == "__main__":
    main()
