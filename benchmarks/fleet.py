"""The analysis of a job of 1,000 ranks and 50 million launches, beside pandas and polars.

``python benchmarks/fleet.py [--ranks 1000] [--launches 50000] [--folder MADE_BEFORE] [--json]``

Mansard does all that ``mansard report`` does: open the files, floors, sums by kernel, phase, family
and rank, notices, timeline, stragglers with their causes, collectives. pandas and polars do a core
of it on the first ranks only (``--part``), for memory: per-launch floors, sums by name, phase and
rank, ranks beyond the median by five deviations. All must find the same totals and the slow ranks
that were put in. Each runs in a process of its own. Wanted: 50 million launches in 15 s and 1 GB on
two cores, and time in proportion to the launches.
"""

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(Path(__file__).parent)]

MACHINE = "v100-paper"
#: What is put in: rank, factor, where.
SLOW = ((7, 1.15, "all"), (21, 1.2, "dram"))
#: Roofs that the peers use: those of the machine.
ROOFS = {
    "flop_vector_fp32": "vector fp32",
    "flop_vector_fp16": "vector fp16",
    "flop_tensor_fp16": "tensor fp16",
    "bytes_l1": "l1",
    "bytes_l2": "l2",
    "bytes_dram": "dram",
}
VECTOR = ("flop_vector_fp32", "flop_vector_fp16")
LIMIT_S, LIMIT_BYTES = 15.0, 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=1000)
    parser.add_argument("--launches", type=int, default=50_000, help="of each rank")
    parser.add_argument("--part", type=int, default=100, help="ranks for all three tools")
    parser.add_argument("--folder", type=Path, help="runs made before by this benchmark")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", nargs=2, metavar=("TOOL", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measured(options.child[0], Path(options.child[1]))))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or made(Path(scratch) / "job", options.ranks, options.launches)
        ranks = len(list(folder.glob("*.parquet")))
        sizes = sorted({max(options.part, ranks // 4), max(options.part, ranks // 2), ranks})
        asked = [*(("mansard", size) for size in sizes), *((tool, options.part) for tool in TOOLS)]
        rows = [row(tool, first(folder, size, Path(scratch)), size) for tool, size in asked]
    compare(rows)
    if options.json:
        print(json.dumps({"cores": os.cpu_count(), "rows": rows}, indent=1))
    else:
        print_table(rows)


def made(folder: Path, ranks: int, launches: int) -> Path:
    from synthetic_runs import Job, Slow, write_job

    write_job(folder, Job(ranks=ranks, launches=launches, slow=[Slow(*slow) for slow in SLOW]))
    return folder


def first(folder: Path, ranks: int, scratch: Path) -> Path:
    """A folder of links to the first ranks."""
    part = scratch / f"first{ranks}"
    if not part.exists():
        part.mkdir()
        for rank in range(ranks):
            (part / f"rank{rank}.parquet").symlink_to(folder.resolve() / f"rank{rank}.parquet")
    return part


def row(tool: str, folder: Path, ranks: int) -> dict[str, Any]:
    print(f"\r{tool}, {ranks} ranks      ", end="", file=sys.stderr)
    command = [sys.executable, __file__, "--child", tool, str(folder)]
    load = os.getloadavg()[0]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return {"tool": tool, "ranks": ranks, "load_before": load, **json.loads(done.stdout)}


def measured(tool: str, folder: Path) -> dict[str, Any]:
    start = time.perf_counter()
    found = TOOLS[tool](folder)
    wall_s = time.perf_counter() - start
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = usage.ru_utime + usage.ru_stime
    return {"wall_s": wall_s, "cpu_s": cpu_s, "rss_bytes": usage.ru_maxrss * 1024, **found}


def roofs() -> dict[str, float]:
    from mansard.store import machine

    found = machine(MACHINE)
    named = {column: found.compute(name) or found.bandwidth(name) for column, name in ROOFS.items()}
    return {column: roof.value for column, roof in named.items() if roof and roof.value}


def with_mansard(folder: Path) -> dict[str, Any]:
    from mansard.analysis import analyze
    from mansard.readers import open as open_any
    from mansard.store import machine

    found = analyze(open_any(folder), machine(MACHINE))
    slow = sorted(straggler.rank for straggler in found.fleet.stragglers) if found.fleet else []
    return result(found.totals.launches, found.totals.duration_s, found.totals.floor_s, slow)


def with_pandas(folder: Path) -> dict[str, Any]:
    import pandas as pd

    roof = roofs()
    frame = pd.read_parquet(folder, columns=["name", "phase", "rank", "duration_s", *roof])
    floors = pd.DataFrame({column: frame[column] / value for column, value in roof.items()})
    floors["vector"] = floors.pop(VECTOR[0]) + floors.pop(VECTOR[1])  # they share the pipe
    frame["floor_s"] = floors.max(axis=1)
    frame["launches"] = 1
    cube = frame.groupby(["name", "phase", "rank"], dropna=False).sum().reset_index()
    compute = cube[~cube["name"].str.contains("nccl")].groupby("rank")["duration_s"].sum()
    return result(
        cube["launches"].sum(), cube["duration_s"].sum(), cube["floor_s"].sum(), beyond(compute)
    )


def with_polars(folder: Path) -> dict[str, Any]:
    import polars as pl

    roof = roofs()
    times = {column: pl.col(column) / value for column, value in roof.items()}
    vector = times.pop(VECTOR[0]) + times.pop(VECTOR[1])  # they share the pipe
    floor = pl.max_horizontal([vector, *times.values()])
    cube = (
        pl.scan_parquet(folder / "*.parquet")
        .with_columns(floor.alias("floor_s"))
        .group_by("name", "phase", "rank")
        .agg(
            pl.len().alias("launches"),
            *(pl.col(column).sum() for column in ("duration_s", "floor_s", *roof)),
        )
        .collect(engine="streaming")
    )
    compute = (
        cube.filter(~pl.col("name").str.contains("nccl"))
        .group_by("rank")
        .agg(pl.col("duration_s").sum())
    )
    return result(
        cube["launches"].sum(),
        cube["duration_s"].sum(),
        cube["floor_s"].sum(),
        beyond(dict(compute.iter_rows())),
    )


def beyond(compute: Any) -> list[int]:
    values = dict(compute.items())
    median = statistics.median(values.values())
    deviation = 1.4826 * statistics.median(abs(value - median) for value in values.values())
    return sorted(int(rank) for rank, value in values.items() if value > median + 5 * deviation)


def result(launches: Any, duration_s: Any, floor_s: Any, slow: list[int]) -> dict[str, Any]:
    return {
        "launches": int(launches),
        "duration_s": float(duration_s),
        "floor_s": float(floor_s),
        "slow": slow,
    }


TOOLS = {"mansard": with_mansard, "pandas": with_pandas, "polars": with_polars}


def compare(rows: list[dict[str, Any]]) -> None:
    truth = [rank for rank, *_ in SLOW]
    for found in rows:
        if found["slow"] != truth:
            raise SystemExit(f"{found['tool']} finds slow ranks {found['slow']}, not {truth}")
    ours, *peers = rows[-len(TOOLS) :]
    for peer in peers:
        for name in ("launches", "duration_s", "floor_s"):
            if not math.isclose(ours[name], peer[name], rel_tol=1e-9):
                raise SystemExit(f"{peer['tool']} does not agree: {name} {peer[name]}")


def print_table(rows: list[dict[str, Any]]) -> None:
    print(f"\n{os.cpu_count()} cores; slow ranks found by all: {rows[0]['slow']}")
    print(
        f"{'tool':10}{'ranks':>7}{'launches':>12}{'wall s':>9}{'CPU s':>8}{'RSS MB':>8}{'load':>6}"
    )
    for found in rows:
        print(
            f"{found['tool']:10}{found['ranks']:>7}{found['launches']:>12,}{found['wall_s']:>9.2f}"
            f"{found['cpu_s']:>8.2f}{found['rss_bytes'] / 1e6:>8.0f}{found['load_before']:>6.1f}"
        )
    ours, *peers = rows[-len(TOOLS) :]
    for peer in peers:
        ratios = [peer[name] / ours[name] for name in ("wall_s", "cpu_s", "rss_bytes")]
        print(f"{peer['tool']} / mansard: wall, CPU, RSS " + ", ".join(f"{r:.2f}" for r in ratios))
    whole = rows[len(rows) - len(TOOLS) - 1]
    held = whole["wall_s"] <= LIMIT_S and whole["rss_bytes"] <= LIMIT_BYTES
    print(f"wanted: at most {LIMIT_S:g} s and {LIMIT_BYTES / 1e6:g} MB: {'yes' if held else 'NO'}")
    each = [1e6 * row["cpu_s"] / row["launches"] for row in rows if row["tool"] == "mansard"]
    print("CPU us a launch, by size: " + ", ".join(f"{value:.3f}" for value in each))


if __name__ == "__main__":
    main()
