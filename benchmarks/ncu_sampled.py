"""Cost and correctness of ``mansard profile --with ncu``, full and sampled, on a GPU.

    python benchmarks/ncu_sampled.py [--output ncu_sampled.json] [--budget 560]

Needs an NVIDIA GPU with counter permission, ncu, nvcc, a C compiler, PyTorch and torchvision.
One training step of DeepLabv3-ResNet50 (about a thousand kernels) is counted in full by ncu, in
samples, and inside the process; totals and wall times are set against each other. Small programs
of known work and shape show what ncu's filters, graphs, ranges, errors and signals do. Each stage
is a process of its own with a time limit; what is not reached is named. One small JSON comes out.
"""

import argparse
import collections
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

PROGRAMS = Path(__file__).with_name("ncu_programs")
#: FP32 operations of one round of known.cu: fused multiply-adds 2, adds and muls 1.
ROUND_FLOP = (2 * 1024 * 2 + 2 * 2048 + 64 + 128) * 128 * 256 + 2 * 1024 * 256 * 256
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
    sums = {
        "kernels": "count(*)",
        "shapes": "count(DISTINCT (name, grid_x, grid_y, grid_z, block_x, block_y, block_z))",
        "time_s": "sum(duration_s)",
        "flop": f"sum({flop})",
        "l1": "sum(bytes_l1)",
        "l2": "sum(bytes_l2)",
        "dram": "sum(bytes_dram)",
        "known": "count(bytes_dram)",
        "measured": "count(*) FILTER (counters_from = 'measured')",
        "inferred": "count(*) FILTER (counters_from = 'inferred')",
    }
    kernels = f"FROM {parquet(run.files)} WHERE kind = 'kernel'"
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


def stage_filters(place):
    """Which launches each way of sampling counts; 3 rounds of 7 configurations are there."""
    shapes = ("--filter-mode", "per-launch-config")
    ways = {
        "all": (),
        "filter-mode, count 1": (*shapes, "--launch-count", "1"),
        "kernel-id 1": ("--kernel-id", ":::1"),
        "both 1": (*shapes, "--kernel-id", ":::1"),
        "both 1|2": (*shapes, "--kernel-id", ":::1|2"),
        "both, look-ahead": (*shapes, "--kernel-id", "::regex:^(?!.*(c_adds|nccl)):1"),
        "name, look-ahead": ("--kernel-name", "regex:^(?!.*(c_adds|nccl))(?=.*(c_|copy))"),
        "name and id": (*shapes, "--kernel-name", "regex:(?:c_|copy)", "--kernel-id", ":::1"),
    }
    return {name: raw(place, "filters", place.known(3), *extra) for name, extra in ways.items()}


def stage_known(place):
    """A C++ program of known work through the product: full, traced, sampled."""
    from mansard.collect.ncu import Times

    rounds = 20
    found = {
        "flop": rounds * ROUND_FLOP,
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
    from mansard.collect.ncu import Graphs
    from mansard.collect.ncu.options import Conditions

    program, folder = place.python("graph"), place.folder
    region = {"from_start": False}
    graph = Conditions(graphs=Graphs.GRAPH)
    return {
        "nodes": collected(program, folder / "g.parquet", options(selection=region)),
        "nodes, sample 1": collected(
            program, folder / "g1.parquet", options(selection={**region, "sample": 1})
        ),
        "whole": collected(
            program, folder / "g2.parquet", options(selection=region, conditions=graph)
        ),
    }


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


#: Additions of kinds.cu: the range, and each of the two replays of the graph.
RANGE_ADDS, GRAPH_ADDS = 128 * 128 * (10 + 20), 3 * 64 * 128 * 100


def stage_kinds(place):
    """How a report says that a result is a range or a whole graph; the reports are kept."""
    binary = place.folder / "kinds"
    built = execute(["nvcc", "-O2", "-arch=native", "-o", str(binary), str(PROGRAMS / "kinds.cu")])
    counters = (
        "gpu__time_duration.sum,dram__bytes.sum,sm__sass_thread_inst_executed_op_fadd_pred_on.sum"
    )
    ways = {
        "kernels": (),
        "graph": ("--graph-profiling", "graph"),
        "graph-nodes": ("--graph-profiling", "node"),
        "range": ("--replay-mode", "range"),
        "app-range": ("--replay-mode", "app-range"),
    }
    found = {"nvcc": (built.returncode, short(built.stderr, 400))}
    common = ("ncu", "--clock-control", "none", "--metrics", counters, "--force-overwrite")
    for name, extra in ways.items():
        report = place.kept / f"kind-{name}"
        try:
            ended = execute([*common, *extra, "--export", str(report), str(binary)], timeout=30)
        except subprocess.TimeoutExpired as error:
            found[name] = {"error": "stopped after 30 s", "out": short(error.stdout or "", 400)}
            continue
        page = execute(["ncu", "--import", f"{report}.ncu-rep", "--csv", "--page", "raw"])
        (place.kept / f"kind-{name}.csv").write_bytes(page.stdout)
        found[name] = {
            "code": ended.returncode,
            "out": short(ended.stdout, 400),
            "csv": short(page.stdout, 1500),
        }
        # What was reached is kept when the time of the stage is up.
        (place.folder / "kinds.json").write_text(json.dumps(found))
    found["work"] = {"range": RANGE_ADDS, "graph": GRAPH_ADDS}
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
    ("filters", 90),
    ("kinds", 120),
    ("sample_1", 150),
    ("known", 90),
    ("full", 330),
    ("plain", 60),
    ("inside", 90),
    ("graph", 90),
    ("ranges", 90),
    ("errors", 90),
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


def compared(found):
    """Totals of the sampled and the inner run over those of the full one."""
    full = found.get("full", {}).get("totals") or {}
    ratios = {}
    for name in ("sample_1", "sample_2", "inside"):
        other = found.get(name, {}).get("totals") or {}
        ratios[name] = {
            key: round(other[key] / full[key], 5)
            for key in ("kernels", "time_s", "flop", "l1", "l2", "dram")
            if full.get(key) and other.get(key)
        }
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("ncu_sampled.json"))
    parser.add_argument("--budget", type=float, default=560, help="seconds for everything")
    parser.add_argument("--keep", type=Path, help="archive of the small reports, KEEP.tar.xz")
    parser.add_argument("--only", nargs="*", help="names of stages")
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
                arguments.output.write_text(json.dumps(found, indent=1, default=str))
        finally:  # also when Ctrl-C ends it
            if arguments.keep and (kept := Path(folder, "kept")).exists():
                shutil.make_archive(str(arguments.keep.with_suffix("")), "xztar", kept)
    walls = {
        n: found.get(n, {}).get("wall_s")
        for n in ("plain", "sample_1", "sample_2", "full", "inside")
    }
    print("wall s:", walls)
    print("ratios to full:", json.dumps(found["ratios to full"]))
    for name, way in found.get("filters", {}).items():
        if isinstance(way, dict):
            print(f"filter {name}: {way.get('results')} results, {way.get('configurations')} of 7")
    print("wrote", arguments.output, f"({shutil.disk_usage('.').free >> 30} GiB free)")


if __name__ == "__main__":
    main()
