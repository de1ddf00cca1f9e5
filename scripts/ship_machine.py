"""Make a machine file that `mansard bench` wrote the one that comes along.

    python scripts/ship_machine.py MACHINE.json

Writes src/mansard/machines/h200-sxm.json, the table of docs/bench.md and the blocks of README.md
that depend on it. Left out is the clock of each sample, which is a quarter of the file; its median
and what follows from it stay.
"""

import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from mansard.model.machine import Machine
from mansard.store.machine_file import load_machine, save_machine

ROOT = Path(__file__).parents[1]
NAME = "h200-sxm"
LEFT_OUT = ("sm_clock_samples_hz", "sm_clock_slowest_hz")


def shipped(machine: Machine) -> Machine:
    """The machine under its name, without the clocks of single samples."""
    ceilings = tuple(
        msgspec.structs.replace(
            ceiling, evidence={k: v for k, v in ceiling.evidence.items() if k not in LEFT_OUT}
        )
        for ceiling in machine.ceilings
    )
    return msgspec.structs.replace(machine, name=NAME, ceilings=ceilings)


#: Command of a block of the README, and the name of its output in make_readme_examples.py.
BLOCKS = {
    "$ mansard report mansard-demo/h200-deeplabv3-step.parquet --top 3": "STEP",
    "$ mansard report mansard-demo/h200-deeplabv3-step.parquet --by layer --top 5": "LAYERS",
    "$ mansard machines h200-sxm": "BENCH",
}


def rewritten(text: str, examples: dict[str, list[str]]) -> str:
    """The README with the output of today below the commands; a block ends with ``...``."""
    for command, name in BLOCKS.items():
        head, found, rest = text.partition(f"{command}\n")
        if not found:
            sys.exit(f"README.md does not show: {command}")
        lines = [line for line in examples[name] if line != "..."]
        body = "".join(f"{line}\n" for line in (*lines, "..."))
        text = head + found + body + rest.partition("\n...\n")[2]
    return text


def main() -> None:
    """Write all of them."""
    machine = load_machine(sys.argv[1])
    if machine.partial or machine.device.name != "NVIDIA H200":
        sys.exit(f"{sys.argv[1]} is not a whole measurement of an NVIDIA H200")
    save_machine(shipped(machine), ROOT / "src" / "mansard" / "machines" / f"{NAME}.json")
    runpy.run_path(str(ROOT / "tests/unit/bench/test_shipped.py"), run_name="__main__")
    readme = ROOT / "README.md"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "mansard", "demo", "-o", folder], check=True)
        examples = runpy.run_path(str(ROOT / "scripts/make_readme_examples.py"))["examples"]
        text = rewritten(readme.read_text(encoding="utf-8"), examples(Path(folder)))
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
