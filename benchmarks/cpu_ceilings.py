"""CPU ceilings of the generated kernels, beside the same kernels in C and beside likwid-bench.

``python benchmarks/cpu_ceilings.py [--rounds 5] [--only PATTERN] [--budget SECONDS] [--threads N]
[--no-likwid] [--json]``

Each round measures every kernel once with each tool, in turn, on the same threads. C
(``cpu_peer.c``, gcc) runs in the same process on the same memory. likwid-bench, where it is
installed, is a process of its own with its own kernels, so memory kernels are compared with ours
made like its own (``like``): loops as long as likwid's (4 vectors instead of 16), pages of 4 KiB
(it does not ask for large ones), arrays of the same size.

The first iterations of likwid-bench are slow, and its clock starts before all threads do: in caches
the difference of a short and a long run counts, each the best of some. Shown are medians over the
rounds and the ratio to ours in the same round. Wanted: within 2 % (above 1.00 means that ours is
faster); a range of some tens of percent says that other programs took the cores.
"""

import argparse
import ctypes
import dataclasses
import fnmatch
import json
import mmap
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
from unittest import mock

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
#: Length of a short and of a long run of likwid-bench, and how many of each: the more, the shorter
#: they are, since other programs take the cores now and then. Each takes a second to start.
LIKWID_S = (0.005, 0.025)
LIKWID_RUNS = 8
LIKWID_LONG_RUNS = 3


@dataclasses.dataclass
class Case:
    """One kernel in up to four versions; ``like`` is ours as likwid has it, None for the same."""

    name: str
    unit: str
    ours: Any
    peer: Any
    likwid: list[str] | None
    like: Any = None
    found: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    disturbed: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="*", help="kernels whose name matches, e.g. 'l2*'")
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
        likwid = None if options.no_likwid else Likwid.found(rig.vector_bytes, len(plan.cpus))
        every = all_cases(rig, plan, library)
        cases = matching(every, options.only)
        if likwid:
            with_likwid(cases, plan, likwid, Rig(processor, team))
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


def matching(cases: list[Any], pattern: str) -> list[Any]:
    """The cases whose name matches; ends with the names that there are where none does."""
    found = [case for case in cases if fnmatch.fnmatch(case.name, pattern)]
    if not found:
        names = ", ".join(sorted({case.name for case in cases}))
        raise SystemExit(f"no kernel matches '{pattern}': there are {names}")
    return found


def all_cases(rig: Rig, plan: Any, library: ctypes.CDLL) -> list[Case]:
    cases = []
    processor = rig.processor
    for recipe in recipes_for(processor.architecture, processor.flags):
        ours = rig.compute(recipe).whole
        kernel = peer_kernel(library, PEER_COMPUTE.get(recipe.path, "none"))
        if kernel:
            check_result(recipe, kernel, rig.team)
        peer = dataclasses.replace(ours, kernel=kernel) if kernel else None
        cases.append(Case(f"{recipe.path} {recipe.instruction}", "FLOP/s", ours, peer, None))
    for stream in plan.streams:
        ours = rig.stream(stream.access, stream.level.footprint_bytes, 0).whole
        kernel = peer_kernel(library, stream.access.replace(" ", "_"))
        peer = dataclasses.replace(ours, kernel=kernel) if kernel else None
        cases.append(Case(stream.label, "byte/s", ours, peer, None))
    return cases


@dataclasses.dataclass(frozen=True)
class Likwid:
    """The installed likwid-bench: its kernels, and the bytes of each stream in an iteration."""

    program: str
    suffix: str
    threads: int
    kernels: frozenset[str]

    @classmethod
    def found(cls, vector_bytes: int, threads: int) -> "Likwid | None":
        program = shutil.which("likwid-bench")
        if program is None:
            return None
        suffix = {64: "_avx512", 32: "_avx"}.get(vector_bytes, "_none")
        listing = output([program, "-a"])
        return cls(
            program, suffix, threads, frozenset(re.findall(r"^(\w+) -", listing, re.MULTILINE))
        )

    def command(self, template: str | None, footprint_bytes: int) -> list[str] | None:
        """All but the number of iterations; None where it has no such kernel."""
        name = (template or "").format(self.suffix)
        if name not in self.kernels:
            return None
        size = f"S0:{self.threads * footprint_bytes // 1000}kB:{self.threads}"
        return [self.program, "-t", name, "-W", size, "-i"]

    def loop_bytes(self, name: str) -> int:
        """Bytes of each stream in one iteration of a kernel's loop."""
        found = re.search(r"Loop stride: (\d+)", output([self.program, "-l", name]))
        return 8 * int(found[1]) if found else 0


