"""Everything that only a GPU can show, in one go: ``python scripts/gpu_check.py -o FOLDER``.

    python scripts/gpu_check.py -o FOLDER [--budget 560] [--only validate tests ...]
    python scripts/gpu_check.py --list

Each stage is a process of its own with a time limit, so that one that hangs or crashes leaves the
others alone; what is not reached is named. FOLDER gets the results and logs, ``summary.json`` says
how each stage ended, and with ``--archive`` all of it is one file, FOLDER.tar.xz. Needs an NVIDIA
GPU with counter permission, the extra ``cuda``, PyTorch, torchvision and pytest; ncu and nvcc for
the stages that compare with Nsight Compute.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = sys.executable
#: The end of a log that is shown.
SHOWN_LINES = 6


@dataclasses.dataclass(frozen=True)
class Stage:
    """A command, the most seconds it may take, and what it shows."""

    name: str
    command: tuple[str, ...]
    limit_s: float
    shows: str
    gpus: int = 1


def stages(folder: Path) -> tuple[Stage, ...]:
    """The stages, the most telling first."""
    mansard = (PYTHON, "-m", "mansard")
    pytest = (PYTHON, "-m", "pytest", "-q", "-rfEs", "-p", "no:cacheprovider", "-x", "--maxfail=20")
    benchmarks = ROOT / "benchmarks"

    def out(name: str) -> str:
        return str(folder / name)

    study = (*mansard, "study", "deepcam", "--no-report", "-o", out("study"))

    return (
        Stage("doctor", (*mansard, "doctor"), 30, "what is installed and permitted"),
        Stage(
            "validate",
            (*mansard, "validate", "-o", out("validate.json")),
            180,
            "counters against known work",
        ),
        Stage("bench", (*mansard, "bench", "-o", out("machine.json")), 60, "ceilings"),
        Stage(
            "collect",
            (*pytest, str(ROOT / "tests/gpu/test_collect.py")),
            240,
            "the collector's tests",
        ),
        Stage(
            "profile",
            (PYTHON, str(benchmarks / "profile_vs_ncu.py"), out("profile.json")),
            200,
            "cost and FLOP beside Nsight Compute",
        ),
        Stage(
            "study",
            (*study, "--time-limit", "150", "--budget", "470"),
            490,
            "the cells of the study that are not measured yet",
        ),
        Stage(
            "workloads",
            (*pytest, str(ROOT / "tests/unit/workloads/test_torch_gpu.py")),
            240,
            "the study's networks in every precision",
        ),
        Stage("bench tests", (*pytest, str(ROOT / "tests/gpu/test_bench.py")), 150, "ceilings"),
        Stage("two", (*pytest, str(ROOT / "tests/gpu/test_two_gpus.py")), 300, "NCCL, NVLink", 2),
        Stage("all", (*mansard, "bench", "--all", "--quick", "-o", out("node")), 120, "a node", 2),
        Stage(
            "ncu",
            (
                *(PYTHON, str(benchmarks / "ncu_sampled.py"), "--budget", "280"),
                *("--only", "gate", "kinds", "errors", "ranges", "graph", "sample_1", "inside"),
                *("--output", out("ncu.json"), "--keep", out("ncu-reports")),
            ),
            310,
            "Nsight Compute, sampled, by range and by graph",
        ),
        Stage("ncu tests", (*pytest, str(ROOT / "tests/gpu/test_ncu.py")), 150, "Nsight Compute"),
        Stage(
            "validate tests",
            (*pytest, str(ROOT / "tests/gpu/test_validate.py")),
            150,
            "counters against known work",
        ),
    )


def run(stage: Stage, folder: Path, limit_s: float) -> dict[str, object]:
    """Run one stage; its end, its seconds and the end of its log."""
    log = folder / f"{stage.name.replace(' ', '-')}.log"
    begin = time.monotonic()
    source = os.pathsep.join((str(ROOT / "src"), os.environ.get("PYTHONPATH", "")))
    with log.open("wb") as stream:
        child = subprocess.Popen(
            stage.command,
            cwd=ROOT,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": source, "PYTHONUNBUFFERED": "1"},
        )
        code: int | None = None
        try:
            code = child.wait(limit_s)
        except subprocess.TimeoutExpired:
            # Ctrl-C first: every command keeps what it has.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(20)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-SHOWN_LINES:]
    return {
        "code": code,
        "seconds": round(time.monotonic() - begin, 1),
        "end": f"stopped after {limit_s:.0f} s" if code is None else f"exit code {code}",
        "log": tail,
    }


def gpu_count() -> int:
    """GPUs that nvidia-smi lists; 0 where there is none."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    except OSError:
        return 0
    return listed.stdout.count("GPU ")


def main() -> None:
    """Run the stages that fit into the budget."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, help="folder of the results")
    parser.add_argument("--budget", type=float, default=1700, help="seconds for everything")
    parser.add_argument("--only", nargs="*", help="names of stages")
    parser.add_argument("--skip", nargs="*", default=(), help="names of stages")
    parser.add_argument("--list", action="store_true", help="name the stages and end")
    parser.add_argument("--archive", action="store_true", help="also FOLDER.tar.xz")
    options = parser.parse_args()
    if options.output is None and not options.list:
        parser.error("give -o FOLDER, where the results go, or --list")
    folder = (options.output or Path()).absolute()
    chosen = [
        stage
        for stage in stages(folder)
        if stage.name not in options.skip and (not options.only or stage.name in options.only)
    ]
    if options.list or not chosen:
        for stage in stages(folder):
            print(f"{stage.name:12} {stage.limit_s:4.0f} s  {stage.shows}")
        sys.exit(0 if options.list else "no stage of that name")
    folder.mkdir(parents=True, exist_ok=True)
    # The study goes on with the cells that the repository has: these are not measured again.
    shutil.copytree(ROOT / "studies" / "deepcam", folder / "study", dirs_exist_ok=True)
    gpus, begin = gpu_count(), time.monotonic()
    found: dict[str, dict[str, object]] = {}
    for stage in chosen:
        left = options.budget - (time.monotonic() - begin) - 10
        if gpus < stage.gpus:
            found[stage.name] = {"end": f"needs {stage.gpus} GPU(s), {gpus} found"}
        elif left < min(20.0, stage.limit_s):
            found[stage.name] = {"end": "not reached: the time was up"}
        else:
            found[stage.name] = run(stage, folder, min(stage.limit_s, left))
        one = found[stage.name]
        print(f"{stage.name:12} {one.get('seconds', '-'):>6} s  {one['end']}", flush=True)
        for line in one.get("log", ()):
            print(f"             | {line[:140]}", flush=True)
        (folder / "summary.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    if options.archive:
        shutil.make_archive(str(folder), "xztar", folder)
    sys.exit(0 if all(each.get("code") == 0 for each in found.values()) else 1)


if __name__ == "__main__":
    main()
