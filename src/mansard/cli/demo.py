"""``mansard demo``: the main job on data that comes with Mansard, no GPU needed."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from mansard.model.analysis import Analysis
    from mansard.model.machine import Machine
    from mansard.model.run import Run

#: What the demo measures of this CPU: the roofs of the chart, in about a third of the time that
#: everything takes.
_CPU_PARTS = ("vector fp64", "vector fp32", "l1 read", "l2 read", "l3 read", "dram read")

_NEXT = """\
What to do next
  Explore, in a browser: {folder}/h200-deeplabv3-step.html
  The step by kind of kernel:
    {mansard} report {folder}/h200-deeplabv3-step.parquet --by family
  What you have from Nsight Compute:
    {mansard} report YOUR.ncu-rep
  The roofs of your own GPU or CPU:
    {mansard} bench -o machine.json
  Your own training step, on a GPU:
    {mansard} profile -o run.parquet train.py
"""


def demo(
    folder: Annotated[
        Path, typer.Option("--folder", "-o", help="Where to write charts and tables.")
    ] = Path("mansard-demo"),
) -> None:
    """Report on a small H200 run and on the paper's DeepCAM, and measure this CPU."""
    from rich.console import Console

    from mansard.analysis import AnalysisOptions, analyze
    from mansard.charts.terminal import report_view
    from mansard.cli.called import called_as
    from mansard.cli.write import write_report
    from mansard.demo import NAMES, shipped_run
    from mansard.errors import OutputError
    from mansard.store import load_machine
    from mansard.store.choose_machine import machine_for

    began = time.perf_counter()
    console = Console(highlight=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {folder}: {error.strerror}") from error
    written: list[Path] = []
    for name in NAMES:
        run = shipped_run(name)
        machine, told = machine_for(run)
        options = AnalysisOptions(time_rule="paper" if name.startswith("v100") else "launch")
        analysis = analyze(run, machine, options=options, notices=told)
        console.rule(name, characters="-")
        console.print(report_view(analysis, top=6))
        written += _write_all(analysis, run, folder, name)
        copy = folder / f"{name}.parquet"
        copy.write_bytes(Path(str(run.files[0])).read_bytes())
        written.append(copy)
        write_report(analysis, folder / f"{name}.json")
        written.append(folder / f"{name}.json")
    console.rule("this machine's CPU", characters="-")
    cpu = _measure_cpu(console)
    if cpu is not None:
        written += _write_machines([cpu, load_machine("h200-sxm")], folder)
    console.rule("written", characters="-")
    for path in written:
        console.print(f"  {path}", markup=False)
    # Commands are copied: they are not broken into lines.
    ahead = _NEXT.format(folder=folder, mansard=called_as())
    console.print(f"\n{ahead}", markup=False, soft_wrap=True)
    console.print(f"done in {time.perf_counter() - began:.1f} s", markup=False)


def _write_all(analysis: "Analysis", run: "Run", folder: Path, name: str) -> list[Path]:
    from mansard.cli.write import write_report

    written = []
    for figure in ("roofline", "floors"):
        path = folder / f"{name}-{figure}.png"
        write_report(analysis, path, figure=figure)
        written.append(path)
    for path in (folder / f"{name}.html", folder / f"{name}-kernels.csv"):
        write_report(analysis, path, run=run)
        written.append(path)
    return written


def _measure_cpu(console: "Console") -> "Machine | None":
    from rich.progress import Progress

    from mansard.bench.cpu import CpuOptions, measure_cpu
    from mansard.errors import DeviceError
    from mansard.units import format_si

    options = CpuOptions(quick=True, only=_CPU_PARTS)
    try:
        with Progress(console=console, transient=True) as progress:
            task = progress.add_task("measuring the CPU", total=1.0)
            machine = measure_cpu(
                options,
                lambda part, share: progress.update(
                    task, description=f"measuring the CPU: {part}", completed=share
                ),
            )
    except DeviceError as error:
        console.print(f"not measured: {error}", markup=False)
        return None
    console.print(f"{machine.device.name}, {machine.device.sm_count} cores", markup=False)
    for ceiling in machine.ceilings:
        what = ceiling.path or f"{ceiling.level} {ceiling.access}"
        unit = "FLOP/s" if ceiling.kind == "compute" else "B/s"
        clock = format_si(ceiling.sm_clock_hz, "Hz")
        console.print(
            f"  {what:<14}{format_si(ceiling.value, unit):>14}  at {clock}  {ceiling.instruction}",
            markup=False,
        )
    return machine


def _write_machines(machines: "list[Machine]", folder: Path) -> list[Path]:
    from mansard.charts import static
    from mansard.cli.write import write_whole
    from mansard.store import save_machine

    picture, file = folder / "roofs.png", folder / "cpu.json"
    figure = static.machines_figure(machines)
    write_whole(picture, lambda stream: static.save_figure(figure, stream, "png"))
    save_machine(machines[0], file)
    return [picture, file]
