"""How fast a report of Nsight Compute is opened, beside pandas on the CSV of the same launches.

``python benchmarks/import_ncu_rep.py [--launches 1066] [--megabytes 130] [--json]``

The report is synthetic but shaped as real ones: most bytes are machine code, each launch has its
metrics, the definitions of its sections, a rule and its NVTX state. The CSV is what
``ncu --import --page raw --csv`` would print of it. pandas reads it into the same units.
"""

import argparse
import csv
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "data" / "ncu_rep")]

MODULES = 32
SECTION_BYTES = 6000
REPEATS = 7
BASES = (
    "gpu__time_duration",
    "sm__cycles_elapsed",
    "sm__inst_executed_pipe_tensor",
    "dram__bytes",
    "dram__bytes_read",
    "dram__bytes_write",
    "lts__t_bytes",
    "l1tex__t_bytes",
    "smsp__inst_executed",
    "smsp__sass_thread_inst_executed_op_ffma_pred_on",
    "smsp__sass_thread_inst_executed_op_fadd_pred_on",
    "smsp__sass_thread_inst_executed_op_fmul_pred_on",
    "sm__ops_path_tensor_src_fp16",
)
LAUNCH_FACTS = (
    "launch__grid_dim_x",
    "launch__grid_dim_y",
    "launch__grid_dim_z",
    "launch__block_dim_x",
    "launch__block_dim_y",
    "launch__block_dim_z",
    "launch__device_id",
    "launch__stream_id",
)
METRICS = (
    *LAUNCH_FACTS,
    *(f"{base}.{op}" for base in BASES for op in ("avg", "max", "min", "sum")),
)


def unit_of(metric: str) -> str:
    if "time" in metric:
        return "us"
    return "Mbyte" if "bytes" in metric else ""


def value_of(metric: str, launch: int) -> int | float:
    if metric in LAUNCH_FACTS:
        return {"x": 1024 if "grid" in metric else 128, "_": 0, "d": 0}.get(metric[-1], 1)
    rollup = METRICS.index(metric) + launch
    return float(1_000_000 + rollup * 37)


def kernel_name(launch: int) -> str:
    return f"void at::native::vectorized_elementwise_kernel<(int){launch % 40}, float>(int, T2)"


