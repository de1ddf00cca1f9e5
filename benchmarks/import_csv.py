"""How long reading a large ncu CSV takes, beside pandas doing the same work.

Both read the same raw page (one row per launch, units in row 2, commas between thousands) into
numbers in base units. Each runs in a process of its own, in turns, so that peak memory is its own
and a busy machine slows both. The ratio is what counts; seconds depend on the machine, processor
seconds (of all threads) less so.

    python benchmarks/import_csv.py --launches 100000 --metrics 60
"""

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src")]

KERNELS = 200
UNITS = ("byte", "Kbyte", "Mbyte", "ns", "inst", "")
IDENTITY = {
    "ID": "",
    "Process ID": "441",
    "Process Name": "python3.12",
    "Host Name": "localhost",
    "Kernel Name": "",
    "Context": "1",
    "Stream": "7",
    "Block Size": "(128, 1, 1)",
    "Grid Size": "(16384, 1, 1)",
    "Device": "0",
    "CC": "9.0",
}


def write_page(path, launches, metrics):
    source = random.Random(1)
    names = [
        f"void at::native::vectorized_elementwise_kernel<4, at::native::functor_{n}<float>, "
        "std::array<char *, 3>>(int, T2, T3)"
        for n in range(KERNELS)
    ]
    titles = [*IDENTITY, *(f"unit__metric_{n}.sum" for n in range(metrics))]
    units = [*("" for _ in IDENTITY), *(UNITS[n % len(UNITS)] for n in range(metrics))]
    with path.open("w", encoding="utf-8") as file:
        for row in (titles, units):
            file.write(",".join(f'"{field}"' for field in row) + "\n")
        for launch in range(launches):
            fields = {**IDENTITY, "ID": str(launch), "Kernel Name": names[launch % KERNELS]}
            values = (
                f"{source.randrange(10 ** source.randrange(4, 12)):,}"
                if n % 3
                else f"{source.random() * 1e6:,.2f}"
                for n in range(metrics)
            )
            file.write(",".join(f'"{field}"' for field in (*fields.values(), *values)) + "\n")


def read_with_mansard(path):
    from mansard.engine import connect
    from mansard.readers.ncu_csv import read_ncu_csv

    started = time.perf_counter()
    with connect() as connection:
        capture = read_ncu_csv(path, connection, "launches", name=path.name)
        seconds = time.perf_counter() - started
        first = f'"counter.{capture.counters[0]}"'
        rows, total = connection.execute(f"SELECT count(*), sum({first}) FROM launches").fetchone()
    return seconds, rows, total


def read_with_pandas(path):
    import pandas as pd

    factors = {"Kbyte": 1e3, "Mbyte": 1e6, "ns": 1e-9}
    started = time.perf_counter()
    frame = pd.read_csv(path, dtype=str)
    units, frame = frame.iloc[0], frame.iloc[1:].copy()
    metrics = [title for title in frame.columns if "__" in title]
    for title in metrics:
        numbers = pd.to_numeric(frame[title].str.replace(",", "", regex=False), errors="coerce")
        frame[title] = numbers * factors.get(units[title], 1.0)
    seconds = time.perf_counter() - started
    return seconds, len(frame), frame[metrics[0]].sum()


READERS = {"mansard": read_with_mansard, "pandas": read_with_pandas}


def child(reader, path):
    seconds, rows, total = READERS[reader](Path(path))
    used = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        json.dumps(
            {
                "seconds": seconds,
                "cpu_seconds": used,
                "rows": rows,
                "total": total,
                "peak_bytes": peak,
            }
        )
    )


def measure(path, repeats):
    found = {reader: [] for reader in READERS}
    for _ in range(repeats):
        for reader, results in found.items():
            command = [sys.executable, __file__, "--child", reader, str(path)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            results.append(json.loads(output))
    return found


def summary(found, size):
    lines = {}
    for reader, results in found.items():
        seconds = statistics.median(result["seconds"] for result in results)
        lines[reader] = {
            "seconds": seconds,
            "cpu_seconds": min(result["cpu_seconds"] for result in results),
            "mb_per_second": size / seconds / 1e6,
            "peak_mb": max(result["peak_bytes"] for result in results) / 1e6,
        }
    ours, theirs = lines["mansard"], lines["pandas"]
    ratios = {
        "speed": theirs["seconds"] / ours["seconds"],
        "memory": theirs["peak_mb"] / ours["peak_mb"],
    }
    return {"file_mb": size / 1e6, "cores": os.cpu_count(), "readers": lines, "ratios": ratios}


def check_agreement(found):
    first = found["mansard"][0]
    for results in found.values():
        for result in results:
            close = abs(result["total"] - first["total"]) <= 1e-9 * abs(first["total"])
            if result["rows"] != first["rows"] or not close:
                sys.exit(f"the readers disagree: {found}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, default=100_000)
    parser.add_argument("--metrics", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "raw.csv"
        write_page(path, options.launches, options.metrics)
        found = measure(path, options.repeats)
        check_agreement(found)
        result = summary(found, path.stat().st_size)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    print(f"{options.launches} launches x {options.metrics} metrics, {result['file_mb']:.0f} MB,")
    print(f"median of {options.repeats} runs on {result['cores']} cores")
    print(f"{'reader':10}{'s':>8}{'cpu s':>8}{'MB/s':>8}{'peak MB':>10}")
    for reader, line in result["readers"].items():
        print(
            f"{reader:10}{line['seconds']:8.2f}{line['cpu_seconds']:8.2f}"
            f"{line['mb_per_second']:8.0f}{line['peak_mb']:10.0f}"
        )
    ratios = result["ratios"]
    print(
        f"mansard is {ratios['speed']:.1f} times as fast as pandas, "
        f"which takes {ratios['memory']:.1f} times the memory"
    )


if __name__ == "__main__":
    main()
