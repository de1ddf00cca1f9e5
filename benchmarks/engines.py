"""DuckDB, embedded, and Apache Spark, local, at the same analysis: where does which one pay?

``python benchmarks/engines.py FOLDER [--ranks 1 10 100 1000] [-o RESULT.json]``

FOLDER holds one file a rank, as ``synthetic_runs.py`` writes them. Each row is a process of its own
that does all that ``mansard report`` does, on the first ranks. Both engines read the same files and
must give the same totals and the same slow ranks. Spark's row includes its Java process (processor
time and the peak of its resident memory); ``start s`` is the time until its session stands. Needs
``mansard[spark]`` and Java.
"""

import argparse
import datetime as dt
import importlib.metadata
import json
import math
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fleet import MACHINE, first, result

ENGINES = ("duckdb", "spark")
#: Java gets this much; DuckDB has its own 768 MB.
DRIVER_MEMORY = "4g"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--child", choices=ENGINES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measured(options.child, options.folder)))
        return
    cores = os.cpu_count() or 1
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for ranks in options.ranks:
            folder = first(options.folder, ranks, Path(scratch))
            pair = [row(engine, folder, ranks, cores) for engine in options.engines]
            compare(pair)
            rows += pair
            for found in pair:
                print_row(found, heading=found is rows[0])
    if options.output:
        told = {"conditions": conditions(cores), "rows": rows}
        options.output.write_text(json.dumps(told, indent=1) + "\n")


def row(engine: str, folder: Path, ranks: int, cores: int) -> dict[str, Any]:
    submit = f"--driver-memory {DRIVER_MEMORY} --master local[{cores}] pyspark-shell"
    done = subprocess.run(
        [sys.executable, __file__, str(folder), "--child", engine],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": submit, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    load = os.getloadavg()[0]
    return {"engine": engine, "ranks": ranks, "load_after": load, **json.loads(done.stdout)}


def measured(engine: str, folder: Path) -> dict[str, Any]:
    from mansard.analysis import analyze
    from mansard.analysis.spark import scan_with
    from mansard.readers import open as open_any
    from mansard.store import machine

    start = time.perf_counter()
    run = open_any(folder)
    roofs = machine(MACHINE)
    opened = time.perf_counter()
    with scan_with(engine, run) as scan:
        ready = time.perf_counter()
        found = analyze(run, roofs, scan=scan)
        done = time.perf_counter()
        java = java_usage() if engine == "spark" else {"cpu_s": 0.0, "rss_bytes": 0}
    usage = resource.getrusage(resource.RUSAGE_SELF)
    slow = sorted(straggler.rank for straggler in found.fleet.stragglers) if found.fleet else []
    return {
        "wall_s": done - start,
        "open_s": opened - start,
        "start_s": ready - opened,
        "analyze_s": done - ready,
        "cpu_s": usage.ru_utime + usage.ru_stime + java["cpu_s"],
        "rss_bytes": usage.ru_maxrss * 1024 + java["rss_bytes"],
        **result(found.totals.launches, found.totals.duration_s, found.totals.floor_s, slow),
    }


def java_usage() -> dict[str, float]:
    """Of the Java process behind the session: it is a child, and lives until we end."""
    ticks = os.sysconf("SC_CLK_TCK")
    cpu_s, rss_bytes = 0.0, 0
    for child in children(os.getpid()):
        stat = Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()
        cpu_s += (int(stat[11]) + int(stat[12])) / ticks
        for line in Path(f"/proc/{child}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                rss_bytes += int(line.split()[1]) * 1024
    return {"cpu_s": cpu_s, "rss_bytes": rss_bytes}


def children(of: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if parent == of:
                found += [int(entry.name), *children(int(entry.name))]
    return found


def compare(pair: list[dict[str, Any]]) -> None:
    one, *others = pair
    for other in others:
        same = one["launches"] == other["launches"] and one["slow"] == other["slow"]
        for name in ("duration_s", "floor_s"):
            same = same and math.isclose(one[name], other[name], rel_tol=1e-9)
        if not same:
            raise SystemExit(f"the engines do not agree: {one} {other}")


def print_row(found: dict[str, Any], *, heading: bool) -> None:
    if heading:
        print(
            f"{'engine':8}{'ranks':>7}{'launches':>13}{'wall s':>9}{'start s':>9}{'CPU s':>8}"
            f"{'RSS MB':>8}{'load':>6}"
        )
    print(
        f"{found['engine']:8}{found['ranks']:>7}{found['launches']:>13,}{found['wall_s']:>9.2f}"
        f"{found['start_s']:>9.2f}{found['cpu_s']:>8.2f}{found['rss_bytes'] / 1e6:>8.0f}"
        f"{found['load_after']:>6.1f}",
        flush=True,
    )


def conditions(cores: int) -> dict[str, Any]:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "cores": cores,
        "memory_bytes": pages,
        "python": platform.python_version(),
        "java": (java.stderr.splitlines() or ["?"])[0],
        "java_memory": DRIVER_MEMORY,
        "packages": {
            name: importlib.metadata.version(name)
            for name in ("duckdb", "pyspark", "pyarrow", "sqlglot")
        },
    }


if __name__ == "__main__":
    main()
