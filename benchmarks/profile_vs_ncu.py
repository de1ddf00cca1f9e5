"""Counters of one training step: in-process passes against Nsight Compute, on the same kernels.

    python benchmarks/profile_vs_ncu.py docs/validation/profile-h200.json

The step is DeepLabv3 with a ResNet-50 (16 x 768 x 1152 input, batch 2, bf16), about 1,000 kernels.
Nsight Compute replays each kernel, which takes minutes for a whole step; so it takes one launch of
each distinct kernel, grid and block, and its time is stated per launch and scaled to the step.
"""

import datetime as dt
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WARMUP = 5
TWO_PASS = ("duration_s", "sm_clock_hz", "flop_vector_*", "bytes_shared", "bytes_l2", "bytes_dram")
FLOP = (
    "flop_vector_fp64",
    "flop_vector_fp32",
    "flop_vector_fp16",
    "flop_tensor_bf16",
)


def training_step():
    import torch
    import torchvision

    torch.manual_seed(0)
    # Heuristics, no tuning: both tools must see the same kernels.
    torch.backends.cudnn.benchmark = False
    model = torchvision.models.segmentation.deeplabv3_resnet50(
        weights=None, weights_backbone=None, num_classes=3
    )
    model.backbone.conv1 = torch.nn.Conv2d(16, 64, 7, 2, 3, bias=False)
    model = model.cuda().to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    x = torch.randn(2, 16, 768, 1152, device="cuda").to(memory_format=torch.channels_last)
    y = torch.randint(0, 3, (2, 768, 1152), device="cuda")

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(x)["out"].float(), y)
        loss.backward()
        optimizer.step()

    return torch, step


def one_step():
    """What Nsight Compute runs: one step between cudaProfilerStart and Stop."""
    torch, step = training_step()
    for _ in range(WARMUP):
        step()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    step()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


def in_process(step, path, columns):
    """Take a profile; seconds of the collection, and the profile."""
    from mansard.collect import profile

    begin = time.perf_counter()
    with profile(path, warmup=1, columns=columns) as taken:
        while not taken.done:
            with taken.step():
                step()
    wall = time.perf_counter() - begin
    if taken.failure is not None:
        raise taken.failure
    seconds = taken.recording.seconds
    spent = sum(seconds.get(name, 0.0) for name in ("trace", "survey", "counters"))
    print(f"{path.name}: {spent:.2f} s ({wall:.2f} s with operators and file)", seconds, flush=True)
    return spent, wall, taken


def iteration_s(torch, step, count=20):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / count


def with_ncu(folder, counters):
    """Profile one launch of each kind with ncu: seconds beyond the plain program, and in all."""
    from mansard.readers import import_files

    begin = time.perf_counter()
    subprocess.run([sys.executable, __file__, "--one-step"], check=True)
    alone = time.perf_counter() - begin
    log = folder / "ncu.csv"
    command = [
        "ncu", "--clock-control", "none", "--profile-from-start", "off",
        "--filter-mode", "per-launch-config", "--launch-count", "1",
        "--metrics", ",".join(counters), "--csv", "--page", "raw", "--print-units", "base",
        "--print-kernel-base", "mangled", "--log-file", str(log),
        sys.executable, __file__, "--one-step",
    ]  # fmt: skip
    begin = time.perf_counter()
    subprocess.run(command, check=True)
    wall = time.perf_counter() - begin
    import_files([log], folder / "ncu.parquet")
    return wall - alone, wall


def compare(ours, theirs):
    """Pair the launches that ncu took with the first of the same name, grid and block of ours."""
    import duckdb

    from mansard.collect.demangle import demangle

    keys = "name, grid_x, grid_y, grid_z, block_x, block_y, block_z"
    flop = ", ".join(FLOP)

    def read(path):
        return duckdb.sql(
            f"SELECT {keys}, {flop}, duration_s FROM read_parquet('{path}') "
            "WHERE kind = 'kernel' ORDER BY launch"
        ).fetchall()

    first = {}
    for row in read(ours):
        first.setdefault(row[:7], row[7:])
    found = {"ncu_launches": 0, "not_found": [], "mismatched": [], "ncu_s": 0.0, "our_s": 0.0}
    for row in read(theirs):
        found["ncu_launches"] += 1
        # ncu was asked for symbols: its demangler writes other spaces and casts than ours.
        key = (demangle(row[0]), *row[1:7])
        if key not in first:
            found["not_found"].append(str(key)[:200])
            continue
        if first[key][:-1] != row[7:-1]:
            found["mismatched"].append([key[0][:120], list(first[key][:-1]), list(row[7:-1])])
        found["ncu_s"] += row[-1]
        found["our_s"] += first[key][-1]
    return found


