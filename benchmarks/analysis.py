"""Analysis of ten million launches, beside pandas and polars on the same file.

``python benchmarks/analysis.py [--launches 10000000] [--rounds 3] [--tools ...] [--json]``

The run is made up, as real ones look: 2,000 kernel names of some 170 letters, log-normal times,
three phases, six work columns and four levels, some values null. Each tool runs in a process of
its own, in turn. Mansard does its whole analysis (floors, sums by kernel, phase, family and rank,
notices); pandas and polars do only its core: read the file, per-launch floors and flags, sums by
(name, phase, rank). All must come to the same totals. Wanted: at most 5 s and 1 GB with Mansard.
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
sys.path[:0] = [str(ROOT / "src")]

#: Roofs in FLOP/s and byte/s, near those of an H200.
COMPUTE = {
    "vector fp64": 33e12,
    "vector fp32": 66e12,
    "vector fp16": 132e12,
    "tensor fp16": 769e12,
    "tensor bf16": 858e12,
    "tensor fp8": 1668e12,
}
BANDWIDTH = {"shared": 33e12, "l1": 33e12, "l2": 8.5e12, "dram": 4.6e12}
COLUMNS = [
    *(f"flop_{path.replace(' ', '_')}" for path in COMPUTE),
    *(f"bytes_{level}" for level in BANDWIDTH),
]
NEAR_ZERO, SHORT_S, TOLERANCE = 0.5, 5e-6, 0.02
LIMIT_S, LIMIT_BYTES = 5.0, 1e9

LAUNCHES = """
WITH base AS (SELECT range AS i, hash(range * 7919 + 13) AS h FROM range({count})),
drawn AS (
    SELECT i, (h % 2000)::INTEGER AS k,
        ((h >> 11) % 1000003 + 1) / 1000004.0 AS u, ((h >> 31) % 1000003) / 1000003.0 AS v
    FROM base)
SELECT 'node0' AS host, 0 AS rank, 1 AS process, 0 AS device, (i // 5000)::INTEGER AS step,
    i AS launch, 7 AS stream, 'kernel' AS kind,
    'void at::native::vectorized_elementwise_kernel<4, at::native::Functor_' || k || '<float>, '
    || 'std::array<char*, 3ul> >(int, at::native::Functor_' || k || '<float>, '
    || 'std::array<char*, 3ul>)' AS name,
    k % 977 + 1 AS grid_x, 1 AS grid_y, 1 AS grid_z, 256 AS block_x, 1 AS block_y, 1 AS block_z,
    CASE WHEN i % 5000 < 1500 THEN 'forward' WHEN i % 5000 < 4500 THEN 'backward'
        ELSE 'optimizer' END AS phase,
    i * 1e-5 AS start_s,
    2e-5 * exp(1.2 * sqrt(-2 * ln(u)) * cos(2 * pi() * v)) AS duration_s,
    1.7e9 + 1e8 * v AS sm_clock_hz,
    0.0 AS flop_vector_fp64,
    CASE WHEN k % 5 = 0 THEN 0 ELSE round(1e7 * u) END AS flop_vector_fp32,
    CASE WHEN k % 7 = 0 THEN 0 ELSE round(1e5 * v) END AS flop_vector_fp16,
    CASE WHEN k % 4 = 0 THEN round(1e10 * v) ELSE 0 END AS flop_tensor_bf16,
    CASE WHEN i % 100 = 0 THEN NULL ELSE 0 END AS flop_tensor_fp16,
    CASE WHEN k % 40 = 0 THEN round(1e9 * u) ELSE 0 END AS flop_tensor_fp8,
    round(3e7 * u) AS bytes_l1, round(2e7 * u) AS bytes_l2, round(1e7 * v) AS bytes_shared,
    CASE WHEN i % 1000 = 0 THEN NULL ELSE round(1e7 * u) END AS bytes_dram,
    round(7e6 * u) AS bytes_dram_read, round(3e6 * u) AS bytes_dram_write
FROM drawn
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tools", nargs="+", default=list(TOOLS), choices=list(TOOLS))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", nargs=2, metavar=("TOOL", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measured(options.child[0], Path(options.child[1]))))
        return
    load = os.getloadavg()[0]
    found: dict[str, list[dict[str, Any]]] = {tool: [] for tool in options.tools}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.parquet"
        write(path, options.launches)
        size = path.stat().st_size
        for number in range(options.rounds):
            for tool in options.tools if number % 2 == 0 else reversed(options.tools):
                print(f"\rround {number + 1}: {tool}      ", end="", file=sys.stderr)
                found[tool].append(child(tool, path))
    print(file=sys.stderr)
    for tool in options.tools:
        compare_totals(found[options.tools[0]][0]["totals"], found[tool][0]["totals"], tool)
    rows = [row_of(tool, found) for tool in options.tools]
    conditions = {
        "launches": options.launches,
        "file_bytes": size,
        "rounds": options.rounds,
        "cores": os.cpu_count(),
        "load_average_before": load,
        "load_average_after": os.getloadavg()[0],
    }
    if options.json:
        print(json.dumps({"conditions": conditions, "rows": rows}, indent=1))
    else:
        print_table(conditions, rows)


