"""Cuts the recorded pages down, and rewrites them in the other ways that people's files have.

Run it in this folder after a change; the results are committed. All of them hold the same six
launches and metrics as raw-base-units.csv.
"""

import csv
import gzip
import io
import random
from pathlib import Path

HERE = Path(__file__).parent
LAUNCHES = ("0", "1", "7", "15", "16", "23")
METRICS = (
    "dram__bytes.sum",
    "gpu__time_duration.sum",
    "sm__cycles_elapsed.avg.per_second",
    "sm__ops_path_tensor_src_fp16.sum",
    "smsp__inst_executed.sum",
)
FACTS = (
    "device__attribute_display_name",
    "device__attribute_multiprocessor_count",
    "device__attribute_clock_rate",
    "launch__func_cache_config",
    "launch__registers_per_thread",
)


def pages(name):
    with gzip.open(HERE / name, "rt", encoding="utf-8", newline="") as file:
        lines = file.readlines()
    start = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    header, *rows = csv.reader(lines[start:])
    return header, rows


def quoted(rows, **options):
    out = io.StringIO()
    options = {"quoting": csv.QUOTE_ALL, "lineterminator": "\n", **options}
    csv.writer(out, **options).writerows(rows)
    return out.getvalue()


def wide(name, metrics=METRICS + FACTS):
    header, rows = pages(name)
    identity = [title for title in header if "__" not in title]
    keep = [header.index(title) for title in (*identity, *metrics)]
    place = header.index("ID")
    kept = [row for row in rows if row[place] in ("", *LAUNCHES)]
    return [[row[i] for i in keep] for row in (header, *kept)]


def long():
    header, rows = pages("zoo.details.csv.gz")
    kept = [
        row for row in rows if row[0] in LAUNCHES and row[header.index("Metric Name")] in METRICS
    ]
    return [header, *kept]


def is_number(text):
    return text[:1].isdigit() and not set(text) - set("0123456789.,")


def swapped(text):
    return text.translate(str.maketrans(".,", ",.")) if is_number(text) else text


def european(rows):
    """Values only: an ID or a compute capability is no number of a metric."""
    first = next(i for i, title in enumerate(rows[0]) if "__" in title)
    return [rows[0], *(row[:first] + [swapped(text) for text in row[first:]] for row in rows[1:])]


def main():
    base = wide("zoo.raw-base-units.csv.gz")
    write = {
        "raw.csv": quoted(wide("zoo.raw.csv.gz")),
        "raw-base-units.csv": quoted(base),
        "details.csv": quoted(long()),
        "european.csv": quoted(european(wide("zoo.raw.csv.gz"))),
        "european-base-units.csv": quoted(european(base)),
        "no-thousands.csv": quoted(
            [base[0], *([t.replace(",", "") if is_number(t) else t for t in r] for r in base[1:])]
        ),
        "narrow-spaces.csv": quoted(
            [
                base[0],
                *([t.replace(",", "\u202f") if is_number(t) else t for t in r] for r in base[1:]),
            ]
        ),
    }
    order = list(range(len(base[0])))
    random.Random(7).shuffle(order)
    write["shuffled-columns.csv"] = quoted([[row[i] for i in order] for row in base])
    # As a spreadsheet in Europe saves it.
    write["spreadsheet.csv"] = quoted(
        european(base), delimiter=";", quoting=csv.QUOTE_MINIMAL, lineterminator="\r\n"
    )
    # One metric after another instead of one launch after another.
    header, *rows = long()
    write["sorted-by-metric.csv"] = quoted(
        [header, *sorted(rows, key=lambda row: row[header.index("Metric Name")])]
    )
    # The header of 2024 and later, with rows of rules that have no metric.
    rule = [
        "Rule Name",
        "Rule Type",
        "Rule Description",
        "Estimated Speedup Type",
        "Estimated Speedup",
    ]
    ruled = [header + rule]
    for row in rows:
        ruled.append([*row, "", "", "", "", ""])
        if row[header.index("Metric Name")] == METRICS[-1]:
            advice = ["SOLBottleneck", "OPT", 'This kernel, "as is", waits', "global", "12.5"]
            ruled.append([*row[: header.index("Metric Name")], "", "", "", *advice])
    write["rules.csv"] = quoted(ruled)
    noise = (
        "==PROF== Connected to process 441 (/usr/bin/python3.12)\n"
        "Loading data, please wait: a,b,c\n"
        '==PROF== Profiling "gemm, \\"fp64\\"" - 0: 0%....50%....100% - 9 passes\n'
    )
    lines = quoted(base).splitlines(keepends=True)
    write["noisy.csv"] = (
        noise
        + "epoch 1:  33%|###       | 1/3\repoch 1: 100%|##########| 3/3 loss=0.5 "
        + "".join(lines[:3])
        + 'She said "hello", and left\n"quoted, only\nstep 2, loss 0.25'
        + "".join(lines[3:5])
        + "\n==PROF== Disconnected from process 441\n\n"
        + "".join(lines[5:])
        + "All done: 1,234 samples\n"
    )
    for name, text in write.items():
        with (HERE / name).open("w", encoding="utf-8", newline="") as file:
            file.write(text)
    (HERE / "byte-order-mark.csv").write_bytes(b"\xef\xbb\xbf" + write["raw.csv"].encode())
    (HERE / "powershell.csv").write_bytes(write["raw.csv"].replace("\n", "\r\n").encode("utf-16"))
    (HERE / "windows.csv").write_bytes(write["raw.csv"].replace("\n", "\r\n").encode())
    (HERE / "raw.csv.gz").write_bytes(gzip.compress(write["raw.csv"].encode(), mtime=0))


if __name__ == "__main__":
    main()
