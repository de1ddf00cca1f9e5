"""CPU ceilings of the generated kernels, beside the same kernels in C and beside likwid-bench.

``python benchmarks/cpu_ceilings.py [--rounds 5] [--budget SECONDS] [--threads N] [--no-likwid]
[--json]``

Each round measures every kernel once with each tool, in turn, on the same threads. C
(``cpu_peer.c``, gcc) runs in the same process on the same memory; likwid-bench, where it is
installed, is a process of its own with its own kernels; of some short runs in a round the best is
taken, because it cannot tell that another program took a core. Shown are medians over the rounds
and the ratio to ours in the same round. Wanted: within 2 % (above 1.00 means that ours is faster).
"""

import argparse
import ctypes
import dataclasses
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src")]

from mansard.bench.cpu.compute import check_result  # noqa: E402
from mansard.bench.cpu.jit import Kernel  # noqa: E402
from mansard.bench.cpu.plan import make_plan  # noqa: E402
from mansard.bench.cpu.processor import read_processor  # noqa: E402
from mansard.bench.cpu.recipes import recipes_for  # noqa: E402
from mansard.bench.cpu.rig import Rig  # noqa: E402
from mansard.bench.cpu.sampling import QUICK, Series, measure  # noqa: E402
from mansard.bench.cpu.team import Team  # noqa: E402
from mansard.units import format_si  # noqa: E402

EFFORT = dataclasses.replace(QUICK, sample_s=0.001)
SAMPLES = 60
PEER_COMPUTE = {
    "vector fp64": "fma_fp64",
    "vector fp32": "fma_fp32",
    "vector bf16": "dot_bf16",
    "vector int8": "dot_int8",
}
LIKWID_COMPUTE = {"vector fp64": "peakflops{}_fma", "vector fp32": "peakflops_sp{}_fma"}
LIKWID_STREAM = {
    "read": "load{}",
    "write": "store{}",
    "copy": "copy{}",
    "triad": "stream{}_fma",
    "write nt": "store_mem{}",
    "copy nt": "copy_mem{}",
    "triad nt": "stream_mem{}",
}
MEGA = 1_000_000
#: Length of a likwid-bench run, and how many make one measurement.
LIKWID_S = 0.005
LIKWID_RUNS = 5


@dataclasses.dataclass
class Case:
    """One kernel in up to three versions."""

    name: str
    unit: str
    ours: Any
    peer: Any
    likwid: list[str] | None
    found: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    disturbed: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=3600, help="no round starts after this, s")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--no-likwid", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    processor = read_processor()
    plan = make_plan(processor, threads=options.threads)
    with Team(plan.cpus) as team, tempfile.TemporaryDirectory() as folder:
        rig = Rig(processor, team)
        rig.reserve(plan.each_bytes, 0)
        library = compiled_peer(Path(folder), rig.vector_bytes)
        likwid = None if options.no_likwid else shutil.which("likwid-bench")
        cases = all_cases(rig, plan, library, likwid)
        begin = time.monotonic()
        done = 0
        for number in range(options.rounds):
            if number and (time.monotonic() - begin) * (1 + 1 / number) > options.budget:
                break
            done += 1
            for place, case in enumerate(cases):
                one_round(case, reverse=bool(number % 2))
                print(
                    f"\rround {number + 1}: {place + 1} of {len(cases)} ", end="", file=sys.stderr
                )
    print(file=sys.stderr)
    rows = [row_of(case) for case in cases]
    conditions = {
        "processor": processor.name,
        "threads": len(plan.cpus),
        "rounds": done,
        "date": time.strftime("%Y-%m-%d"),
        "load_average_before": load,
        "load_average_after": os.getloadavg()[0],
        "hypervisor": processor.hypervisor,
    }
    if options.json:
        print(json.dumps({"conditions": conditions, "rows": rows}, indent=1))
    else:
        print_table(conditions, rows)


def compiled_peer(folder: Path, width: int) -> ctypes.CDLL:
    target = folder / "cpu_peer.so"
    flags = ["-O3", "-march=native", "-ffp-contract=fast", "-fno-tree-loop-distribute-patterns"]
    if width == 64:
        flags.append("-mprefer-vector-width=512")
    source = Path(__file__).with_name("cpu_peer.c")
    command = ["gcc", *flags, f"-DWIDTH={width}", "-shared", "-fPIC", str(source), "-o"]
    subprocess.run([*command, str(target)], check=True)
    return ctypes.CDLL(str(target))