def main(target):
    import fnmatch

    import duckdb

    from mansard.collect.cupti_instruments import CuptiInstruments
    from mansard.collect.record import driver_version
    from mansard.model.columns import QUANTITY_COLUMNS

    torch, step = training_step()
    for _ in range(WARMUP):
        step()
    before = iteration_s(torch, step)
    folder = Path(tempfile.mkdtemp(prefix="mansard-bench-"))
    names = [c.name for c in QUANTITY_COLUMNS]
    two = tuple(n for n in names if any(fnmatch.fnmatchcase(n, p) for p in TWO_PASS))
    two_s, two_wall, taken_two = in_process(step, folder / "two.parquet", two)
    all_s, all_wall, taken = in_process(step, folder / "all.parquet", None)
    after = iteration_s(torch, step)
    trace = taken.recording.steps[0].trace
    counted = taken.recording.steps[0].kernels
    facts = CuptiInstruments().facts(0)
    counter_time = duckdb.sql(
        "SELECT sum(duration_s) FROM read_parquet(?) WHERE kind = 'kernel'",
        params=[str(folder / "all.parquet")],
    ).fetchall()[0]
    result = {
        "workload": "DeepLabv3-ResNet50 training step, bf16, 16x768x1152, batch 2",
        "gpu": facts.name,
        "driver": driver_version(Path("/proc/driver/nvidia/version")),
        "torch": torch.__version__,
        "cupti": taken.run.provenance[0].collector_version,
        "python": platform.python_version(),
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "launches": len(trace.kernels),
        "two_pass_passes": taken_two.recording.passes,
        "all_passes": taken.recording.passes,
        "inprocess_two_pass_s": two_s,
        "inprocess_two_pass_wall_s": two_wall,
        "inprocess_all_s": all_s,
        "inprocess_all_wall_s": all_wall,
        "seconds": taken.recording.seconds,
        "trace_kernel_time_s": sum(k.end_ns - k.start_ns for k in trace.kernels) / 1e9,
        # What the run says: it takes its times from an undisturbed trace.
        "inprocess_kernel_time_s": counter_time[0],
        "counter_pass_kernel_time_s": sum(counted.column("gpu__time_duration.sum")) / 1e9,
        "run_file_bytes": (folder / "all.parquet").stat().st_size,
        "iteration_before_s": before,
        "iteration_after_s": after,
        "notices": [n.code for n in taken.run.all_notices],
    }
    save(result, target)
    shutil.copy(folder / "all.parquet", target.with_suffix(".parquet"))
    if "--no-ncu" in sys.argv:
        print(json.dumps(result, indent=1))
        return
    wanted = list(taken_two.recording.steps[0].kernels.counters)
    wanted += [c for c in counted.counters if "tensor_src_bf16" in c]
    del torch, step
    ncu_s, ncu_wall = with_ncu(folder, wanted)
    shutil.copy(folder / "ncu.parquet", target.with_suffix(".ncu.parquet"))
    found = compare(folder / "all.parquet", folder / "ncu.parquet")
    per_launch = ncu_s / found["ncu_launches"]
    version = subprocess.run(["ncu", "--version"], capture_output=True, text=True, check=True)
    result |= {
        "ncu_version": version.stdout.split("Version ")[-1].split()[0],
        "ncu_launches": found["ncu_launches"],
        "ncu_wall_s": ncu_wall,
        "ncu_s_per_launch": per_launch,
        "ncu_s": per_launch * result["launches"],
        "ncu_s_is": "time of ncu beyond the plain program, per launch, times the launches",
        "speedup": per_launch * result["launches"] / two_s,
        "ncu_launches_not_found": found["not_found"],
        "flop_mismatched_launches": len(found["mismatched"]),
        "flop_mismatched": found["mismatched"],
        "ncu_kernel_time_s": found["ncu_s"],
        "trace_time_of_the_same_launches_s": found["our_s"],
    }
    save(result, target)
    print(json.dumps(result, indent=1))


def save(result, target):
    target.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--one-step"]:
        os.environ.setdefault("CUDA_MODULE_LOADING", "LAZY")
        one_step()
    else:
        main(Path(sys.argv[1]))
