"""The figures of arXiv 2009.05257, redrawn: hierarchical Roofline charts of DeepCAM on a V100.

    python examples/paper_figures.py                     # the run that comes with Mansard
    python examples/paper_figures.py tests/data/paper    # all phases with raw data in a checkout

For each phase it writes three vector PDF files with embedded fonts: the Roofline chart with one
triplet of circles (L1, L2, HBM) for each kernel, the least times of every resource, and the
time-based chart of the companion paper (arXiv 2009.04598). The census of zero-AI launches, the
paper's table, goes to standard output.

Two things differ from the paper on purpose: FLOP/s are decimal (the authors' scripts divide by
1024^3, so their points lie 7 % lower against decimal roofs), and tensor work has the roof that
the authors measured with cuBLAS, 103.7 TFLOP/s.
"""

import argparse
from pathlib import Path

import mansard
from mansard import charts
from mansard.analysis import AnalysisOptions
from mansard.analysis.census import census
from mansard.demo import shipped_run
from mansard.units import format_share, format_si

FIGURES = {
    "roofline": charts.roofline_figure,
    "floors": charts.floors_figure,
    "time": charts.time_figure,
}


def runs(folder: Path | None) -> dict[str, mansard.Run]:
    """Each phase by name: the folders of raw Nsight Compute output, or the shipped run."""
    if folder is None:
        return {"pytorch-O1-forward": shipped_run("v100-deepcam-forward")}
    phases = sorted(path for path in folder.iterdir() if path.is_dir())
    if not phases:
        raise SystemExit(f"{folder} holds no folder of Nsight Compute output")
    return {phase.name: mansard.open(phase) for phase in phases}


def main() -> None:
    """Draw every figure and print the census."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, help="folder of raw data, one per phase")
    parser.add_argument("--output", type=Path, default=Path("paper-figures"), help="where to write")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    print(f"{'phase':<32} launches  zero-AI launches   of time  time     work        on tensor")
    for name, run in runs(arguments.folder).items():
        # The authors' rule for the time of a kernel: total cycles over the mean clock.
        options = AnalysisOptions(time_rule="paper")
        analysis = mansard.analyze(run, mansard.machine("v100-paper"), options=options)
        for figure, draw in FIGURES.items():
            target = arguments.output / f"{name}-{figure}.pdf"
            charts.save_figure(draw(analysis), target, "pdf")
        totals, found = analysis.totals, census(analysis.totals)
        zero = f"{totals.zero_flop_launches} ({format_share(found.zero_flop_launches)})"
        print(
            f"{name:<32} {totals.launches:>8}  {zero:>16}  {format_share(found.zero_flop_time):>8}"
            f"  {format_si(totals.duration_s, 's'):<7}  {format_si(totals.flop, 'FLOP'):<10}"
            f"  {format_share(found.tensor_flop)}"
        )
    print(f"wrote {len(list(arguments.output.glob('*.pdf')))} figures to {arguments.output}")


if __name__ == "__main__":
    main()