def write(path: Path, count: int) -> None:
    from mansard import engine
    from mansard.model.provenance import Provenance
    from mansard.store import write_run

    with engine.connect() as connection:
        write_run(connection, LAUNCHES.format(count=count), Provenance(), path)


def child(tool: str, path: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", tool, str(path)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def measured(tool: str, path: Path) -> dict[str, Any]:
    """Time from before the tool is imported to its result, and the most memory it held."""
    start = time.perf_counter()
    totals = TOOLS[tool](path)
    wall_s = time.perf_counter() - start
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "wall_s": wall_s,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "rss_bytes": usage.ru_maxrss * 1024,
        "totals": totals,
    }


def with_mansard(path: Path) -> dict[str, float]:
    from mansard.analysis import AnalysisOptions, analyze
    from mansard.model.machine import Ceiling, Machine
    from mansard.store import open_run

    machine = Machine(
        name="bench",
        basis="published",
        ceilings=(
            *(
                Ceiling(kind="compute", value=value, unit="flop/s", path=name)
                for name, value in COMPUTE.items()
            ),
            *(
                Ceiling(kind="bandwidth", value=value, unit="byte/s", level=level)
                for level, value in BANDWIDTH.items()
            ),
        ),
    )
    options = AnalysisOptions(zero_flop_by="launch")
    totals = analyze(open_run(path), machine, options=options).totals
    return {
        "launches": totals.launches,
        "kernels": totals.kernels,
        "duration_s": totals.duration_s or 0,
        "flop": totals.flop or 0,
        "floor_s": totals.floor_s or 0,
        "near_zero": totals.near_zero_flop_launches or 0,
        "short": totals.short_launches or 0,
        "above": totals.launches_above_roof,
    }


def with_pandas(path: Path) -> dict[str, float]:
    import pandas as pd

    frame = pd.read_parquet(path, columns=["name", "phase", "rank", "duration_s", *COLUMNS])
    work = [column for column in COLUMNS if column.startswith("flop")]
    pipes: dict[str, Any] = {}
    for name, roof in COMPUTE.items():
        pipe = name.split()[0]
        term = frame[f"flop_{name.replace(' ', '_')}"].fillna(0) / roof
        pipes[pipe] = pipes[pipe] + term if pipe in pipes else term
    for pipe, floor in pipes.items():
        frame[f"floor_{pipe}"] = floor
    for level, roof in BANDWIDTH.items():
        frame[f"floor_{level}"] = frame[f"bytes_{level}"] / roof
    floors = [column for column in frame.columns if column.startswith("floor_")]
    frame["floor"] = frame[floors].max(axis=1)
    frame["flop"] = frame[work].sum(axis=1)
    frame["near"] = (frame["flop"] > 0) & (frame["flop"] < NEAR_ZERO * frame["bytes_dram"])
    frame["short"] = frame["duration_s"] < SHORT_S
    frame["above"] = frame["floor"] > frame["duration_s"] * (1 + TOLERANCE)
    frame["launches"] = 1
    sums = ["launches", "duration_s", "flop", *COLUMNS, *floors, "floor", "near", "short", "above"]
    cube = frame.groupby(["name", "phase", "rank"], dropna=False)[sums].sum()
    return totals_of(cube.sum(), cube.index.get_level_values("name").nunique())


