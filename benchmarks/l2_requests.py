"""Where requests for one line are answered together: at the SM, on the way, or at L2.

    python benchmarks/l2_requests.py [-o FILE]

Runs kernels that read the same bytes from L2 in four ways under Nsight Compute and shows, as shares
of what the threads asked for, what hit in L1, what arrived at the SMs, and what the slices of L2
served. Needs an NVIDIA GPU with counter permission, the extra ``cuda``, and ncu.
"""

import argparse
import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from mansard.bench.cuda.compile import target_for
from mansard.bench.cuda.discover import open_device
from mansard.bench.kernels import Variant

COUNTERS = {
    "hit in L1": ("l1tex__t_sectors_lookup_hit.sum", 32),
    "at the SMs": ("l1tex__m_xbar2l1tex_read_bytes.sum", 1),
    "at L2": ("lts__t_sectors_srcunit_tex.sum", 32),
}
PASSES = 256
OWN = "mansard.validate:own.cu"


def cache(entry: str, *, threads: int, unroll: int) -> Variant:
    """A kernel of ``cache.cu`` with loads that pass L1."""
    macros = (("OPERATOR", '"cg"'), ("THREADS", str(threads)), ("UNROLL", str(unroll)))
    return Variant(source="cache.cu", entry=entry, macros=macros, threads=threads, blocks=1)


def own(*, threads: int, unroll: int) -> Variant:
    """The kernel in which no two warps read one line."""
    macros = (("THREADS", str(threads)), ("UNROLL", str(unroll)))
    return Variant(source=OWN, entry="own_read", macros=macros, threads=threads, blocks=1)


#: Name, kernel, rows of 16 bytes a thread, iterations.
KERNELS = (
    ("lines of its own, small set", own(threads=512, unroll=2), 4, 2 * PASSES),
    ("warps of a block share, small set", cache("cache_read", threads=512, unroll=2), 2, PASSES),
    ("warps of a block share, large set", cache("cache_read", threads=1024, unroll=4), 16, PASSES),
    ("blocks share, in turns", cache("cache_read_turns", threads=1024, unroll=4), 4, PASSES),
)


def launch() -> None:
    """What ncu watches: each kernel twice, so that the second finds its set in L2."""
    session, opened = open_device(0)
    gpu = session.gpu
    gpu.arch = target_for(opened.capability, opened.architectures).arch
    for _, variant, rows, iterations in KERNELS:
        data = gpu.allocate(gpu.sms * variant.threads * rows * 16)
        gpu.zero(data)
        for _ in range(2):
            gpu.start(variant, data, 0, np.int32(rows), np.int32(iterations))
        gpu.free(data)


def asked(sms: int) -> list[float]:
    """Bytes that the threads of each kernel ask for."""
    found = []
    for _, variant, rows, iterations in KERNELS:
        each = variant.number("UNROLL") if variant.source == OWN else rows
        found.append(float(sms * variant.threads * 16 * each * iterations))
    return found


def counted() -> list[dict[str, float]]:
    """The counters of the second launch of each kernel."""
    ncu = shutil.which("ncu") or sys.exit("ncu is not on the PATH")
    command = [ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"]
    command += ["--cache-control", "none", "-k", "regex:own_read|cache_read"]
    command += ["--metrics", ",".join(name for name, _ in COUNTERS.values())]
    command += ["--replay-mode", "application", sys.executable, __file__, "--launch"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if not lines:
        sys.exit(f"ncu gave no table: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    rows = [row for row in csv.DictReader(io.StringIO("\n".join(lines))) if row["ID"]]
    return [
        {
            name: float(row[counter].replace(",", "")) * size
            for name, (counter, size) in COUNTERS.items()
        }
        for row in rows[1::2]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--launch", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.launch:
        launch()
        return
    session, _ = open_device(0)
    bytes_asked = asked(session.gpu.sms)
    results = []
    print(f"{'kernel':36}{'asked':>10}" + "".join(f"{name:>12}" for name in COUNTERS))
    for (name, *_), total, found in zip(KERNELS, bytes_asked, counted(), strict=True):
        shares = {what: value / total for what, value in found.items()}
        results.append({"kernel": name, "bytes_asked": total, **shares})
        print(f"{name:36}{total:10.3g}" + "".join(f"{share:12.4f}" for share in shares.values()))
    if options.output:
        options.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