def with_likwid(cases: list[Case], plan: Any, likwid: Likwid, rig: Rig) -> None:
    """Add likwid's command to the cases, and our kernels made like its own."""
    streams = {stream.label: stream for stream in plan.streams}
    with mock.patch.object(mmap, "MADV_HUGEPAGE", None):
        rig.reserve(plan.each_bytes, 0)
    for case in cases:
        stream = streams.get(case.name)
        if stream is None:
            path = " ".join(case.name.split()[:2])
            case.likwid = likwid.command(LIKWID_COMPUTE.get(path), 16000)
            continue
        footprint = stream.level.footprint_bytes
        case.likwid = likwid.command(LIKWID_STREAM[stream.access], footprint)
        if case.likwid:
            vectors = likwid.loop_bytes(case.likwid[2]) // rig.vector_bytes
            case.like = rig.stream(stream.access, footprint, 0, vectors=vectors).whole


def peer_kernel(library: ctypes.CDLL, name: str) -> Kernel | None:
    entry = getattr(library, f"measure_{name}", None)
    if entry is None:
        return None
    entry.argtypes = [ctypes.c_void_p, *[ctypes.c_int64] * 3, *[ctypes.c_void_p] * 2]
    entry.restype = ctypes.c_int
    return Kernel(entry, "", library)


def one_round(case: Case, *, reverse: bool) -> None:
    sides = [("ours", case.ours), ("C", case.peer), ("like", case.like)]
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
    """What a long run does more than a short one, over the time it takes more.

    In main memory an iteration is long by itself: there it is the rate of the long run.
    """
    work, _ = likwid_run(command, 1)
    short = max(1, round(LIKWID_S[0] * expected / work))
    long = max(short + 2, round(LIKWID_S[1] * expected / work))
    if short == 1:
        seconds = [likwid_run(command, long)[1] for _ in range(LIKWID_LONG_RUNS)]
        return long * work / statistics.median(seconds)
    first, second = (
        min(likwid_run(command, iterations)[1] for _ in range(LIKWID_RUNS))
        for iterations in (short, long)
    )
    return (long - short) * work / (second - first)


def likwid_run(command: list[str], iterations: int) -> tuple[float, float]:
    """Work of one iteration, and the seconds that all took."""
    text = output([*command, str(iterations)])
    volume = "Number of Flops:" if "peakflops" in command[2] else r"Data volume \(Byte\):"
    found = [re.search(rf"^{name}\s+([\d.e+-]+)", text, re.MULTILINE) for name in (volume, "Time:")]
    if not found[0] or not found[1]:
        raise SystemExit(f"likwid-bench printed no result: {' '.join(command)}\n{text}")
    return float(found[0][1]) / iterations, float(found[1][1])


def output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def row_of(case: Case) -> dict[str, Any]:
    row: dict[str, Any] = {"name": case.name, "unit": case.unit, "disturbed": case.disturbed}
    if case.likwid:
        row["likwid kernel"] = case.likwid[2]
    for name, rates in case.found.items():
        row[name] = statistics.median(rates)
    like = case.found.get("like", case.found["ours"])
    for other, mine in (("C", case.found["ours"]), ("likwid", like)):
        if other in case.found:
            ratios = [one / two for one, two in zip(mine, case.found[other], strict=True)]
            row[f"ours/{other}"] = statistics.median(ratios)
            row[f"ours/{other} range"] = [min(ratios), max(ratios)]
    return row


def print_table(conditions: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    print(
        f"{conditions['processor']}, {conditions['threads']} threads,"
        f" {conditions['rounds']} rounds, load average {conditions['load_average_before']:.1f}"
        f" before and {conditions['load_average_after']:.1f} after"
    )
    print(
        f"{'':24}{'ours':>8}{'C':>8}{'ratio':>6}{'range':>10}"
        f"{'like':>8}{'likwid':>8}{'ratio':>6}{'range':>10}"
    )
    for row in rows:
        rates = {name: format_si(row.get(name), "", 4) for name in ("ours", "C", "like", "likwid")}
        print(
            f"{row['name'][:23]:24}{rates['ours']:>8}{rates['C']:>8}{compared(row, 'C')}"
            f"{rates['like']:>8}{rates['likwid']:>8}{compared(row, 'likwid')}"
            f"{' *' if row['disturbed'] else ''}"
        )
    if any(row["disturbed"] for row in rows):
        print("* other programs took a core in some of the samples")


def compared(row: dict[str, Any], other: str) -> str:
    value = row.get(f"ours/{other}")
    if value is None:
        return f"{'-':>6}{'-':>10}"
    low, high = row[f"ours/{other} range"]
    return f"{value:6.3f}{f'{low:.2f}-{high:.2f}':>10}"


if __name__ == "__main__":
    main()
