"""Make the two runs that `mansard demo` ships, from the recordings they come from.

    python scripts/make_demo_data.py FOLDER

FOLDER holds `h200/zoo.raw-base-units.csv.gz` (24 launches of known work on an H200, recorded with
Nsight Compute 2025.3) and `paper/pytorch-O1-adam-forward` (the raw output of the authors of
arXiv 2009.05257: forward pass of DeepCAM in PyTorch with apex O1 on a V100).
"""

import sys
from pathlib import Path

from mansard.readers import ImportOptions, import_files

TARGET = Path(__file__).parents[1] / "src" / "mansard" / "demo"


def main(folder: Path) -> None:
    """Write both runs."""
    import_files([folder / "h200" / "zoo.raw-base-units.csv.gz"], TARGET / "h200-zoo.parquet")
    raw = sorted((folder / "paper" / "pytorch-O1-adam-forward").glob("*.txt.gz"))
    import_files(raw, TARGET / "v100-deepcam-forward.parquet", options=ImportOptions(chip="GV100"))
    for path in sorted(TARGET.glob("*.parquet")):
        sys.stdout.write(f"{path.name}: {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