def write_report(path: Path, *, launches: int, megabytes: int) -> None:
    import report_writer as w

    section = w.message((1, "SpeedOfLight"), (2, "GPU Speed Of Light"), (7, "x" * SECTION_BYTES))
    rule = w.message((1, "Rule"), (3, w.message((1, w.message((1, "text " * 40))))))
    code = bytes(range(256)) * ((megabytes * 10**6 - launches * 9000) // MODULES // 256)
    with path.open("wb") as file:
        file.write(w.header() + w.block(details=w.message((8, w.TOOL), (11, "ncu -o x app"))))
        for launch in range(launches):
            metrics = [
                w.metric(number, value_of(metric, launch), instances=metric in LAUNCH_FACTS)
                for number, metric in enumerate(METRICS)
            ]
            stack = [("train", 10), (f"step {launch // 200}", 20), (f"layer {launch % 40}", 30)]
            result = w.result(
                name=kernel_name(launch),
                grid=(1024, 1, 1),
                metrics=metrics,
                sections=[section],
                nvtx=w.nvtx_state(pushed=[(1234, 0, stack)]),
                code=launch % MODULES + 1,
                more=w.field(19, rule),
            )
            if launch < MODULES:
                file.write(w.block(sources=[w.source(launch + 1, code)]))
            file.write(w.block(results=[result], names=METRICS if launch == 0 else ()))


def write_csv(path: Path, *, launches: int) -> None:
    head = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream")
    head += ("Block Size", "Grid Size", "Device", "CC")
    scale = {"us": 1e-3, "Mbyte": 1e-6, "": 1.0}
    with path.open("w", newline="") as file:
        out = csv.writer(file, quoting=csv.QUOTE_ALL)
        out.writerow([*head, *METRICS])
        out.writerow([*("" for _ in head), *(unit_of(metric) for metric in METRICS)])
        for launch in range(launches):
            identity = [launch, 1234, "app", "node17", kernel_name(launch), 1, 7]
            identity += ["(128, 1, 1)", "(1024, 1, 1)", 0, "9.0"]
            cells = (f"{value_of(m, launch) * scale[unit_of(m)]:,.6f}" for m in METRICS)
            out.writerow([*identity, *cells])


def read_with_mansard(report: Path, _: Path) -> int:
    from mansard.engine import connect
    from mansard.readers.ncu_rep import read_ncu_rep

    with connect() as connection:
        read_ncu_rep(report, connection, "launches", name=report.name)
        ((count,),) = connection.execute(
            'SELECT count("counter.gpu__time_duration.sum") FROM launches'
        ).fetchall()
    return count


def read_with_pandas(_: Path, table: Path) -> int:
    import pandas as pd

    factors = {"us": 1e-6, "Mbyte": 1e6}
    units = pd.read_csv(table, nrows=1).iloc[0]
    frame = pd.read_csv(table, skiprows=[1], thousands=",")
    for column, unit in units.items():
        if unit in factors:
            frame[column] *= factors[unit]
    return int(frame["gpu__time_duration.sum"].count())


READERS: dict[str, Callable[[Path, Path], int]] = {
    "mansard": read_with_mansard,
    "pandas": read_with_pandas,
}


def child(reader: str, report: Path, table: Path) -> None:
    """Time one reader in this process; its memory is the process's own."""
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        count = READERS[reader](report, table)
        seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak_bytes": peak, "launches": count}))


def measure(reader: str, report: Path, table: Path) -> dict:
    command = [sys.executable, __file__, "--child", reader, "--files", str(report), str(table)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    raw = json.loads(run.stdout)
    first, *again = raw["seconds"]
    return {
        "first_s": first,
        "median_s": statistics.median(again),
        "peak_bytes": raw["peak_bytes"],
        "launches": raw["launches"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, default=1066)
    parser.add_argument("--megabytes", type=int, default=130)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--child", choices=READERS, help=argparse.SUPPRESS)
    parser.add_argument("--files", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, *options.files)
        return
    with tempfile.TemporaryDirectory() as folder:
        report, table = Path(folder) / "synthetic.ncu-rep", Path(folder) / "synthetic.csv"
        write_report(report, launches=options.launches, megabytes=options.megabytes)
        write_csv(table, launches=options.launches)
        found = {reader: measure(reader, report, table) for reader in READERS}
        found["report_bytes"] = report.stat().st_size
        found["csv_bytes"] = table.stat().st_size
    ours, peer = found["mansard"], found["pandas"]
    found["ratio_median"] = ours["median_s"] / peer["median_s"]
    found["ratio_first"] = ours["first_s"] / peer["first_s"]
    found["ratio_peak_bytes"] = ours["peak_bytes"] / peer["peak_bytes"]
    if options.json:
        print(json.dumps(found, indent=2))
        return
    print(
        f"{options.launches} launches, {len(METRICS)} metrics each: "
        f"report {found['report_bytes'] / 1e6:.0f} MB, CSV {found['csv_bytes'] / 1e6:.1f} MB"
    )
    print(f"{'':<10}{'first':>10}{'median':>10}{'peak memory':>14}")
    for reader in READERS:
        row = found[reader]
        print(
            f"{reader:<10}{row['first_s']:>8.3f} s{row['median_s']:>8.3f} s"
            f"{row['peak_bytes'] / 1e6:>11.0f} MB"
        )
    print(
        f"mansard / pandas: first {found['ratio_first']:.2f}, median {found['ratio_median']:.2f}, "
        f"memory {found['ratio_peak_bytes']:.2f}"
    )


if __name__ == "__main__":
    main()