def with_polars(path: Path) -> dict[str, float]:
    import polars as pl

    def total(names: list[Any]) -> Any:
        return pl.sum_horizontal(names)

    pipes = {
        pipe: total(
            [
                pl.col(f"flop_{name.replace(' ', '_')}").fill_null(0) / roof
                for name, roof in COMPUTE.items()
                if name.startswith(pipe)
            ]
        ).alias(f"floor_{pipe}")
        for pipe in ("vector", "tensor")
    }
    levels = [
        (pl.col(f"bytes_{key}") / roof).alias(f"floor_{key}") for key, roof in BANDWIDTH.items()
    ]
    floors = [f"floor_{name}" for name in (*pipes, *BANDWIDTH)]
    work = [pl.col(column).fill_null(0) for column in COLUMNS if column.startswith("flop")]
    sums = ["duration_s", "flop", *COLUMNS, *floors, "floor", "near", "short", "above"]
    cube = (
        pl.scan_parquet(path)
        .with_columns(*pipes.values(), *levels, total(work).alias("flop"))
        .with_columns(pl.max_horizontal(floors).alias("floor"))
        .with_columns(
            ((pl.col("flop") > 0) & (pl.col("flop") < NEAR_ZERO * pl.col("bytes_dram"))).alias(
                "near"
            ),
            (pl.col("duration_s") < SHORT_S).alias("short"),
            (pl.col("floor") > pl.col("duration_s") * (1 + TOLERANCE)).alias("above"),
        )
        .group_by("name", "phase", "rank")
        .agg(pl.len().alias("launches"), *(pl.col(column).sum() for column in sums))
        .collect(engine="streaming")
    )
    return totals_of(cube.sum().to_dicts()[0], cube["name"].n_unique())


def totals_of(sums: Any, kernels: int) -> dict[str, float]:
    return {
        "launches": int(sums["launches"]),
        "kernels": int(kernels),
        "duration_s": float(sums["duration_s"]),
        "flop": float(sums["flop"]),
        "floor_s": float(sums["floor"]),
        "near_zero": int(sums["near"]),
        "short": int(sums["short"]),
        "above": int(sums["above"]),
    }


TOOLS = {"mansard": with_mansard, "pandas": with_pandas, "polars": with_polars}


def compare_totals(ours: dict[str, float], theirs: dict[str, float], tool: str) -> None:
    for name, value in ours.items():
        if not math.isclose(value, theirs[name], rel_tol=1e-9):
            raise SystemExit(f"{tool} does not agree: {name} is {theirs[name]}, not {value}")


def row_of(tool: str, found: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    row: dict[str, Any] = {"tool": tool}
    first = next(iter(found))
    for name in ("wall_s", "cpu_s", "rss_bytes"):
        values = [one[name] for one in found[tool]]
        row[name] = statistics.median(values)
        row[f"{name} range"] = [min(values), max(values)]
        ratios = [a[name] / b[name] for a, b in zip(found[tool], found[first], strict=True)]
        row[f"{name} / {first}"] = statistics.median(ratios)
    return row


def print_table(conditions: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    first = rows[0]["tool"]
    print(
        f"{conditions['launches']:,} launches, file {conditions['file_bytes'] / 1e6:.0f} MB, "
        f"{conditions['cores']} cores, {conditions['rounds']} rounds, load average "
        f"{conditions['load_average_before']:.1f} before and "
        f"{conditions['load_average_after']:.1f} after"
    )
    print(f"{'tool':10}{'wall s':>9}{'CPU s':>9}{'RSS MB':>9}{f'wall, CPU, RSS / {first}':>32}")
    for row in rows:
        ratios = [row[f"{name} / {first}"] for name in ("wall_s", "cpu_s", "rss_bytes")]
        print(
            f"{row['tool']:10}{row['wall_s']:9.2f}{row['cpu_s']:9.2f}"
            f"{row['rss_bytes'] / 1e6:9.0f}{'':10}" + "".join(f"{ratio:7.2f}" for ratio in ratios)
        )
    ours = next((row for row in rows if row["tool"] == "mansard"), None)
    if ours:
        held = ours["wall_s"] <= LIMIT_S and ours["rss_bytes"] <= LIMIT_BYTES
        limits = f"{LIMIT_S:g} s and {LIMIT_BYTES / 1e6:g} MB"
        print(f"wanted: mansard in {limits}: {'yes' if held else 'NO'}")


if __name__ == "__main__":
    main()
