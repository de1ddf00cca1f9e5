"""Print the output that README.md shows, from the commands that it shows.

    python scripts/make_readme_examples.py FOLDER

FOLDER is where `mansard demo` wrote its files.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def output(*arguments: str) -> list[str]:
    """Standard output of a mansard command, as lines."""
    done = subprocess.run(
        [sys.executable, "-m", "mansard", *arguments], capture_output=True, text=True, check=True
    )
    return [line.rstrip() for line in done.stdout.splitlines()]


def examples(folder: Path) -> dict[str, list[str]]:
    """The blocks of the README by name."""
    recorded = str(folder / "h200-deeplabv3-step.parquet")
    step = output("report", recorded, "--top", "3")
    layers = output("report", recorded, "--by", "layer", "--top", "5")
    bench = output("machines", "h200-sxm")
    runs = [folder / "pytorch.parquet", folder / "tensorflow.parquet"]
    data = ROOT / "tests" / "data" / "paper"
    for name, run in zip(("pytorch-O1-adam-forward", "tensorflow-amp-forward"), runs, strict=True):
        output("import", str(data / name), "-o", str(run))
    change = output("compare", *map(str, runs), "--by", "family")
    return {
        "STEP": step[: step.index("Warnings") - 1],
        "LAYERS": layers[_line(layers, "Layers") : layers.index("Warnings") - 1],
        "BENCH": [*bench[:3], *(line for line in bench if _shown(line)), "..."],
        "COMPARE": [*change[:2], *change[6 : change.index("3 elementwise") + 3]]
        if "3 elementwise" in change
        else change[:24],
    }


def _line(lines: list[str], start: str) -> int:
    return next(at for at, line in enumerate(lines) if line.startswith(start))


def _shown(line: str) -> bool:
    wanted = (
        "vector fp64   fma  ",
        "vector fp32   fma  ",
        "tensor fp64",
        "tensor fp8",
        "tensor bf16   wgmma",
        "shared read",
        "l1 read",
        "l2 read",
        "dram read",
        "dram write",
        "dram copy",
    )
    return line.startswith(wanted) and ("zeros" in line)


if __name__ == "__main__":
    for name, lines in examples(Path(sys.argv[1])).items():
        sys.stdout.write(f"@@{name}@@\n" + "\n".join(lines) + "\n")