def all_cases(rig: Rig, plan: Any, library: ctypes.CDLL, likwid: str | None) -> list[Case]:
    cases = []
    threads = len(plan.cpus)
    processor = rig.processor
    suffix = {64: "_avx512", 32: "_avx"}.get(rig.vector_bytes, "_none")
    listing = likwid and subprocess.run([likwid, "-a"], check=True, capture_output=True, text=True)
    known = {line.split(" ")[0] for line in listing.stdout.splitlines()} if listing else set()

    def command(template: str | None, footprint_bytes: int) -> list[str] | None:
        if not likwid or not template or template.format(suffix) not in known:
            return None
        size = f"S0:{threads * footprint_bytes // 1000}kB:{threads}"
        return [likwid, "-t", template.format(suffix), "-w", size, "-i"]

    for recipe in recipes_for(processor.architecture, processor.flags):
        ours = rig.compute(recipe).whole
        kernel = peer_kernel(library, PEER_COMPUTE.get(recipe.path, "none"))
        if kernel:
            check_result(recipe, kernel, rig.team)
        peer = dataclasses.replace(ours, kernel=kernel) if kernel else None
        line = command(LIKWID_COMPUTE.get(recipe.path), 16000)
        cases.append(Case(f"{recipe.path} {recipe.instruction}", "FLOP/s", ours, peer, line))
    for stream in plan.streams:
        ours = rig.stream(stream.access, stream.level.footprint_bytes, 0).whole
        kernel = peer_kernel(library, stream.access.replace(" ", "_"))
        peer = dataclasses.replace(ours, kernel=kernel) if kernel else None
        line = command(LIKWID_STREAM[stream.access], stream.level.footprint_bytes)
        cases.append(Case(stream.label, "byte/s", ours, peer, line))
    return cases


def peer_kernel(library: ctypes.CDLL, name: str) -> Kernel | None:
    entry = getattr(library, f"measure_{name}", None)
    if entry is None:
        return None
    entry.argtypes = [ctypes.c_void_p, *[ctypes.c_int64] * 3, *[ctypes.c_void_p] * 2]
    entry.restype = ctypes.c_int
    return Kernel(entry, "", library)


def one_round(case: Case, *, reverse: bool) -> None:
    sides = [("ours", case.ours), ("C", case.peer)]
    for name, workload in reversed(sides) if reverse else sides:
        if workload is None:
            continue
        series: Series = measure(workload, effort=EFFORT, samples=SAMPLES)
        if hasattr(workload, "check"):
            workload.check()
        case.disturbed += series.disturbed_kept
        case.found.setdefault(name, []).append(series.rates.median)
    if case.likwid:
        rate = likwid_rate(case.likwid, case.found["ours"][-1])
        case.found.setdefault("likwid", []).append(rate)


def likwid_rate(command: list[str], expected: float) -> float:
    """The best of some short runs; ``expected`` tells how many iterations are short."""
    iterations = 1
    work, rate = likwid_run(command, iterations)
    rates = [rate]
    iterations = max(1, round(LIKWID_S * expected / work))
    # One iteration over main memory is long by itself, and so is writing it before.
    runs = LIKWID_RUNS if iterations > 1 else 1
    rates += [likwid_run(command, iterations)[1] for _ in range(runs)]
    return max(rates)


def likwid_run(command: list[str], iterations: int) -> tuple[float, float]:
    """Work of one iteration, and the rate."""
    line = [*command, str(iterations)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    computes = "peakflops" in command[2]
    volume = r"Number of Flops:" if computes else r"Data volume \(Byte\):"
    rate = "MFlops/s" if computes else "MByte/s"
    found = [re.search(rf"{name}\s*:?\s+([\d.]+)", done.stdout) for name in (volume, rate)]
    if not found[0] or not found[1]:
        raise SystemExit(f"likwid-bench printed no result: {' '.join(line)}\n{done.stdout}")
    return float(found[0][1]) / iterations, float(found[1][1]) * MEGA


def row_of(case: Case) -> dict[str, Any]:
    row: dict[str, Any] = {"name": case.name, "unit": case.unit, "disturbed": case.disturbed}
    ours = case.found["ours"]
    for name, rates in case.found.items():
        row[name] = statistics.median(rates)
        if name != "ours":
            ratios = [mine / other for mine, other in zip(ours, rates, strict=True)]
            row[f"ours/{name}"] = statistics.median(ratios)
            row[f"ours/{name} range"] = [min(ratios), max(ratios)]
    return row


def print_table(conditions: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    print(
        f"{conditions['processor']}, {conditions['threads']} threads,"
        f" {conditions['rounds']} rounds, load average {conditions['load_average_before']:.1f}"
        f" before and {conditions['load_average_after']:.1f} after"
    )
    print(f"{'':32}{'ours':>8}{'C':>8}{'ratio':>7}{'range':>12}{'likwid':>8}{'ratio':>7}")
    for row in rows:

        def rate(name: str, row: dict[str, Any] = row) -> str:
            return format_si(row.get(name), "", 4)

        def ratio(name: str, row: dict[str, Any] = row) -> str:
            value = row.get(f"ours/{name}")
            return "-" if value is None else f"{value:.3f}"

        low, high = row.get("ours/C range", (None, None))
        span = "-" if low is None else f"{low:.2f}-{high:.2f}"
        print(
            f"{row['name'][:31]:32}{rate('ours'):>8}{rate('C'):>8}{ratio('C'):>7}{span:>12}"
            f"{rate('likwid'):>8}{ratio('likwid'):>7}{' *' if row['disturbed'] else ''}"
        )
    if any(row["disturbed"] for row in rows):
        print("* other programs took a core in some of the samples")


if __name__ == "__main__":
    main()
